// SPDX-License-Identifier: Apache-2.0
//! Computes the next status and conditions of a VsphereCloudConfig from the last status and a report; `report.rs` makes the report.

use super::{Check, CrossChecks, Finding, Inspection, LoginOutcome, Requirements, Tagging, machines_status, privileges_status, report};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use vdo_api::api::{
    Classify, ConditionType, Conditions, CredentialStatus, ProbeStatus, Reason, TagCategoryStatus, VsphereCloudConfig,
    VsphereCloudConfigStatus,
};
use vdo_api::facts::StoredCredentials;

/// The conditions in the order in which they are reached.
const ORDER: [ConditionType; 13] = [
    ConditionType::Resolved,
    ConditionType::Connected,
    ConditionType::Trusted,
    ConditionType::IsVCenter,
    ConditionType::CredentialsFound,
    ConditionType::Authenticated,
    ConditionType::DatacentersFound,
    ConditionType::StorageFound,
    ConditionType::Authorized,
    ConditionType::NodesFound,
    ConditionType::TopologyConsistent,
    ConditionType::Distinct,
    ConditionType::ClusterIdAvailable,
];

/// The next status of a connection (pure). Without a new look, what the last one found stays; how it stands with other connections
/// (`among`) is known without one.
#[must_use]
pub fn fold_status(
    object: &VsphereCloudConfig,
    credentials: Result<&StoredCredentials, &impl Classify>,
    inspection: Option<&Inspection>,
    among: Option<CrossChecks>,
    now: &Time,
) -> VsphereCloudConfigStatus {
    let old = object.status.clone().unwrap_or_default();
    let mut status = VsphereCloudConfigStatus {
        observed_generation: object.metadata.generation,
        ..old.clone()
    };
    let same_spec = old.observed_generation == object.metadata.generation;
    let reported = inspection.map(|inspection| report(inspection, same_spec && old.about.is_some(), now.0));
    if let Some(inspection) = inspection {
        remember(&mut status, inspection, same_spec);
    }
    match credentials {
        Err(error) if is_unread(error) => {}
        credentials => credential(&mut status, credentials.ok()),
    }
    if let (Some(inspection), Some(reported)) = (inspection, &reported) {
        judged(&mut status, &inspection.login);
        if reported.certificate.is_some() {
            status.certificate.clone_from(&reported.certificate);
        }
        if let LoginOutcome::Succeeded(readings) = &inspection.login {
            status.machines = Some(machines_status(&reported.nodes));
            status.volumes.clone_from(&reported.volumes);
            if let Ok(tagging) = &readings.tagging {
                status.tag_categories = tag_categories(&inspection.request.requirements, tagging);
            }
            status.privileges = Some(privileges_status(&reported.privileges, &inspection.request.requirements));
        }
    }

    let mut conditions = Conditions::new(old.conditions.clone(), object.metadata.generation, now.clone());
    let mut verdict: Option<Check> = None;
    for kind in ORDER {
        let check = match (&reported, kind) {
            (_, ConditionType::CredentialsFound) => Some(credentials_check(credentials)),
            (_, ConditionType::Distinct) if among.is_some() => among.as_ref().map(|among| among.distinct.clone()),
            (Some(reported), kind) => reported.check(kind).cloned(),
            (None, kind) => Conditions::find(&old.conditions, kind).map(|found| kept(kind, found)),
        };
        let check = check.map(|own| among.as_ref().map_or(own.clone(), |among| among.replace(own)));
        let Some(check) = check else { continue };
        conditions.set(kind, check.status, check.reason, check.text());
        // The first failure is the one that is reported. What could only not be checked is not a failure of its own.
        let follows = |check: &Check| check.reason == Reason::NotChecked;
        let first = verdict.as_ref().is_none_or(|reported| follows(reported) && !follows(&check));
        if check.status != Some(true) && !check.is_informational() && first {
            verdict = Some(check);
        }
    }
    match verdict {
        Some(check) => conditions.set(ConditionType::Ready, check.status, check.reason, check.text()),
        None => {
            let about = status.about.clone().unwrap_or_default();
            let message = format!("{} is vCenter {} build {}", object.spec.vc_ip, about.version, about.build);
            conditions.set(ConditionType::Ready, Some(true), Reason::Healthy, message);
        }
    }
    status.conditions = conditions.finish();
    status
}

/// The categories that the drivers read, and whether they are there.
fn tag_categories(requirements: &Requirements, tagging: &Tagging) -> Vec<TagCategoryStatus> {
    let status = |name: &str| TagCategoryStatus {
        name: name.to_owned(),
        found: tagging.categories.contains(name),
    };
    requirements.all_categories().into_iter().map(status).collect()
}

/// Writes down when the vCenter was asked and when it is asked again.
#[must_use]
pub fn with_probe_times(mut status: VsphereCloudConfigStatus, last: Time, next: Option<Time>) -> VsphereCloudConfigStatus {
    status.probes = Some(ProbeStatus { last: Some(last), next });
    status
}

