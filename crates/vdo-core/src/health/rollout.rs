// SPDX-License-Identifier: Apache-2.0
//! Judges a workload, pod or Job by the replica numbers in its own status; `workload_by_node.rs` judges a workload node by node.

use super::admission_remedy;
use crate::manifest::Object;
use serde_json::Value;
use std::fmt;
use vdo_api::api::Reason;
use vdo_api::types::count;

/// The state of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As specified.
    Current,
    /// On its way, or never to arrive: the reason tells.
    Waiting(Reason, String),
}

/// Pods that are ready, of pods that should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pods {
    /// Ready.
    pub ready: i64,
    /// Wanted.
    pub wanted: i64,
    /// At the newest revision of their workload, of those that are wanted.
    pub updated: i64,
}

impl Pods {
    /// How many are at the newest revision, as long as that is not all of them.
    #[must_use]
    pub fn rollout(&self) -> Option<String> {
        (self.updated < self.wanted).then(|| format!("{}/{}", self.updated, self.wanted))
    }
}

impl fmt::Display for Pods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ready, self.wanted)
    }
}

impl Pods {
    /// Counts others, too.
    pub(super) fn add(&mut self, other: Self) {
        self.ready = self.ready.saturating_add(other.ready);
        self.wanted = self.wanted.saturating_add(other.wanted);
        self.updated = self.updated.saturating_add(other.updated);
    }
}

/// The verdict on a workload, and its pods. `None` for what is none.
pub(super) fn assess(object: &Object) -> Option<(Verdict, Pods)> {
    let number = |pointer: &str| object.number(pointer).unwrap_or(0);
    let (updated, available, pods) = match object.kind() {
        "DaemonSet" => {
            let (wanted, updated) = (number("/status/desiredNumberScheduled"), number("/status/updatedNumberScheduled"));
            let pods = Pods {
                ready: number("/status/numberReady"),
                wanted,
                updated: at_newest(object, updated, wanted),
            };
            (updated, number("/status/numberAvailable"), pods)
        }
        "Deployment" | "StatefulSet" | "ReplicaSet" => {
            let updated = number(if object.kind() == "ReplicaSet" {
                "/status/fullyLabeledReplicas"
            } else {
                "/status/updatedReplicas"
            });
            let wanted = object.number("/spec/replicas").unwrap_or(1);
            let pods = Pods {
                ready: number("/status/readyReplicas"),
                wanted,
                updated: at_newest(object, updated, wanted),
            };
            (updated, number("/status/availableReplicas"), pods)
        }
        "Pod" => {
            let wanted = i64::from(object.text("/status/phase") != "Succeeded");
            let pods = Pods {
                ready: i64::from(condition(object, "Ready", "True").is_some()),
                wanted,
                updated: wanted,
            };
            return Some((pod(object), pods));
        }
        "Job" => return Some((job(object), Pods::default())),
        _ => return None,
    };
    Some((rollout(object, updated, available, pods), pods))
}

/// The verdict on a DaemonSet by these numbers of pods instead of those of its status.
pub(super) fn daemons(object: &Object, (ready, wanted): (i64, i64), updated: i64, available: i64) -> (Verdict, Pods) {
    let pods = Pods {
        ready,
        wanted,
        updated: at_newest(object, updated, wanted),
    };
    (rollout(object, updated, available, pods), pods)
}

/// Whether the controller of a workload has seen its newest specification.
pub(super) fn is_seen(object: &Object) -> bool {
    object.number("/status/observedGeneration") == object.number("/metadata/generation")
}

/// How many pods of a workload its controller lets be unavailable while it replaces others; at least one, without which no rollout
/// would move.
pub(super) fn max_unavailable(object: &Object, wanted: i64) -> i64 {
    let pointer = match object.kind() {
        "Deployment" => "/spec/strategy/rollingUpdate/maxUnavailable",
        _ => "/spec/updateStrategy/rollingUpdate/maxUnavailable",
    };
    let number = match object.value().pointer(pointer) {
        Some(Value::String(share)) => share
            .strip_suffix('%')
            .and_then(|share| share.parse::<i64>().ok())
            .map(|share| wanted.saturating_mul(share) / 100),
        Some(value) => value.as_i64(),
        None => None,
    };
    number.unwrap_or(1).max(1)
}

/// How many of the wanted pods count as being at the newest revision: none, as long as the controller has not seen that there is one;
/// all, where older ones may stay.
fn at_newest(object: &Object, updated: i64, wanted: i64) -> i64 {
    if object.number("/status/observedGeneration") != object.number("/metadata/generation") {
        return 0;
    }
    updated.min(wanted) + (wanted - newest(object, wanted))
}

