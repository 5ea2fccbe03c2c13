// SPDX-License-Identifier: Apache-2.0
//! Tries one pod of each workload in a dry run, since quotas, limits, Pod Security and webhooks judge pods (effect).
//!
//! The server checks these rules only when a pod is created. The interpretation of an answer is pure.

use super::cache::DryRunCache;
use crate::cluster::{ClusterError, DryRunResult};
use crate::reconcile::Ports;
use vdo_core::manifest::{DEFAULT_ACCOUNT, Object, changes_pods, trial_pod};

/// What an answer to a pod means for its workload.
enum Verdict {
    /// Nothing is against it.
    Accepted,
    /// Its ServiceAccount is not there yet.
    NoAccount,
    /// This right is missing, so it is not known.
    NoRight(ClusterError),
    /// The change waits for this.
    Refused(ClusterError),
}

/// Tries a pod of a workload as the server would store it, if its pods change. With `early` its ServiceAccount comes with the same plan. A right
/// that is missing keeps nothing back.
///
/// # Errors
/// When the server would not let the pods in, or does not answer.
pub(super) async fn try_pod(
    ports: &Ports,
    memory: &DryRunCache,
    (next, early): (&Object, bool),
    live: Option<&Object>,
) -> Result<(), ClusterError> {
    if !changes_pods(live, next) || memory.lacks_pods(next.namespace()) {
        return Ok(());
    }
    let accounts = [None, Some(DEFAULT_ACCOUNT)];
    for account in accounts.into_iter().skip(usize::from(early)) {
        let Some(pod) = trial_pod(next, account) else { return Ok(()) };
        let answer = ports.writer.dry_run(&pod, true).await;
        match verdict(next, live, account.is_some(), answer) {
            Verdict::Accepted => return Ok(()),
            // Everything else about the pod can be asked already.
            Verdict::NoAccount => {}
            Verdict::NoRight(error) => {
                memory.forgo_pods(next.namespace(), &error);
                return Ok(());
            }
            Verdict::Refused(error) => return Err(error),
        }
    }
    Ok(())
}

fn verdict(next: &Object, live: Option<&Object>, substituted: bool, answer: Result<DryRunResult, ClusterError>) -> Verdict {
    let error = match answer {
        Ok(_) => return Verdict::Accepted,
        Err(error) => error,
    };
    let refused = |source| {
        Verdict::Refused(ClusterError::PodDenied {
            workload: next.id(),
            source,
        })
    };
    match error {
        error @ ClusterError::Forbidden { .. } => Verdict::NoRight(error),
        ClusterError::Denied { source, .. } if source.message.contains("error looking up service account") => Verdict::NoAccount,
        // Which constraints a pod may use depends on its account.
        ClusterError::Denied { source, .. } if substituted && source.message.contains("security context constraint") => Verdict::Accepted,
        // The pods that are replaced may be those that fill it, or no pod may be wanted of this workload.
        ClusterError::Denied { source, .. } if source.message.contains("exceeded quota") && live.is_some() => Verdict::Accepted,
        ClusterError::Denied { source, .. } => refused(source),
        ClusterError::Refused { source, .. } if source.code == 422 => refused(source),
        error if !error.is_lasting() => Verdict::Refused(error),
        // Its namespace is not there yet, or it is terminating: the answer about the workload names it.
        _ => Verdict::Accepted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ApiMessage;
    use serde_json::json;
    use vdo_api::types::ObjectId;

    fn workload(pods: i64) -> Object {
        let value = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"},
            "status": {"currentNumberScheduled": pods}});
        Object::new(value).expect("an object")
    }

    fn said(code: u16, message: &str) -> ApiMessage {
        ApiMessage {
            code,
            message: message.into(),
        }
    }

    #[test]
    fn pod_answer_holds_the_change_only_where_pods_would_not_come() {
        let id = || ObjectId::new("", "Pod", "n", "vdo-dry-run");
        let denied = |message: &str| ClusterError::Denied {
            id: id(),
            source: said(403, message),
        };
        let refused = |code, message: &str| ClusterError::Refused {
            id: id(),
            source: said(code, message),
        };
        let full = "exceeded quota: few";
        let unknown = "error looking up service account n/own: serviceaccount \"own\" not found";
        let constraint = "unable to validate against any security context constraint: []";
        let (idle, running) = (workload(0), workload(2));
        for (live, substituted, error, expected) in [
            (None, false, denied("violates PodSecurity"), "refused"),
            (Some(&running), false, denied("denied request"), "refused"),
            (None, false, denied(full), "refused"),
            (Some(&idle), false, denied(full), "accepted"),
            (Some(&running), false, denied(full), "accepted"),
            (None, false, denied(unknown), "no account"),
            (None, false, denied(constraint), "refused"),
            (None, true, denied(constraint), "accepted"),
            (
                None,
                false,
                refused(422, "requests: must be less than or equal to cpu limit"),
                "refused",
            ),
            (None, false, refused(404, "namespaces \"n\" not found"), "accepted"),
            (None, false, ClusterError::NotLeading { what: "x".into() }, "refused"),
        ] {
            let shown = format!("{error:?} {substituted}");
            let found = match verdict(&workload(0), live, substituted, Err(error)) {
                Verdict::Accepted => "accepted",
                Verdict::NoAccount => "no account",
                Verdict::NoRight(_) => "no right",
                Verdict::Refused(_) => "refused",
            };
            assert_eq!(found, expected, "{shown}");
        }
    }
}