/// What the vCenter reported about itself is kept as long as it may be true.
fn remember(status: &mut VsphereCloudConfigStatus, inspection: &Inspection, same_spec: bool) {
    match inspection.facts() {
        Some(facts) => {
            if status.about.as_ref().is_some_and(|old| old.instance_uuid != facts.instance_uuid) {
                // What was there says nothing about here.
                (status.credential, status.volumes) = (None, None);
            }
            status.about = Some(facts.about());
        }
        None if same_spec => {}
        None => {
            status.about = None;
            status.volumes = None;
            status.certificate = None;
            status.credential = None;
        }
    }
}

/// Whether an error says nothing about a Secret itself: the API server could not be asked, or has just started and refuses what it does not
/// know to be allowed yet. What was found before still counts then; without it a verified password would be sent once more.
#[must_use]
pub fn is_unread(error: &impl Classify) -> bool {
    !matches!(
        error.reason(),
        Reason::SecretNotFound | Reason::SecretElsewhere | Reason::SecretWrongType | Reason::SecretIncomplete | Reason::ServerNotNamed
    )
}

/// Which credentials are in use now.
fn credential(status: &mut VsphereCloudConfigStatus, credentials: Option<&StoredCredentials>) {
    let Some(found) = credentials else {
        status.credential = None;
        return;
    };
    let known = status.credential.take().unwrap_or_default();
    let user = &found.credentials.user;
    status.credential = Some(
        if (&known.secret, &known.user, &known.version) == (&found.secret, user, &found.version) {
            known
        } else {
            CredentialStatus {
                secret: found.secret.clone(),
                user: user.clone(),
                version: found.version.clone(),
                verified: known.verified,
                ..CredentialStatus::default()
            }
        },
    );
}

/// What the vCenter has decided about them.
fn judged(status: &mut VsphereCloudConfigStatus, login: &LoginOutcome) {
    let Some(own) = &mut status.credential else { return };
    match login {
        LoginOutcome::Succeeded(_) => {
            own.verified = Some(own.version.clone());
            (own.attempts, own.last_tried, own.refused) = (0, None, None);
        }
        LoginOutcome::Postponed(record) => {
            own.attempts = record.attempts;
            own.last_tried.clone_from(&record.last_tried);
            own.refused.clone_from(&record.refused);
            own.verified = own.verified.take().filter(|version| *version != own.version);
        }
        LoginOutcome::NotTried | LoginOutcome::Failed(_) => {}
    }
}

/// The stage of the Secret, which needs no vCenter.
#[must_use]
pub fn credentials_check(credentials: Result<&StoredCredentials, &impl Classify>) -> Check {
    let kind = ConditionType::CredentialsFound;
    match credentials {
        Ok(found) => Check::passed(
            kind,
            format!(
                "Secret {} contains the credentials of user {}",
                found.secret, found.credentials.user
            ),
        ),
        Err(error) => {
            let why = Finding::of(error);
            Check::failed(kind, Some(false), why.reason, why.message, why.remedy)
        }
    }
}

