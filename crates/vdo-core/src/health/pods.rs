// SPDX-License-Identifier: Apache-2.0
//! Finds the pod that is furthest from ready, and describes its failure: container state, exit code or scheduling.

use crate::manifest::Object;
use serde_json::Value;
use std::fmt;
use vdo_api::types::count;

/// The rank of a container that ended and is not started again yet.
const ENDED: u8 = 1;

/// What is wrong with a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodFailure {
    /// 0 is worst.
    rank: u8,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// What happened to which container; `None` when the pod has found no node.
    pub container: Option<ContainerFailure>,
    /// What the kubelet or the scheduler says of it; may be empty.
    pub message: String,
}

/// What is wrong with a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerFailure {
    /// Its name.
    pub name: String,
    /// The word of the kubelet: `CrashLoopBackOff`, `ImagePullBackOff`, or what it is doing.
    pub state: String,
    /// How it ended last.
    pub ended: Option<Ended>,
    /// How often it was started again. A new number means that there is a new end to learn about.
    pub restarts: i64,
}

/// The end of a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ended {
    /// Its exit code.
    pub code: i64,
    /// The word of the kubelet where it says more than the code, such as `OOMKilled`.
    pub reason: String,
    /// What it left behind as its termination message, with whatever secrets are in it; may be empty.
    pub message: String,
}

impl PodFailure {
    /// Whether the container is still there as it ended; else another has been or will be started in its place.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.rank == ENDED
    }

    /// Whether a container ended by itself, so that its log may say why.
    #[must_use]
    pub fn crashed(&self) -> bool {
        self.container.as_ref().is_some_and(|c| c.ended.is_some())
    }
}

impl fmt::Display for PodFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pod {}/{}", self.namespace, self.pod)?;
        match &self.container {
            None => write!(f, " cannot be scheduled")?,
            Some(c) => {
                write!(f, ": container {} {}", c.name, c.state)?;
                match &c.ended {
                    Some(end) if end.reason.is_empty() => write!(f, ", last exit code {}", end.code)?,
                    Some(end) => write!(f, ", last exit code {} ({})", end.code, end.reason)?,
                    None => {}
                }
            }
        }
        if self.message.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.message)
        }
    }
}

/// The pod that is furthest from ready: the container, what it is doing, its exit code, or why the pod finds no node. `None`
/// when no pod says anything beyond "not yet". The containers of a pod that is being deleted end on request.
#[must_use]
pub fn worst_pod<'a>(pods: impl IntoIterator<Item = &'a Object>) -> Option<PodFailure> {
    pods.into_iter().filter(|pod| !pod.is_terminating()).filter_map(failure).min()
}

fn failure(pod: &Object) -> Option<PodFailure> {
    pod.container_statuses()
        .filter_map(|status| of_container(pod, status))
        .min()
        .or_else(|| unscheduled(pod))
}

fn pod_failure(pod: &Object, rank: u8, container: Option<ContainerFailure>, message: &str) -> PodFailure {
    PodFailure {
        rank,
        namespace: pod.namespace().to_owned(),
        pod: pod.name().to_owned(),
        uid: pod.uid().to_owned(),
        container,
        message: message.trim().to_owned(),
    }
}

fn of_container(pod: &Object, status: &Value) -> Option<PodFailure> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let container = |state: String, ended| ContainerFailure {
        name: text(status, "name"),
        state,
        ended,
        restarts: status.get("restartCount").and_then(Value::as_i64).unwrap_or(0),
    };
    let last = ended(status.pointer("/lastState/terminated"));
    if let Some(waiting) = status.pointer("/state/waiting") {
        let reason = text(waiting, "reason");
        if !matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing") {
            // The kubelet's own words here are how long it pauses, which changes all the time and says nothing.
            let message = if reason == "CrashLoopBackOff" {
                String::new()
            } else {
                text(waiting, "message")
            };
            return Some(pod_failure(pod, 0, Some(container(format!("is in {reason}"), last)), &message));
        }
    }
    if let Some(end) = ended(status.pointer("/state/terminated")) {
        return Some(pod_failure(pod, ENDED, Some(container("ended".into(), Some(end))), ""));
    }
    // Up again, until the next time.
    let ready = status.get("ready").and_then(Value::as_bool) == Some(true);
    last.filter(|_| !ready)
        .map(|end| pod_failure(pod, 2, Some(container("was restarted".into(), Some(end))), ""))
}

/// An end that was a failure.
fn ended(terminated: Option<&Value>) -> Option<Ended> {
    let terminated = terminated?;
    let code = terminated.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0)?;
    let text = |key: &str| terminated.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(Ended {
        code,
        reason: Some(text("reason"))
            .filter(|reason| *reason != "Error")
            .unwrap_or_default()
            .to_owned(),
        message: text("message").to_owned(),
    })
}

