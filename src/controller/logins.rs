//! Sessions with vCenters, shared by all connections with the same account, and the one place where a login is made.

use super::connections::claim;
use super::memory::Connection;
use super::{Context, now};
use crate::api::{CredentialStatus, VsphereCloudConfig};
use crate::reconcile::connection::{self, Inputs, Login, Question};
use crate::reconcile::login::{self, Decision, Key, TagRefusals};
use crate::runtime::metrics::OpenSession;
use crate::vcenter::{Endpoint, Session, SessionError, VcenterFacts};
use futures::future::join_all;
use jiff::Timestamp;
use kube::ResourceExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Everything that is known of each login. Each has a lock of its own, so a vCenter that hangs delays its own connections only.
#[derive(Default)]
pub(super) struct Logins(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<Entry>>>>);

/// What is known of one login.
#[derive(Default)]
struct Entry {
    /// What came of it in this process, which is newer than what any watch shows.
    record: Option<CredentialStatus>,
    /// Sessions by the way that leads there: the same vCenter may be trusted in several.
    sessions: Vec<Open>,
    /// What came of logins at the service for tags.
    tags: Option<TagRefusals>,
}

/// A session that is kept.
struct Open {
    endpoint: Endpoint,
    session: Session,
    since: Timestamp,
    /// Counts it as long as it is kept.
    _counted: OpenSession,
}

impl Logins {
    fn entry(&self, key: &Key) -> Arc<tokio::sync::Mutex<Entry>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.clone()).or_default().clone()
    }

    /// Forgets a login that no connection uses any more. Its sessions end.
    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Ends all sessions.
    pub(super) async fn close(&self) {
        let all: Vec<_> = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
            .map(|(_, e)| e)
            .collect();
        join_all(all.iter().map(|entry| async {
            let entry = entry.lock().await;
            join_all(entry.sessions.iter().map(|open| open.session.close())).await;
        }))
        .await;
    }
}

/// What a login would be for this connection; `None` without credentials.
pub(super) fn key(inputs: &Inputs, facts: &VcenterFacts) -> Option<Key> {
    Some(Key::of(inputs.credentials.as_ref().ok()?, facts))
}

/// Reads what is asked for of a vCenter, in a session that is there or in a new one if that may be tried.
pub(super) async fn look(
    context: &Context,
    object: &mut VsphereCloudConfig,
    inputs: &Inputs,
    facts: &VcenterFacts,
    memory: &mut Connection,
    others: &[VsphereCloudConfig],
    question: &Question,
) -> Login {
    let (Some(key), Some(endpoint)) = (key(inputs, facts), connection::endpoint(object, inputs)) else {
        return Login::NotTried;
    };
    let entry = context.logins.entry(&key);
    let mut entry = entry.lock().await;
    // The old session ends before the new one begins: there is never more than one.
    let known = entry.sessions.iter().position(|open| open.endpoint == endpoint);
    if let Some(at) = known.filter(|at| login::is_old(entry.sessions[*at].since, now())) {
        entry.sessions.remove(at).session.close().await;
    }
    if !entry.sessions.iter().any(|open| open.endpoint == endpoint)
        && let Some(told) = log_in(context, object, inputs, facts, memory, others, &key, &mut entry).await
    {
        return told;
    }
    let Some(at) = entry.sessions.iter().position(|open| open.endpoint == endpoint) else {
        return Login::NotTried;
    };
    let refusals = entry.tags.unwrap_or_else(|| {
        let own = TagRefusals::recorded(&key, std::slice::from_ref(object), now());
        if own == TagRefusals::default() {
            TagRefusals::recorded(&key, others, now())
        } else {
            own
        }
    });
    let may = refusals.allow(now());
    let read = connection::read(&entry.sessions[at].session, question, may).await;
    let refused = may && read.as_ref().is_ok_and(connection::Seen::tags_refused);
    entry.tags = Some(if refused { refusals.and_one(now()) } else { refusals });
    match read {
        Ok(seen) => Login::In(Box::new(seen)),
        Err(error) => {
            if error.is_rejection() || matches!(error, SessionError::Lost { .. }) {
                entry.sessions.remove(at);
            }
            judged(&key, &mut entry, None, error)
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
    others: &[VsphereCloudConfig],
    key: &Key,
    entry: &mut Entry,
) -> Option<Login> {
    let (Ok(found), Some(endpoint)) = (&inputs.credentials, connection::endpoint(object, inputs)) else {
        return Some(Login::NotTried);
    };
    let records = match &entry.record {
        Some(record) => vec![record.clone()],
        None => [key.records(std::slice::from_ref(object)), key.records(others)].concat(),
    };
    let claimed = match login::decide(key, &records, now()) {
        Decision::Wait(record) => return Some(Login::Waits(record)),
        Decision::Again => None,
        Decision::Claim(record) => {
            if let Err(error) = claim(context, object, facts, &record, memory).await {
                tracing::warn!(connection = %object.name_any(), error = %crate::api::chain(&error), "a login waits until it can be written down");
                return Some(Login::NotTried);
            }
            entry.record = Some(record.clone());
            Some(record)
        }
    };
    match Session::open(endpoint.clone(), found.credentials.clone(), connection::DEADLINE).await {
        Ok(session) => {
            tracing::info!(connection = %object.name_any(), user = key.user, "logged in");
            entry.record = Some(CredentialStatus {
                verified: Some(key.version.clone()),
                ..key.untried()
            });
            entry.sessions.push(Open {
                endpoint,
                session,
                since: now(),
                _counted: context.metrics.session(),
            });
            None
        }
        Err(error) => {
            tracing::warn!(connection = %object.name_any(), user = key.user, error = %crate::api::chain(&error), "the login failed");
            Some(judged(key, entry, claimed, error))
        }
    }
}

/// Keeps what the vCenter has decided about the credentials.
fn judged(key: &Key, entry: &mut Entry, claimed: Option<CredentialStatus>, error: SessionError) -> Login {
    if error.is_rejection() {
        let mut record = claimed.unwrap_or_else(|| login::begun(key, None, now()));
        record.refused = Some(login::reason(&error).as_str().to_owned());
        entry.record = Some(record.clone());
        return Login::Waits(record);
    }
    match claimed {
        // It may have been counted there: it is not tried again at once.
        Some(record) => Login::Waits(record),
        None => Login::Failed(error),
    }
}