/// A condition of the last report.
fn kept(kind: ConditionType, found: &Condition) -> Check {
    let status = match found.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    let reason = Reason::ALL.iter().find(|reason| reason.as_str() == found.reason);
    Check::failed(
        kind,
        status,
        reason.copied().unwrap_or(Reason::NotChecked),
        found.message.clone(),
        "",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::{Granted, InspectionRequest, Inventory, ProbeError, ProbeOutcome, Readings, Tagging, VcenterFacts};
    use vdo_api::api::{AboutStatus, Class, RegisteredVolumesStatus};
    use vdo_api::facts::Credentials;
    use vdo_api::types::{Remedy, Secret};
    use vdo_core::certificate::CertificateFacts;

    fn stored(user: &str, version: &str) -> StoredCredentials {
        StoredCredentials {
            credentials: Credentials {
                user: user.into(),
                password: Secret::new("p"),
            },
            secret: "n/s".into(),
            version: version.into(),
        }
    }

    /// Refused twice with version 2, after version 1 had worked.
    fn refused() -> CredentialStatus {
        CredentialStatus {
            secret: "n/s".into(),
            user: "u".into(),
            version: "2".into(),
            verified: Some("1".into()),
            attempts: 2,
            last_tried: Some(Time("2026-01-01T00:00:00Z".parse().expect("a time"))),
            refused: Some("InvalidCredentials".into()),
        }
    }

    fn with(credential: CredentialStatus) -> VsphereCloudConfigStatus {
        VsphereCloudConfigStatus {
            credential: Some(credential),
            ..VsphereCloudConfigStatus::default()
        }
    }

    /// A Secret that could not be read.
    #[derive(Debug, thiserror::Error)]
    #[error("the Secret cannot be read")]
    struct Unreadable(Reason);

    impl Remedy for Unreadable {
        fn remedy(&self) -> Option<std::borrow::Cow<'static, str>> {
            None
        }
    }

    impl Classify for Unreadable {
        fn reason(&self) -> Reason {
            self.0
        }

        fn class(&self) -> Class {
            Class::Retry
        }
    }

    /// A Secret that is missing or wrong has no password that worked; one that an API server does not show may have the same.
    #[test]
    fn credential_that_cannot_be_read_stays_known() {
        for (reason, stays) in [
            (Reason::Forbidden, true),
            (Reason::ApiUnavailable, true),
            (Reason::AdmissionDenied, true),
            (Reason::SecretNotFound, false),
            (Reason::SecretIncomplete, false),
            (Reason::ServerNotNamed, false),
        ] {
            let mut object = VsphereCloudConfig::new("vc", vdo_api::api::VsphereCloudConfigSpec::default());
            object.status = Some(with(refused()));
            let now = Time("2026-01-01T00:00:00Z".parse().expect("a time"));
            let status = fold_status(&object, Err(&Unreadable(reason)), None, None, &now);
            assert_eq!(status.credential, stays.then(refused), "{reason:?}");
            let found = Conditions::find(&status.conditions, ConditionType::CredentialsFound).expect("a condition");
            assert_eq!((found.status.as_str(), found.reason.as_str()), ("False", reason.as_str()));
        }
    }

    /// Attempts belong to a version of the Secret: another one begins at zero, and what worked last stays known.
    #[test]
    fn credential_of_another_version_or_user_has_no_attempts() {
        let untried = |user: &str, version: &str| CredentialStatus {
            user: user.into(),
            version: version.into(),
            attempts: 0,
            last_tried: None,
            refused: None,
            ..refused()
        };
        for (found, expected) in [
            (Some(stored("u", "2")), Some(refused())),
            (Some(stored("u", "3")), Some(untried("u", "3"))),
            (Some(stored("v", "2")), Some(untried("v", "2"))),
            (None, None),
        ] {
            let mut status = with(refused());
            credential(&mut status, found.as_ref());
            assert_eq!(status.credential, expected, "{found:?}");
        }
    }

    #[test]
    fn login_outcome_is_written_into_the_credential() {
        let readings = || Readings {
            inventory: Inventory::default(),
            nodes: Vec::new(),
            policies: Ok(Vec::new()),
            file_service: None,
            required_privileges: Vec::new(),
            granted: Ok(Granted::default()),
            tagging: Ok(Tagging::default()),
            volumes: None,
            volume_kinds: None,
        };
        let again = CredentialStatus {
            attempts: 3,
            refused: Some("AccountLocked".into()),
            last_tried: None,
            ..refused()
        };
        let verified = CredentialStatus {
            verified: Some("2".into()),
            ..refused()
        };
        let works = CredentialStatus {
            attempts: 0,
            last_tried: None,
            refused: None,
            ..verified.clone()
        };
        let postponed = || LoginOutcome::Postponed(again.clone());
        for (before, outcome, expected) in [
            (refused(), LoginOutcome::Succeeded(Box::new(readings())), works),
            (refused(), LoginOutcome::NotTried, refused()),
            (refused(), postponed(), again.clone()),
            // A version that is refused now has been changed at the vCenter, and is verified no more.
            (
                verified,
                postponed(),
                CredentialStatus {
                    verified: None,
                    ..again.clone()
                },
            ),
        ] {
            let mut status = with(before);
            judged(&mut status, &outcome);
            assert_eq!(status.credential, Some(expected), "{outcome:?}");
        }
    }

    /// What was found stays while the vCenter does not answer. Another vCenter has other accounts and volumes, and another
    /// specification may name another vCenter.
    #[test]
    fn memory_of_another_vcenter_is_dropped() {
        let facts = |uuid: &str| VcenterFacts {
            version: "8.0.3".parse().expect("a version"),
            build: "1".into(),
            api_type: "VirtualCenter".into(),
            api_version: "8.0.3.0".into(),
            instance_uuid: uuid.into(),
            full_name: "VMware vCenter Server".into(),
            certificate: CertificateFacts::of(b"none"),
        };
        let inspection = |uuid: Option<&str>| Inspection {
            request: InspectionRequest::default(),
            probe: ProbeOutcome::Asked(Box::new(uuid.map(facts).ok_or(ProbeError::Refused { address: "vc:443".into() }))),
            login: LoginOutcome::NotTried,
        };
        // uuid, same specification; what stays: credential, volumes, certificate, and whose identity is known
        for (uuid, same_spec, stays, known) in [
            (Some("a"), true, [true, true, true], Some("a")),
            (Some("a"), false, [true, true, true], Some("a")),
            (Some("b"), true, [false, false, true], Some("b")),
            (None, true, [true, true, true], Some("a")),
            (None, false, [false, false, false], None),
        ] {
            let mut status = VsphereCloudConfigStatus {
                about: Some(facts("a").about()),
                volumes: Some(RegisteredVolumesStatus::default()),
                certificate: Some(CertificateFacts::of(b"none").status()),
                ..with(refused())
            };
            remember(&mut status, &inspection(uuid), same_spec);
            let found = [status.credential.is_some(), status.volumes.is_some(), status.certificate.is_some()];
            let about = |about: AboutStatus| about.instance_uuid;
            assert_eq!((found, status.about.map(about).as_deref()), (stays, known), "{uuid:?} {same_spec}");
        }
    }
}
