// SPDX-License-Identifier: Apache-2.0
//! The operator's vCenter sessions, shared by all connections with the same account, and the only place where the operator logs in.

use super::loop_memory::{Connection, lock};
use super::vsphere_cloud_config::claim;
use super::{Context, now};
use crate::reconcile::connection::{self, Inputs};
use crate::runtime::metrics::OpenSession;
use futures::future::join_all;
use jiff::Timestamp;
use kube::ResourceExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use vdo_api::api::{Classify as _, CredentialStatus, VsphereCloudConfig};
use vdo_vsphere::vcenter::{Budget, Endpoint, Inspections, Session};
use vdo_vsphere::vsphere::login_retry::{self, Decision, Key, TagRefusals};
use vdo_vsphere::vsphere::session_renewal;
use vdo_vsphere::vsphere::{InspectionRequest, LoginOutcome, Readings, SessionError, VcenterFacts};

/// Everything that is known of each login, and who is inspected now.
#[derive(Default)]
pub(super) struct Sessions {
    pub(super) inspections: Inspections,
    entries: Mutex<HashMap<Key, Arc<Entry>>>,
}

/// What is known of one login. Only one login is made at a time; a vCenter that is read slowly keeps no other caller from reading another.
#[derive(Default)]
struct Entry {
    /// What came of it in this process, which is newer than what any watch shows.
    record: tokio::sync::Mutex<Option<CredentialStatus>>,
    /// Sessions by the way that leads there: the same vCenter may be trusted in several.
    sessions: Mutex<Vec<Arc<Open>>>,
    /// What came of logins at the service for tags.
    tags: Mutex<Option<TagRefusals>>,
    /// Whether a login succeeded there. Until one has, the connection that tries holds it: that bounds the attempts, also those under another name
    /// of the vCenter.
    let_in: tokio::sync::Mutex<bool>,
}

impl Entry {
    /// The session with this endpoint.
    fn open(&self, endpoint: &Endpoint) -> Option<Arc<Open>> {
        lock(&self.sessions).iter().find(|open| open.endpoint == *endpoint).cloned()
    }

    /// Takes it out; it ends when no one uses it any more.
    fn take(&self, endpoint: &Endpoint) -> Option<Arc<Open>> {
        let mut sessions = lock(&self.sessions);
        let at = sessions.iter().position(|open| open.endpoint == *endpoint)?;
        Some(sessions.remove(at))
    }
}

/// A session that is kept.
struct Open {
    endpoint: Endpoint,
    session: Session,
    since: Timestamp,
    /// Counts it as long as it is kept.
    _counted: OpenSession,
}

impl Sessions {
    fn entry(&self, key: &Key) -> Arc<Entry> {
        lock(&self.entries).entry(key.clone()).or_default().clone()
    }

    /// Forgets a login that no connection uses any more. Its sessions end.
    pub(super) fn forget(&self, key: &Key) {
        lock(&self.entries).remove(key);
    }

    /// Ends all sessions.
    pub(super) async fn close(&self) {
        let entries: Vec<_> = lock(&self.entries).drain().map(|(_, entry)| entry).collect();
        let open: Vec<_> = entries
            .iter()
            .flat_map(|entry| std::mem::take(&mut *lock(&entry.sessions)))
            .collect();
        join_all(open.iter().map(|open| open.session.close())).await;
    }
}

/// What a login would be for this connection; `None` without credentials.
pub(super) fn key(inputs: &Inputs, facts: &VcenterFacts) -> Option<Key> {
    Some(Key::of(inputs.credentials.as_ref().ok()?, facts))
}

