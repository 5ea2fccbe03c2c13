// SPDX-License-Identifier: Apache-2.0
//! Inspects a vSphere connection: inputs from the cluster, probe without login, and one inspection with given credentials.
//!
//! ```text
//! probe (effect)    version and identity, without a login
//! login (effect)    see [`login`](super::login) for when
//! read (effect)     the inventory, as far as the drivers use it
//! report (pure)     stages, nodes, privileges, datastores
//! fold (pure)       the next status of the object
//! ```
//!
//! The operator runs these stages with sessions that it keeps; [`examine`] runs them once, without an object in a cluster.

mod claim;
mod collect;
mod one_shot;
mod requirements;

pub use claim::{claim, claimed_id, counted};
pub use collect::collect;
use one_shot::collect_once;
pub use one_shot::{Permission, Stored, inspect, stored_volumes};
pub use requirements::requirements;

use super::error::ReconcileError;
use super::observe::{connections, vcenter_secret};
use crate::cluster::Reader;
use jiff::Timestamp;
use kube::ResourceExt;
use std::sync::Arc;
use vdo_api::api::VsphereCloudConfig;
use vdo_api::facts::{Credentials, StoredCredentials};
use vdo_api::types::Trust;
use vdo_core::matrix::Index;
use vdo_source::fetch::ChartRepository;
use vdo_vsphere::vcenter::{self, Budget, Endpoint};
use vdo_vsphere::vsphere::{ConnectionReport, Finding, Inspection, InspectionRequest, LoginOutcome, ProbeOutcome, report};

/// What a connection needs from the cluster, read without asking the vCenter.
pub struct Inputs {
    /// How the certificate is trusted.
    pub trust: Result<Trust, ReconcileError>,
    /// The credentials.
    pub credentials: Result<StoredCredentials, ReconcileError>,
}

/// Reads what a connection refers to.
pub async fn inputs(reader: &Reader, object: &VsphereCloudConfig) -> Inputs {
    Inputs {
        trust: connections::trust(reader, object).await,
        credentials: vcenter_secret::credentials(reader, object).await,
    }
}

/// The matrix, where it can be read. Without it a question stays open, and nothing fails.
pub async fn known_index(repository: &ChartRepository) -> Option<Arc<Index>> {
    repository.known().await
}

/// Asks the vCenter of a connection who it is.
pub async fn probe(object: &VsphereCloudConfig, inputs: &Inputs, budget: &Budget) -> ProbeOutcome {
    match (endpoint(object, inputs), &inputs.trust) {
        (Some(endpoint), _) => ProbeOutcome::Asked(Box::new(vcenter::facts(&endpoint, budget).await)),
        (None, Err(error)) => ProbeOutcome::NotAsked(Finding::of(error)),
        (None, Ok(_)) => ProbeOutcome::NotAsked(Finding::new(vdo_api::api::Reason::NotChecked, "", "")),
    }
}

/// One look at a vCenter from nothing but its address, an account and what is asked: no object in a cluster is read or
/// written. The login is tried once.
pub async fn examine(
    endpoint: &Endpoint,
    credentials: &Credentials,
    request: InspectionRequest,
    now: Timestamp,
    budget: &Budget,
) -> ConnectionReport {
    let answer = vcenter::facts(endpoint, budget).await;
    let login = if answer.is_ok() {
        collect_once(endpoint.clone(), credentials.clone(), &request, true, budget).await
    } else {
        LoginOutcome::NotTried
    };
    let inspection = Inspection {
        request,
        probe: ProbeOutcome::Asked(Box::new(answer)),
        login,
    };
    report(&inspection, false, now)
}

/// Where the vCenter of a connection is; `None` when its trust is unusable.
#[must_use]
pub fn endpoint(object: &VsphereCloudConfig, inputs: &Inputs) -> Option<Endpoint> {
    Some(Endpoint {
        server: object.spec.vc_ip.clone(),
        port: connections::port(object),
        trust: inputs.trust.as_ref().ok()?.clone(),
    })
}

/// The id of a connection.
#[must_use]
pub fn id(object: &VsphereCloudConfig) -> vdo_api::types::ObjectId {
    vdo_api::types::ObjectId::new(
        vdo_api::api::GROUP,
        "VsphereCloudConfig",
        object.namespace().unwrap_or_default(),
        object.name_any(),
    )
}
