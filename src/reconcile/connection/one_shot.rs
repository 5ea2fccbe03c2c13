// SPDX-License-Identifier: Apache-2.0
//! Inspects a vCenter once, or lists its volumes, with login and logout, for `vdoctl`, which keeps no session.

use super::{Inputs, collect, endpoint, probe};
use jiff::Timestamp;
use std::collections::BTreeSet;
use vdo_api::api::VsphereCloudConfig;
use vdo_api::facts::Credentials;
use vdo_vsphere::vcenter::{Budget, Endpoint, Session};
use vdo_vsphere::vsphere::login_retry::{self, Decision, Key, TagRefusals};
use vdo_vsphere::vsphere::{Inspection, InspectionRequest, LoginOutcome, ProbeOutcome, RegisteredVolume, SessionError, reached_datastores};

/// Whether a login may be made.
#[derive(Debug, Clone, Copy)]
pub enum Permission<'a> {
    /// A user has just given the credentials and wants them tried.
    Given,
    /// As these connections have it in their status: only a version of the Secret that has logged in before is sent again. One that
    /// was refused waits, and one that was never tried is left to the operator, so that nothing here adds to what locks an account.
    Recorded(&'a [VsphereCloudConfig], Timestamp),
}

/// Asks the vCenter of a connection everything, and leaves no session behind.
pub async fn inspect(
    object: &VsphereCloudConfig,
    inputs: &Inputs,
    request: InspectionRequest,
    permission: Permission<'_>,
    budget: &Budget,
) -> Inspection {
    let probe = probe(object, inputs, budget).await;
    let login = log_in(object, inputs, &request, &probe, permission, budget).await;
    Inspection { request, probe, login }
}

/// What a vCenter has of the volumes of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    /// Every volume that is registered under the cluster's id.
    pub volumes: Vec<RegisteredVolume>,
    /// The datastores that can be used, with the hosts that reach each; `None` where they were not asked for.
    pub datastores: Option<Vec<(String, BTreeSet<String>)>>,
}

/// What the vCenter of a connection has of the volumes of a cluster, and where asked for its datastores; `None` where no login may be made
/// now.
///
/// # Errors
/// When the vCenter does not answer, refuses the login, or has no service for container volumes.
pub async fn stored_volumes(
    object: &VsphereCloudConfig,
    inputs: &Inputs,
    (connections, now): (&[VsphereCloudConfig], Timestamp),
    (cluster_id, with_datastores): (&str, bool),
    budget: &Budget,
) -> Result<Option<Stored>, SessionError> {
    let ProbeOutcome::Asked(answer) = probe(object, inputs, budget).await else {
        return Ok(None);
    };
    let (Ok(facts), Some(endpoint), Ok(found)) = (&*answer, endpoint(object, inputs), &inputs.credentials) else {
        return Ok(None);
    };
    let key = Key::of(found, facts);
    if !matches!(login_retry::decide(&key, &key.records(connections), now), Decision::Proceed) {
        return Ok(None);
    }
    let session = Session::open(endpoint, found.credentials.clone(), budget).await?;
    let found = stored(&session, cluster_id, with_datastores, budget).await;
    session.close().await;
    found.map(Some)
}

async fn stored(session: &Session, cluster_id: &str, with_datastores: bool, budget: &Budget) -> Result<Stored, SessionError> {
    let volumes = session.volumes(cluster_id, budget).await?;
    let datastores = match with_datastores {
        true => Some(reached_datastores(&session.hosts_and_datastores(budget).await?)),
        false => None,
    };
    Ok(Stored { volumes, datastores })
}

async fn log_in(
    object: &VsphereCloudConfig,
    inputs: &Inputs,
    request: &InspectionRequest,
    probe: &ProbeOutcome,
    permission: Permission<'_>,
    budget: &Budget,
) -> LoginOutcome {
    let ProbeOutcome::Asked(answer) = probe else {
        return LoginOutcome::NotTried;
    };
    let (Ok(facts), Some(endpoint), Ok(found)) = (&**answer, endpoint(object, inputs), &inputs.credentials) else {
        return LoginOutcome::NotTried;
    };
    let mut tags = true;
    if let Permission::Recorded(connections, now) = permission {
        let key = Key::of(found, facts);
        tags = TagRefusals::recorded(&key, connections).allow();
        match login_retry::decide(&key, &key.records(connections), now) {
            Decision::Proceed => {}
            Decision::Wait(record) => return LoginOutcome::Postponed(record),
            Decision::RecordFirst(_) => return LoginOutcome::NotTried,
        }
    }
    collect_once(endpoint, found.credentials.clone(), request, tags, budget).await
}

/// Logs in, reads, and logs out.
pub(super) async fn collect_once(
    endpoint: Endpoint,
    credentials: Credentials,
    request: &InspectionRequest,
    tags: bool,
    budget: &Budget,
) -> LoginOutcome {
    let session = match Session::open(endpoint, credentials, budget).await {
        Ok(session) => session,
        Err(error) => return LoginOutcome::Failed(error),
    };
    let seen = collect(&session, request, tags, budget).await;
    session.close().await;
    seen.map_or_else(LoginOutcome::Failed, |seen| LoginOutcome::Succeeded(Box::new(seen)))
}
