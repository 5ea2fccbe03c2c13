//! A vSphere connection: is it what it says, and what does the vCenter say of itself? No login is made for this, so asking
//! as often as needed locks nobody out.

use super::error::ReconcileError;
use super::gather::{self, Found};
use crate::api::{
    AboutStatus, CertificateStatus, Class, ConditionType, Conditions, CredentialStatus, Failure, Reason, VsphereCloudConfig,
    VsphereCloudConfigStatus, chain,
};
use crate::cluster::Reader;
use crate::types::Trust;
use crate::vcenter::{self, Endpoint, ProbeError, Stage, VcenterFacts};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use std::time::Duration;

/// How long a vCenter may take to answer.
const DEADLINE: Duration = Duration::from_secs(15);

/// The stages in the order in which they are reached, with the condition of each.
const STAGES: [(Stage, ConditionType); 4] = [
    (Stage::Resolved, ConditionType::Resolved),
    (Stage::Connected, ConditionType::Connected),
    (Stage::Trusted, ConditionType::Trusted),
    (Stage::IsVcenter, ConditionType::IsVCenter),
];

/// What a connection needs from the cluster, read without asking the vCenter.
pub struct Inputs {
    /// How the certificate is trusted.
    pub trust: Result<Trust, ReconcileError>,
    /// The credentials.
    pub credentials: Result<Found, ReconcileError>,
}

/// Reads what a connection refers to.
pub async fn inputs(reader: &Reader, object: &VsphereCloudConfig) -> Inputs {
    Inputs {
        trust: gather::trust(reader, object).await,
        credentials: gather::credentials(reader, object).await,
    }
}

/// What asking the vCenter led to.
#[derive(Debug)]
pub enum Probe {
    /// It could not be asked, because its trust is unusable.
    NotAsked,
    /// It was asked.
    Asked(Box<Result<VcenterFacts, ProbeError>>),
}

/// Asks the vCenter of a connection.
pub async fn probe(object: &VsphereCloudConfig, inputs: &Inputs) -> Probe {
    let Ok(trust) = &inputs.trust else { return Probe::NotAsked };
    let endpoint = Endpoint {
        server: object.spec.vc_ip.clone(),
        port: gather::port(object),
        trust: trust.clone(),
    };
    Probe::Asked(Box::new(vcenter::facts(&endpoint, DEADLINE).await))
}

/// The next status of a connection (pure). Without a new probe, what the last one found stays.
#[must_use]
pub fn fold(object: &VsphereCloudConfig, inputs: &Inputs, probe: Option<&Probe>, now: &Time) -> VsphereCloudConfigStatus {
    let old = object.status.clone().unwrap_or_default();
    let same_spec = old.observed_generation == object.metadata.generation;
    let mut conditions = Conditions::new(old.conditions.clone(), object.metadata.generation, now.clone());
    let mut status = VsphereCloudConfigStatus {
        observed_generation: object.metadata.generation,
        ..old.clone()
    };

    let mut verdict = Verdict {
        ready: Some(true),
        reason: Reason::Healthy,
        message: String::new(),
    };
    match probe {
        Some(probe) => stages(&mut conditions, &mut status, &mut verdict, probe, inputs, same_spec),
        None => {
            for (_, kind) in STAGES {
                let Some(c) = Conditions::find(&old.conditions, kind) else {
                    continue;
                };
                let ready = match c.status.as_str() {
                    "True" => Some(true),
                    "False" => Some(false),
                    _ => None,
                };
                let reason = Reason::ALL
                    .iter()
                    .find(|r| r.as_str() == c.reason)
                    .copied()
                    .unwrap_or(Reason::NotChecked);
                conditions.set(kind, ready, reason, c.message.clone());
                if ready != Some(true) && verdict.ready == Some(true) {
                    verdict = Verdict {
                        ready,
                        reason,
                        message: c.message.clone(),
                    };
                }
            }
        }
    }
    match &inputs.credentials {
        Ok(found) => {
            let user = found.credentials.user.clone();
            conditions.set(
                ConditionType::CredentialsFound,
                Some(true),
                Reason::Healthy,
                format!("Secret {} holds user {user}", found.secret),
            );
            status.credential = Some(CredentialStatus {
                secret: found.secret.clone(),
                user,
                version: found.version.clone(),
            });
        }
        Err(error) => {
            conditions.set(ConditionType::CredentialsFound, Some(false), error.reason(), chain(error));
            status.credential = None;
            if verdict.ready == Some(true) {
                verdict = Verdict {
                    ready: Some(false),
                    reason: error.reason(),
                    message: chain(error),
                };
            }
        }
    }
    if verdict.ready == Some(true) {
        let about = status.about.clone().unwrap_or_default();
        verdict.message = format!("{} is vCenter {} build {}", object.spec.vc_ip, about.version, about.build);
    }
    conditions.set(ConditionType::Ready, verdict.ready, verdict.reason, verdict.message);
    status.conditions = conditions.finish();
    status
}

