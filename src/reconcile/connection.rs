//! A vSphere connection: is it what it says, what does the vCenter say of itself, and does it let the credentials in? The first
//! two need no login, so they are asked as often as needed; for the last see [`login`](super::login).

mod within;

use super::error::ReconcileError;
use super::gather::{self, Found};
use crate::api::{
    AboutStatus, CertificateStatus, Class, ConditionType, Conditions, CredentialStatus, Failure, Reason, VsphereCloudConfig,
    VsphereCloudConfigStatus, chain,
};
use crate::cluster::Reader;
use crate::facts::{Inventory, Node};
use crate::types::Trust;
use crate::vcenter::{self, Endpoint, ProbeError, SessionError, Stage, VcenterFacts};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use std::time::Duration;

/// How long a vCenter may take to answer.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// The conditions after those stages, in order.
const AFTER: [ConditionType; 3] = [
    ConditionType::Authenticated,
    ConditionType::DatacentersFound,
    ConditionType::NodesFound,
];

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

/// What came of the login.
#[derive(Debug)]
pub enum Login {
    /// There was nothing to log in to, or nothing to log in with.
    NotTried,
    /// It is not tried now, or was refused just now; the record says why and until when.
    Waits(CredentialStatus),
    /// The session or the reading failed, and not for the credentials.
    Failed(SessionError),
    /// This was read.
    In(Inventory),
}

/// Everything that one look at a vCenter has shown.
#[derive(Debug)]
pub struct Look {
    /// Without a login.
    pub probe: Probe,
    /// With one.
    pub login: Login,
    /// The nodes of the cluster at that time.
    pub nodes: Vec<Node>,
    /// Whether other connections of the namespace may hold nodes that are not found here.
    pub alone: bool,
}

/// Asks the vCenter of a connection.
pub async fn probe(object: &VsphereCloudConfig, inputs: &Inputs) -> Probe {
    match endpoint(object, inputs) {
        Some(endpoint) => Probe::Asked(Box::new(vcenter::facts(&endpoint, DEADLINE).await)),
        None => Probe::NotAsked,
    }
}

/// Where the vCenter of a connection is; `None` when its trust is unusable.
#[must_use]
pub fn endpoint(object: &VsphereCloudConfig, inputs: &Inputs) -> Option<Endpoint> {
    Some(Endpoint {
        server: object.spec.vc_ip.clone(),
        port: gather::port(object),
        trust: inputs.trust.as_ref().ok()?.clone(),
    })
}

/// What a vCenter says of itself, as it stands in the status.
#[must_use]
pub fn about(facts: &VcenterFacts) -> AboutStatus {
    AboutStatus {
        version: facts.version.raw().to_owned(),
        build: facts.build.clone(),
        api_type: facts.api_type.clone(),
        instance_uuid: facts.instance_uuid.clone(),
    }
}

/// The next status of a connection (pure). Without a new look, what the last one found stays.
#[must_use]
pub fn fold(object: &VsphereCloudConfig, inputs: &Inputs, look: Option<&Look>, now: &Time) -> VsphereCloudConfigStatus {
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
    match look {
        Some(look) => stages(&mut conditions, &mut status, &mut verdict, &look.probe, inputs, same_spec),
        None => STAGES
            .iter()
            .for_each(|(_, kind)| verdict.blame(keep(&mut conditions, &old, *kind))),
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
            let known = status.credential.take().unwrap_or_default();
            let same = (&known.secret, &known.user, &known.version) == (&found.secret, &user, &found.version);
            let verified = known.verified.clone();
            let fresh = CredentialStatus {
                secret: found.secret.clone(),
                user,
                version: found.version.clone(),
                verified,
                ..CredentialStatus::default()
            };
            status.credential = Some(if same { known } else { fresh });
        }
        Err(error) => {
            conditions.set(ConditionType::CredentialsFound, Some(false), error.reason(), chain(error));
            status.credential = None;
            verdict.blame(Some(Verdict {
                ready: Some(false),
                reason: error.reason(),
                message: chain(error),
            }));
        }
    }
    match look {
        Some(look) => within::within(&mut conditions, &mut status, &mut verdict, object, look),
        None => {
            for kind in AFTER {
                let kept = keep(&mut conditions, &old, kind);
                verdict.blame(kept.filter(|_| kind != ConditionType::NodesFound));
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

/// Leaves a condition as it was, and gives what it says when that is not True.
fn keep(conditions: &mut Conditions, old: &VsphereCloudConfigStatus, kind: ConditionType) -> Option<Verdict> {
    let found = Conditions::find(&old.conditions, kind)?;
    let ready = match found.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    let reason = Reason::ALL.iter().find(|r| r.as_str() == found.reason).copied();
    let reason = reason.unwrap_or(Reason::NotChecked);
    conditions.set(kind, ready, reason, found.message.clone());
    (ready != Some(true)).then(|| Verdict {
        ready,
        reason,
        message: found.message.clone(),
    })
}

struct Verdict {
    ready: Option<bool>,
    reason: Reason,
    message: String,
}

impl Verdict {
    /// The first failure stays the one that is told.
    fn blame(&mut self, other: Option<Verdict>) {
        if let Some(other) = other
            && self.ready == Some(true)
        {
            *self = other;
        }
    }
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
            if status.about.as_ref().is_some_and(|old| old.instance_uuid != facts.instance_uuid) {
                status.credential = None; // What worked there says nothing about here.
            }
            status.about = Some(about(facts));
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
        status.credential = None;
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
