//! A vSphere connection: is it what it says, what does the vCenter say of itself, does it let the credentials in, and is
//! there what the drivers need?
//!
//! ```text
//! probe (effect)    who it is, without a login
//! login (effect)    see [`login`](super::login) for when
//! read (effect)     what is there, as far as the drivers use it
//! report (pure)     stages, nodes, privileges, datastores
//! fold (pure)       the next status of the object
//! ```
//!
//! The operator walks this road with sessions that it keeps; [`examine`] walks it once, without any object in a cluster.

mod fold;
mod needs;
mod once;
mod read;
mod stages;
mod within;

use crate::vsphere::{Needs, ProbeError, SessionError, VcenterFacts};
pub use fold::{asked, credentials_found, fold};
pub use needs::needs;
use once::read_once;
pub use once::{Permission, once};
pub use read::{Seen, read};
pub use stages::{class, reason};

use super::error::ReconcileError;
use super::gather::{self, Found};
use crate::api::{AboutStatus, ConditionType, CredentialStatus, VsphereCloudConfig};
use crate::cluster::Reader;
use crate::facts::{Credentials, Node};
use crate::fetch::Library;
pub use crate::health::Coverage;
use crate::health::{Among, ConnectionReport, absent, datacenters_of, distinct_stage, storage_among};
use crate::matrix::Index;
use crate::types::Trust;
use crate::vcenter::{self, Budget, Endpoint};
use jiff::Timestamp;
use kube::ResourceExt;
use std::sync::Arc;

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

/// What a vCenter is held against.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The address of the vCenter, for messages.
    pub server: String,
    /// The datacenters to look in, by name or path; empty means all.
    pub datacenters: Vec<String>,
    /// What the drivers ask of this connection.
    pub needs: Needs,
    /// The nodes of the cluster.
    pub nodes: Vec<Arc<Node>>,
    /// Whether no other connection may hold nodes that are not found here.
    pub alone: bool,
    /// Whether privileges that nobody needs are asked for, too.
    pub surplus: bool,
    /// The matrix, where there is one, to tell whether any driver knows this vCenter.
    pub index: Option<Arc<Index>>,
}

/// The matrix, where it can be read. Without it a question stays open, and nothing fails.
pub async fn known_index(library: &Library) -> Option<Arc<Index>> {
    library.index::<ReconcileError>().await.ok().map(|edition| edition.index)
}

/// What asking the vCenter who it is led to.
#[derive(Debug)]
pub enum Probe {
    /// It could not be asked, because its trust is unusable.
    NotAsked(String, crate::api::Reason),
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
    In(Box<Seen>),
}

/// Everything that one look at a vCenter has shown.
#[derive(Debug)]
pub struct Look {
    /// What it was held against.
    pub question: Question,
    /// Without a login.
    pub probe: Probe,
    /// With one.
    pub login: Login,
}

/// Asks the vCenter of a connection who it is.
pub async fn probe(object: &VsphereCloudConfig, inputs: &Inputs, budget: &Budget) -> Probe {
    match (endpoint(object, inputs), &inputs.trust) {
        (Some(endpoint), _) => Probe::Asked(Box::new(vcenter::facts(&endpoint, budget).await)),
        (None, Err(error)) => Probe::NotAsked(crate::api::chain(error), crate::api::Failure::reason(error)),
        (None, Ok(_)) => Probe::NotAsked(String::new(), crate::api::Reason::NotChecked),
    }
}

/// One look at a vCenter from nothing but its address, an account and what is asked: no object in a cluster is read or
/// written. The login is tried once.
pub async fn examine(endpoint: &Endpoint, credentials: &Credentials, question: Question, now: Timestamp) -> ConnectionReport {
    let budget = Budget::default();
    let answer = vcenter::facts(endpoint, &budget).await;
    let login = if answer.is_ok() {
        read_once(endpoint.clone(), credentials.clone(), &question, true, &budget).await
    } else {
        Login::NotTried
    };
    let look = Look {
        question,
        probe: Probe::Asked(Box::new(answer)),
        login,
    };
    report(&look, false, now)
}

/// What a look says (pure). When the connection is `known` to have worked as it is specified now, an outage only hides how it is.
#[must_use]
pub fn report(look: &Look, known: bool, now: Timestamp) -> ConnectionReport {
    let mut report = ConnectionReport::default();
    stages::stages(&mut report, look, known, now);
    within::within(&mut report, look);
    report
}

/// What a connection covers, when that was seen.
#[must_use]
pub fn coverage(connection: &str, look: &Look) -> Option<Coverage> {
    let (Probe::Asked(answer), Login::In(seen)) = (&look.probe, &look.login) else {
        return None;
    };
    let facts = answer.as_ref().as_ref().ok()?;
    let wanted = &look.question.datacenters;
    let machines = &seen.inventory.machines;
    let needs = &look.question.needs;
    let storage = report(look, true, Timestamp::UNIX_EPOCH)
        .stage(ConditionType::StorageFound)
        .cloned();
    Some(Coverage {
        connection: connection.to_owned(),
        vcenter: facts.instance_uuid.clone(),
        drivers: needs.drivers.clone(),
        datacenters: datacenters_of(wanted, &seen.inventory.datacenters),
        nodes: seen
            .nodes
            .iter()
            .filter_map(|node| Some((node.node.clone(), machines.get(node.at?)?.path.clone())))
            .collect(),
        absent: absent(needs, &seen.inventory, seen.policies.as_ref().ok().map(Vec::as_slice)),
        others: needs.others,
        storage,
    })
}

/// Holds a connection against all: what only shows then (pure).
#[must_use]
pub fn among(own: &Coverage, all: &[impl AsRef<Coverage>]) -> Among {
    Among {
        distinct: distinct_stage(own, all),
        storage: storage_among(own, all),
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