struct Verdict {
    ready: Option<bool>,
    reason: Reason,
    message: String,
}

fn stages(
    conditions: &mut Conditions,
    status: &mut VsphereCloudConfigStatus,
    verdict: &mut Verdict,
    probe: &Probe,
    inputs: &Inputs,
    same_spec: bool,
) {
    let answer = match probe {
        Probe::Asked(answer) => Some(&**answer),
        Probe::NotAsked => None,
    };
    let failed_at = match answer {
        Some(Ok(facts)) => {
            for (_, kind) in STAGES {
                conditions.set(kind, Some(true), Reason::Healthy, passed(kind, facts));
            }
            status.about = Some(AboutStatus {
                version: facts.version.raw().to_owned(),
                build: facts.build.clone(),
                api_type: facts.api_type.clone(),
                instance_uuid: facts.instance_uuid.clone(),
            });
            status.certificate = Some(CertificateStatus {
                sha256: facts.certificate.sha256.to_string(),
                not_after: facts.certificate.not_after.map(Time),
            });
            return;
        }
        Some(Err(error)) => {
            let outage = matches!(class(error), Class::Retry);
            // Nobody is told that something is wrong when it only cannot be seen; a vCenter that was never seen is.
            *verdict = Verdict {
                ready: if outage && same_spec && status.about.is_some() {
                    None
                } else {
                    Some(false)
                },
                reason: reason(error),
                message: format!("{}. {}", chain(error), error.remedy()),
            };
            error.stage()
        }
        None => {
            if let Err(error) = &inputs.trust {
                *verdict = Verdict {
                    ready: Some(false),
                    reason: error.reason(),
                    message: chain(error),
                };
            }
            Stage::Trusted
        }
    };
    if !same_spec {
        status.about = None;
        status.certificate = None;
    }
    for (stage, kind) in STAGES {
        match stage.cmp(&failed_at) {
            std::cmp::Ordering::Less if answer.is_none() => conditions.set(kind, None, Reason::NotChecked, "not asked yet"),
            std::cmp::Ordering::Less => conditions.set(kind, Some(true), Reason::Healthy, "as it should be"),
            std::cmp::Ordering::Equal => conditions.set(kind, verdict.ready, verdict.reason, verdict.message.clone()),
            std::cmp::Ordering::Greater => conditions.set(kind, None, Reason::NotChecked, "an earlier check failed"),
        }
    }
}

fn passed(kind: ConditionType, facts: &VcenterFacts) -> String {
    match kind {
        ConditionType::Trusted => format!("certificate sha256 {}", facts.certificate.sha256),
        ConditionType::IsVCenter => facts.full_name.clone(),
        ConditionType::Resolved => "the name resolves".into(),
        _ => "connections are accepted".into(),
    }
}

/// The reason under which a failed probe is published.
#[must_use]
pub fn reason(error: &ProbeError) -> Reason {
    match error {
        ProbeError::NotAnAddress { .. } => Reason::InvalidSpec,
        ProbeError::Unresolvable { .. } => Reason::NameNotResolved,
        ProbeError::Refused { .. } | ProbeError::Unreachable { .. } | ProbeError::Proxy { .. } => Reason::Unreachable,
        ProbeError::TimedOut { .. } => Reason::TimedOut,
        ProbeError::UnknownIssuer { .. } | ProbeError::BadCertificate { .. } => Reason::CertificateUntrusted,
        ProbeError::Expired { .. } | ProbeError::NotYetValid { .. } => Reason::CertificateExpired,
        ProbeError::WrongName { .. } => Reason::CertificateNameMismatch,
        ProbeError::ThumbprintMismatch { .. } => Reason::ThumbprintMismatch,
        ProbeError::BadTrust { .. } => Reason::CaBundleInvalid,
        ProbeError::Handshake { .. } => Reason::TlsFailed,
        ProbeError::NotTls { .. } | ProbeError::NotVcenter { .. } | ProbeError::EsxHost { .. } => Reason::NotAVcenter,
        // A vCenter that is starting or overloaded says 5xx; what does not know the address or wants a login first is none.
        ProbeError::Status { status: 400..=499, .. } => Reason::NotAVcenter,
        _ => Reason::BadAnswer,
    }
}

/// Whether a failed probe may come right by itself.
#[must_use]
pub fn class(error: &ProbeError) -> Class {
    match reason(error) {
        Reason::NameNotResolved | Reason::Unreachable | Reason::TimedOut | Reason::TlsFailed | Reason::BadAnswer => Class::Retry,
        _ => Class::Terminal,
    }
}

/// The id of a connection.
#[must_use]
pub fn id(object: &VsphereCloudConfig) -> crate::types::ObjectId {
    crate::types::ObjectId::new(
        crate::api::GROUP,
        "VsphereCloudConfig",
        object.namespace().unwrap_or_default(),
        object.name_any(),
    )
}