/// Reads what the request names from a vCenter: in the open session, or in a new one where a login may be tried.
#[expect(clippy::too_many_arguments, reason = "it is one step of an inspection")]
pub(super) async fn inspect(
    context: &Context,
    object: &mut VsphereCloudConfig,
    inputs: &Inputs,
    facts: &VcenterFacts,
    memory: &mut Connection,
    others: &[Arc<VsphereCloudConfig>],
    request: &InspectionRequest,
    budget: &Budget,
) -> LoginOutcome {
    let (Some(key), Some(endpoint)) = (key(inputs, facts), connection::endpoint(object, inputs)) else {
        return LoginOutcome::NotTried;
    };
    let entry = context.sessions.entry(&key);
    // The old session ends before the new one begins: there is never more than one.
    if entry.open(&endpoint).is_some_and(|open| session_renewal::is_old(open.since, now()))
        && let Some(old) = entry.take(&endpoint)
    {
        old.session.close().await;
    }
    let open = match entry.open(&endpoint) {
        Some(open) => open,
        None => match log_in(context, object, inputs, facts, memory, others, &key, &entry, budget).await {
            Ok(open) => open,
            Err(reported) => return reported,
        },
    };
    let asks = !request.requirements.all_categories().is_empty();
    let first = match asks {
        true => Some(entry.let_in.lock().await).filter(|let_in| !**let_in),
        false => None,
    };
    let known = *lock(&entry.tags);
    let refusals = known.unwrap_or_else(|| {
        let own = TagRefusals::recorded(&key, std::slice::from_ref(object));
        if own == TagRefusals::default() {
            TagRefusals::recorded(&key, others)
        } else {
            own
        }
    });
    let may = refusals.allow();
    let read = connection::collect(&open.session, request, may, budget).await;
    let refused = may && read.as_ref().is_ok_and(Readings::tags_refused);
    *lock(&entry.tags) = Some(if refused { refusals.and_one() } else { refusals });
    if let Some(mut let_in) = first {
        *let_in = may && read.as_ref().is_ok_and(|seen| seen.tagging.is_ok());
    }
    match read {
        Ok(seen) => LoginOutcome::Succeeded(Box::new(seen)),
        Err(error) => {
            if error.ends_session() {
                entry.take(&endpoint);
            }
            judged(&key, &mut *entry.record.lock().await, None, error)
        }
    }
}

/// Makes the login, or says why not.
#[expect(clippy::too_many_arguments, reason = "it is one step of look")]
async fn log_in(
    context: &Context,
    object: &mut VsphereCloudConfig,
    inputs: &Inputs,
    facts: &VcenterFacts,
    memory: &mut Connection,
    others: &[Arc<VsphereCloudConfig>],
    key: &Key,
    entry: &Entry,
    budget: &Budget,
) -> Result<Arc<Open>, LoginOutcome> {
    let (Ok(found), Some(endpoint)) = (&inputs.credentials, connection::endpoint(object, inputs)) else {
        return Err(LoginOutcome::NotTried);
    };
    let mut record = entry.record.lock().await;
    let records = match &*record {
        Some(known) => vec![known.clone()],
        None => [key.records(std::slice::from_ref(object)), key.records(others)].concat(),
    };
    let claimed = match login_retry::decide(key, &records, now()) {
        Decision::Wait(known) => return Err(LoginOutcome::Postponed(known)),
        Decision::Proceed => None,
        Decision::RecordFirst(begun) => {
            if let Err(error) = claim(context, object, facts, &begun, memory).await {
                tracing::warn!(connection = %object.name_any(), error = %vdo_api::api::chain(&error), "the login is postponed until the attempt can be recorded");
                // The record may be stored although its answer was lost. No password was sent, so it counts for nothing here.
                *record = Some(login_retry::tried(&records).cloned().unwrap_or_else(|| key.untried()));
                return Err(LoginOutcome::NotTried);
            }
            *record = Some(begun.clone());
            Some(begun)
        }
    };
    match Session::open(endpoint.clone(), found.credentials.clone(), budget).await {
        Ok(session) => {
            tracing::info!(connection = %object.name_any(), user = key.user, "logged in");
            *record = Some(CredentialStatus {
                verified: Some(key.version.clone()),
                ..key.untried()
            });
            let open = Arc::new(Open {
                endpoint,
                session,
                since: now(),
                _counted: context.metrics.session(),
            });
            lock(&entry.sessions).push(open.clone());
            Ok(open)
        }
        Err(error) => {
            tracing::warn!(connection = %object.name_any(), user = key.user, error = %vdo_api::api::chain(&error), "the login failed");
            Err(judged(key, &mut record, claimed, error))
        }
    }
}

/// Keeps what the vCenter has decided about the credentials.
fn judged(key: &Key, record: &mut Option<CredentialStatus>, claimed: Option<CredentialStatus>, error: SessionError) -> LoginOutcome {
    if error.is_rejection() {
        let mut refused = claimed.unwrap_or_else(|| login_retry::begun(key, None, now()));
        refused.refused = Some(error.reason().as_str().to_owned());
        *record = Some(refused.clone());
        return LoginOutcome::Postponed(refused);
    }
    match claimed {
        // It may have been counted there: it is not tried again at once.
        Some(begun) => LoginOutcome::Postponed(begun),
        None => LoginOutcome::Failed(error),
    }
}