fn rollout(object: &Object, updated: i64, available: i64, pods: Pods) -> Verdict {
    let waiting = |message: String| Verdict::Waiting(Reason::WaitingForPods, message);
    if object.number("/status/observedGeneration") != object.number("/metadata/generation") {
        return waiting(format!("{object} is not yet processed by its controller"));
    }
    // Its pods are not even made: an admission policy, a quota, a missing service account.
    if let Some(why) = condition(object, "ReplicaFailure", "True") {
        let remedy = admission_remedy(object.identity(), &why);
        return Verdict::Waiting(Reason::PodsFailing, format!("{object} cannot create its pods: {why}; {remedy}"));
    }
    if let Some(why) = condition(object, "Progressing", "False") {
        return Verdict::Waiting(Reason::PodsFailing, format!("{object} makes no progress: {why}"));
    }
    let newest = newest(object, pods.wanted);
    if updated < newest {
        return waiting(format!("{object} has {updated} of {newest} pods at its newest revision"));
    }
    let all = object.number("/status/replicas").unwrap_or(0);
    // Where pods of an older revision may stay, only more than are wanted are too many.
    let expected = if newest < pods.wanted { pods.wanted } else { updated };
    let surplus = usize::try_from(all - expected).unwrap_or(0);
    if surplus > 0 && object.kind() != "DaemonSet" {
        return waiting(format!("{object} still has {} of an older revision", count(surplus, "pod")));
    }
    if available < pods.wanted || pods.ready < pods.wanted {
        return waiting(format!("{object} has {} of {} pods ready", pods.ready.min(available), pods.wanted));
    }
    match condition(object, "Available", "False") {
        Some(why) => waiting(format!("{object} is not available: {why}")),
        None => Verdict::Current,
    }
}

/// How many pods are to be at the newest revision: a partition holds some back, and `OnDelete` leaves it to the deletion of pods.
fn newest(object: &Object, wanted: i64) -> i64 {
    let strategy = "/spec/updateStrategy";
    if object.text(&format!("{strategy}/type")) == "OnDelete" {
        return 0;
    }
    let partition = object.number(&format!("{strategy}/rollingUpdate/partition")).unwrap_or(0);
    (wanted - partition).max(0)
}

/// A pod of its own, which no workload looks after.
fn pod(object: &Object) -> Verdict {
    let why = |kind: &str, status: &str| condition(object, kind, status).map_or(String::new(), |why| format!(": {why}"));
    match object.text("/status/phase") {
        "Succeeded" => Verdict::Current,
        "Failed" => Verdict::Waiting(Reason::PodsFailing, format!("{object} failed")),
        _ if condition(object, "Ready", "True").is_some() => Verdict::Current,
        "Running" => Verdict::Waiting(Reason::WaitingForPods, format!("{object} is not ready{}", why("Ready", "False"))),
        _ => Verdict::Waiting(
            Reason::WaitingForPods,
            format!("{object} does not run yet{}", why("PodScheduled", "False")),
        ),
    }
}

fn job(object: &Object) -> Verdict {
    match (condition(object, "Failed", "True"), condition(object, "Complete", "True")) {
        (Some(why), _) => Verdict::Waiting(Reason::PodsFailing, format!("{object} failed: {why}")),
        (None, Some(_)) => Verdict::Current,
        (None, None) => Verdict::Waiting(Reason::WaitingForPods, format!("{object} has not finished yet")),
    }
}

