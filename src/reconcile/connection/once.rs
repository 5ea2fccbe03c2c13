//! One look at a vCenter from beginning to end, for whoever keeps no session between looks.

use super::{Inputs, Login, Look, Probe, Question, endpoint, probe, read};
use crate::api::VsphereCloudConfig;
use crate::facts::Credentials;
use crate::reconcile::login::{self, Decision, Key, TagRefusals};
use crate::vcenter::{Budget, Endpoint, Session};
use jiff::Timestamp;

/// Whether a login may be made.
#[derive(Debug, Clone, Copy)]
pub enum Permission<'a> {
    /// Somebody has just given the credentials and wants them tried.
    Given,
    /// As these connections have it in their status: only a version of the Secret that has logged in before is sent again. One that
    /// was refused waits, and one that was never tried is left to the operator, so that nothing here adds to what locks an account.
    Recorded(&'a [VsphereCloudConfig], Timestamp),
}

/// Asks the vCenter of a connection everything, and leaves no session behind.
pub async fn once(object: &VsphereCloudConfig, inputs: &Inputs, question: Question, permission: Permission<'_>) -> Look {
    let budget = Budget::default();
    let probe = probe(object, inputs, &budget).await;
    let login = log_in(object, inputs, &question, &probe, permission, &budget).await;
    Look { question, probe, login }
}

async fn log_in(
    object: &VsphereCloudConfig,
    inputs: &Inputs,
    question: &Question,
    probe: &Probe,
    permission: Permission<'_>,
    budget: &Budget,
) -> Login {
    let Probe::Asked(answer) = probe else { return Login::NotTried };
    let (Ok(facts), Some(endpoint), Ok(found)) = (&**answer, endpoint(object, inputs), &inputs.credentials) else {
        return Login::NotTried;
    };
    let mut tags = true;
    if let Permission::Recorded(connections, now) = permission {
        let key = Key::of(found, facts);
        tags = TagRefusals::recorded(&key, connections, now).allow(now);
        match login::decide(&key, &key.records(connections), now) {
            Decision::Again => {}
            Decision::Wait(record) => return Login::Waits(record),
            Decision::Claim(_) => return Login::NotTried,
        }
    }
    read_once(endpoint, found.credentials.clone(), question, tags, budget).await
}

/// Logs in, reads, and logs out.
pub(super) async fn read_once(endpoint: Endpoint, credentials: Credentials, question: &Question, tags: bool, budget: &Budget) -> Login {
    let session = match Session::open(endpoint, credentials, budget).await {
        Ok(session) => session,
        Err(error) => return Login::Failed(error),
    };
    let seen = read(&session, question, tags, budget).await;
    session.close().await;
    seen.map_or_else(Login::Failed, |seen| Login::In(Box::new(seen)))
}