fn unscheduled(pod: &Object) -> Option<PodFailure> {
    let conditions = pod.value().pointer("/status/conditions").and_then(Value::as_array)?;
    let is = |c: &Value, key: &str, value: &str| c.get(key).and_then(Value::as_str) == Some(value);
    let found = conditions
        .iter()
        .find(|c| is(c, "type", "PodScheduled") && is(c, "status", "False"))?;
    let message = found.get("message").and_then(Value::as_str).unwrap_or("no node fits");
    let message = format!(
        "{}; for details, run: kubectl describe pod -n {} {}",
        first_clause(message),
        pod.namespace(),
        pod.name()
    );
    Some(pod_failure(pod, 3, None, &message))
}

/// As much of the scheduler's message as says why: without its words on preemption, and only the first reasons.
fn first_clause(message: &str) -> String {
    const REASONS: usize = 2;
    let message = message
        .split(" preemption:")
        .next()
        .unwrap_or_default()
        .trim_end_matches([' ', '.']);
    let reasons: Vec<&str> = message.split(", ").collect();
    match reasons.len() {
        few if few <= REASONS => message.to_owned(),
        all => format!("{}, and {}", reasons[..REASONS].join(", "), count(all - REASONS, "more reason")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: Value) -> Object {
        Object::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "status": status}))
            .expect("a pod")
    }

    fn one(status: Value) -> Option<String> {
        worst_pod([&pod(json!({"containerStatuses": [status]}))]).map(|found| found.to_string())
    }

    #[test]
    fn pod_failure_several_pods_reports_worst_cause() {
        let healthy = pod(json!({"containerStatuses": [{"name": "c", "ready": true, "state": {"running": {}}}]}));
        let starting = pod(json!({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]}));
        let unscheduled = pod(json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]}));
        let crashing = pod(
            json!({"containerStatuses": [{"name": "syncer", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, "lastState": {"terminated": {"exitCode": 2, "reason": "Error"}}}]}),
        );
        let say = |pods: &[&Object]| worst_pod(pods.iter().copied()).map(|found| found.to_string());
        assert_eq!(say(&[&healthy, &starting]), None);
        assert_eq!(
            say(&[&healthy, &unscheduled]).as_deref(),
            Some("pod n/p cannot be scheduled: 0/4 nodes are available; for details, run: kubectl describe pod -n n p")
        );
        assert_eq!(
            say(&[&unscheduled, &healthy, &crashing]).as_deref(),
            Some("pod n/p: container syncer is in CrashLoopBackOff, last exit code 2")
        );
        assert!(worst_pod([&crashing]).is_some_and(|found| found.crashed()));
        let mut deleted = crashing.value().clone();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(worst_pod([&Object::new(deleted).expect("a pod")]).is_none());
        assert!(worst_pod([&unscheduled]).is_some_and(|found| !found.crashed()));
    }

    #[test]
    fn scheduler_message_is_cut_after_two_reasons() {
        for (message, expected) in [
            ("0/4 nodes are available", "0/4 nodes are available"),
            (
                "0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
                "0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) didn't match Pod's node affinity/selector",
            ),
            (
                "0/9 nodes are available: 1 Insufficient cpu, 2 Insufficient memory, 3 node(s) were unschedulable, 3 Too many pods.",
                "0/9 nodes are available: 1 Insufficient cpu, 2 Insufficient memory, and 2 more reasons",
            ),
        ] {
            assert_eq!(first_clause(message), expected);
        }
    }

    #[test]
    fn pod_failure_each_container_state_is_described() {
        for (status, expected) in [
            (
                json!({"name": "c", "ready": true, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}),
                None,
            ),
            (
                json!({"name": "c", "ready": false, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}),
                Some("pod n/p: container c was restarted, last exit code 137 (OOMKilled)"),
            ),
            (
                json!({"name": "c", "state": {"terminated": {"exitCode": 255, "reason": "Error"}}}),
                Some("pod n/p: container c ended, last exit code 255"),
            ),
            (
                json!({"name": "c", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}),
                None,
            ),
            (
                json!({"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"registry.example/x:1\""}}}),
                Some("pod n/p: container c is in ImagePullBackOff: Back-off pulling image \"registry.example/x:1\""),
            ),
            (
                json!({"name": "c", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"x\" not found"}}}),
                Some("pod n/p: container c is in CreateContainerConfigError: secret \"x\" not found"),
            ),
        ] {
            assert_eq!(one(status.clone()).as_deref(), expected, "{status}");
        }
    }
}
