//! One inspection of a vCenter from beginning to end, for callers that keep no session between inspections.

use super::{Inputs, collect, endpoint, probe};
use jiff::Timestamp;
use vdo_api::api::VsphereCloudConfig;
use vdo_api::facts::Credentials;
use vdo_vsphere::vcenter::{Budget, Endpoint, Session};
use vdo_vsphere::vsphere::lockout::{self, Decision, Key, TagRefusals};
use vdo_vsphere::vsphere::{Inspection, InspectionRequest, LoginOutcome, ProbeOutcome, RegisteredVolume, SessionError};

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

/// Every volume that the vCenter of a connection has registered under a cluster id; `None` where no login may be made now.
///
/// # Errors
/// When the vCenter does not answer, refuses the login, or has no service for container volumes.
pub async fn registered_volumes(
    object: &VsphereCloudConfig,
    inputs: &Inputs,
    (connections, now): (&[VsphereCloudConfig], Timestamp),
    cluster_id: &str,
    budget: &Budget,
) -> Result<Option<Vec<RegisteredVolume>>, SessionError> {
    let ProbeOutcome::Asked(answer) = probe(object, inputs, budget).await else {
        return Ok(None);
    };
    let (Ok(facts), Some(endpoint), Ok(found)) = (&*answer, endpoint(object, inputs), &inputs.credentials) else {
        return Ok(None);
    };
    let key = Key::of(found, facts);
    if !matches!(lockout::decide(&key, &key.records(connections), now), Decision::Proceed) {
        return Ok(None);
    }
    let session = Session::open(endpoint, found.credentials.clone(), budget).await?;
    let volumes = session.volumes(cluster_id, budget).await;
    session.close().await;
    volumes.map(Some)
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
        match lockout::decide(&key, &key.records(connections), now) {
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
