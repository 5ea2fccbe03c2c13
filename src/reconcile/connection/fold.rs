use super::{Inputs, Login, Look, Probe, about, report};
use crate::api::{
    ConditionType, Conditions, CredentialStatus, Failure, ProbeStatus, Reason, VsphereCloudConfig, VsphereCloudConfigStatus, chain,
};
use crate::health::{Among, Stage, machines_status, privileges_status};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The conditions in the order in which they are reached.
const ORDER: [ConditionType; 12] = [
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
];

/// The next status of a connection (pure). Without a new look, what the last one found stays; how it stands with other connections
/// (`among`) is known without one.
#[must_use]
pub fn fold(
    object: &VsphereCloudConfig,
    inputs: &Inputs,
    look: Option<&Look>,
    among: Option<Among>,
    now: &Time,
) -> VsphereCloudConfigStatus {
    let old = object.status.clone().unwrap_or_default();
    let mut status = VsphereCloudConfigStatus {
        observed_generation: object.metadata.generation,
        ..old.clone()
    };
    let same_spec = old.observed_generation == object.metadata.generation;
    let told = look.map(|look| report(look, same_spec && old.about.is_some(), now.0));
    if let Some(look) = look {
        remember(&mut status, &look.probe, same_spec);
    }
    credential(&mut status, inputs);
    if let (Some(look), Some(told)) = (look, &told) {
        judged(&mut status, &look.login);
        if told.certificate.is_some() {
            status.certificate.clone_from(&told.certificate);
        }
        if matches!(look.login, Login::In(_)) {
            status.machines = Some(machines_status(&told.nodes));
            status.privileges = Some(privileges_status(&told.privileges, &look.question.needs));
        }
    }

    let mut conditions = Conditions::new(old.conditions.clone(), object.metadata.generation, now.clone());
    let mut verdict: Option<Stage> = None;
    for kind in ORDER {
        let stage = match (&told, kind) {
            (_, ConditionType::CredentialsFound) => Some(credentials_found(inputs)),
            (_, ConditionType::Distinct) if among.is_some() => among.as_ref().map(|among| among.distinct.clone()),
            (Some(told), kind) => told.stage(kind).cloned(),
            (None, kind) => Conditions::find(&old.conditions, kind).map(|found| kept(kind, found)),
        };
        let stage = stage.map(|own| among.as_ref().map_or(own.clone(), |among| among.instead_of(own)));
        let Some(stage) = stage else { continue };
        conditions.set(kind, stage.status, stage.reason, stage.text());
        // The first failure is the one that is told. What could only not be checked is no failure of its own.
        let follows = |stage: &Stage| stage.reason == Reason::NotChecked;
        let first = verdict.as_ref().is_none_or(|told| follows(told) && !follows(&stage));
        if stage.status != Some(true) && !stage.informs() && first {
            verdict = Some(stage);
        }
    }
    match verdict {
        Some(stage) => conditions.set(ConditionType::Ready, stage.status, stage.reason, stage.text()),
        None => {
            let about = status.about.clone().unwrap_or_default();
            let message = format!("{} is vCenter {} build {}", object.spec.vc_ip, about.version, about.build);
            conditions.set(ConditionType::Ready, Some(true), Reason::Healthy, message);
        }
    }
    status.conditions = conditions.finish();
    status
}

/// Writes down when the vCenter was asked and when it is asked again.
#[must_use]
pub fn asked(mut status: VsphereCloudConfigStatus, last: Time, next: Option<Time>) -> VsphereCloudConfigStatus {
    status.probes = Some(ProbeStatus { last: Some(last), next });
    status
}

/// What the vCenter says of itself is kept as long as it may be true.
fn remember(status: &mut VsphereCloudConfigStatus, probe: &Probe, same_spec: bool) {
    let facts = match probe {
        Probe::Asked(answer) => answer.as_ref().as_ref().ok(),
        Probe::NotAsked(..) => None,
    };
    match facts {
        Some(facts) => {
            if status.about.as_ref().is_some_and(|old| old.instance_uuid != facts.instance_uuid) {
                status.credential = None; // What worked there says nothing about here.
            }
            status.about = Some(about(facts));
        }
        None if same_spec => {}
        None => {
            status.about = None;
            status.certificate = None;
            status.credential = None;
        }
    }
}

/// Which credentials are in use now.
fn credential(status: &mut VsphereCloudConfigStatus, inputs: &Inputs) {
    let Ok(found) = &inputs.credentials else {
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
fn judged(status: &mut VsphereCloudConfigStatus, login: &Login) {
    let Some(own) = &mut status.credential else { return };
    match login {
        Login::In(_) => {
            own.verified = Some(own.version.clone());
            (own.attempts, own.last_tried, own.refused) = (0, None, None);
        }
        Login::Waits(record) => {
            own.attempts = record.attempts;
            own.last_tried.clone_from(&record.last_tried);
            own.refused.clone_from(&record.refused);
            own.verified = own.verified.take().filter(|version| *version != own.version);
        }
        Login::NotTried | Login::Failed(_) => {}
    }
}

/// The stage of the Secret, which needs no vCenter.
#[must_use]
pub fn credentials_found(inputs: &Inputs) -> Stage {
    let kind = ConditionType::CredentialsFound;
    match &inputs.credentials {
        Ok(found) => Stage::passed(kind, format!("Secret {} holds user {}", found.secret, found.credentials.user)),
        Err(error) => Stage::failed(kind, Some(false), error.reason(), chain(error), ""),
    }
}

/// What a condition of the last report says.
fn kept(kind: ConditionType, found: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition) -> Stage {
    let status = match found.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    let reason = Reason::ALL.iter().find(|reason| reason.as_str() == found.reason);
    Stage::failed(
        kind,
        status,
        reason.copied().unwrap_or(Reason::NotChecked),
        found.message.clone(),
        "",
    )
}