/// Reason and message of a condition that has this status.
pub(super) fn condition(object: &Object, kind: &str, status: &str) -> Option<String> {
    let text = |c: &Value, key: &str| c.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let all = object.value().pointer("/status/conditions").and_then(Value::as_array)?;
    let found = all.iter().find(|c| text(c, "type") == kind && text(c, "status") == status)?;
    Some(format!("{}: {}", text(found, "reason"), text(found, "message")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(kind: &str, spec: serde_json::Value, status: serde_json::Value) -> String {
        let object = Object::new(json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "n", "generation": 2}, "spec": spec, "status": status}))
            .expect("an object");
        match assess(&object).unwrap_or((Verdict::Current, Pods::default())) {
            (Verdict::Current, pods) => format!("current {pods}"),
            (Verdict::Waiting(_, message), pods) => format!("{message} ({pods})"),
        }
    }

    #[test]
    fn kstatus_workload_rollout_each_status_gives_verdict() {
        let daemon_set = |status| verdict("DaemonSet", json!({}), status);
        let deployment = |status| verdict("Deployment", json!({"replicas": 2}), status);
        for (found, expected) in [
            (daemon_set(json!({})), "DaemonSet n/x is not yet processed by its controller (0/0)"),
            (
                daemon_set(
                    json!({"observedGeneration": 1, "desiredNumberScheduled": 1, "numberReady": 1, "numberAvailable": 1, "updatedNumberScheduled": 1}),
                ),
                "DaemonSet n/x is not yet processed by its controller (1/1)",
            ),
            (
                daemon_set(json!({"observedGeneration": 2, "desiredNumberScheduled": 0})),
                "current 0/0",
            ),
            (
                daemon_set(
                    json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "numberReady": 3, "numberAvailable": 3, "updatedNumberScheduled": 2}),
                ),
                "DaemonSet n/x has 2 of 3 pods at its newest revision (3/3)",
            ),
            (
                daemon_set(
                    json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "numberReady": 2, "numberAvailable": 2, "updatedNumberScheduled": 3}),
                ),
                "DaemonSet n/x has 2 of 3 pods ready (2/3)",
            ),
            (
                daemon_set(
                    json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "numberReady": 3, "numberAvailable": 3, "updatedNumberScheduled": 3}),
                ),
                "current 3/3",
            ),
            (
                deployment(json!({"observedGeneration": 2})),
                "Deployment n/x has 0 of 2 pods at its newest revision (0/2)",
            ),
            (
                deployment(
                    json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
                ),
                "Deployment n/x still has 1 pod of an older revision (2/2)",
            ),
            (
                deployment(
                    json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
                ),
                "current 2/2",
            ),
            (
                deployment(
                    json!({"observedGeneration": 2, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                    "message": "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\""}]}),
                ),
                "Deployment n/x cannot create its pods: FailedCreate: pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"; allow privileged pods in the namespace: kubectl label namespace n pod-security.kubernetes.io/enforce=privileged --overwrite (0/2)",
            ),
            (
                verdict(
                    "StatefulSet",
                    json!({"replicas": 1}),
                    json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}),
                ),
                "StatefulSet n/x has 0 of 1 pods ready (0/1)",
            ),
            (verdict("Job", json!({}), json!({})), "Job n/x has not finished yet (0/0)"),
            (
                verdict(
                    "Job",
                    json!({}),
                    json!({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}]}),
                ),
                "Job n/x failed: BackoffLimitExceeded: m (0/0)",
            ),
            (
                verdict("Job", json!({}), json!({"conditions": [{"type": "Complete", "status": "True"}]})),
                "current 0/0",
            ),
            (verdict("ConfigMap", json!({}), json!({})), "current 0/0"),
            (
                deployment(
                    json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
                    "conditions": [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "m"}]}),
                ),
                "Deployment n/x is not available: MinimumReplicasUnavailable: m (2/2)",
            ),
            (
                deployment(
                    json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                    "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "m"}]}),
                ),
                "Deployment n/x makes no progress: ProgressDeadlineExceeded: m (1/2)",
            ),
            (
                verdict(
                    "ReplicaSet",
                    json!({"replicas": 2}),
                    json!({"observedGeneration": 2, "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}),
                ),
                "ReplicaSet n/x has 1 of 2 pods ready (1/2)",
            ),
            (
                verdict(
                    "ReplicaSet",
                    json!({"replicas": 1}),
                    json!({"observedGeneration": 2, "replicas": 2, "fullyLabeledReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}),
                ),
                "ReplicaSet n/x still has 1 pod of an older revision (1/1)",
            ),
            (
                verdict(
                    "StatefulSet",
                    json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}),
                    json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 0, "readyReplicas": 3, "availableReplicas": 3}),
                ),
                "current 3/3",
            ),
            (
                verdict(
                    "StatefulSet",
                    json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}}),
                    json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 3, "availableReplicas": 3}),
                ),
                "StatefulSet n/x has 1 of 2 pods at its newest revision (3/3)",
            ),
            (
                verdict(
                    "StatefulSet",
                    json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}}),
                    json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3}),
                ),
                "current 3/3",
            ),
            (
                verdict(
                    "StatefulSet",
                    json!({"replicas": 1, "updateStrategy": {"type": "OnDelete"}}),
                    json!({"observedGeneration": 2, "replicas": 2, "readyReplicas": 1, "availableReplicas": 1}),
                ),
                "StatefulSet n/x still has 1 pod of an older revision (1/1)",
            ),
            (verdict("Pod", json!({}), json!({})), "Pod n/x does not run yet (0/1)"),
            (
                verdict(
                    "Pod",
                    json!({}),
                    json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}]}),
                ),
                "Pod n/x does not run yet: Unschedulable: m (0/1)",
            ),
            (
                verdict(
                    "Pod",
                    json!({}),
                    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "m"}]}),
                ),
                "Pod n/x is not ready: ContainersNotReady: m (0/1)",
            ),
            (
                verdict(
                    "Pod",
                    json!({}),
                    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
                ),
                "current 1/1",
            ),
            (verdict("Pod", json!({}), json!({"phase": "Succeeded"})), "current 0/0"),
            (verdict("Pod", json!({}), json!({"phase": "Failed"})), "Pod n/x failed (0/1)"),
        ] {
            assert_eq!(found, expected);
        }
    }
}
