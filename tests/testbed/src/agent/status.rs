// SPDX-License-Identifier: Apache-2.0
//! What a kubelet says about a pod in its status.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The state of a container.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Waiting { reason: &'static str, message: String },
    Running { since: Timestamp },
    Terminated(End),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
}

/// A container as the status shows it.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) image_id: String,
    pub(super) state: State,
    pub(super) last: Option<End>,
    pub(super) restarts: u32,
    pub(super) started: bool,
    pub(super) ready: bool,
}

/// Since when each condition is as it is.
#[derive(Debug, Default)]
pub(super) struct Conditions(BTreeMap<&'static str, (bool, Timestamp)>);

/// How long an ended container stays down, as the kubelet does it: the first restart comes at once.
#[derive(Debug, Default)]
pub(super) struct Backoff(Option<(Duration, Instant)>);

impl Backoff {
    /// The pause before the next start of a container that has ended.
    pub(super) fn pause(&mut self, now: Instant) -> Duration {
        let pause = match self.0 {
            Some((pause, last)) if now.duration_since(last) < 2 * LONGEST_PAUSE => pause,
            _ => Duration::ZERO,
        };
        let next = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.0 = Some((next, now));
        pause
    }
}

impl End {
    fn shown(&self) -> Value {
        let reason = if self.code == 0 { "Completed" } else { "Error" };
        json!({ "exitCode": self.code, "reason": reason, "startedAt": self.started, "finishedAt": self.finished })
    }
}

impl Shown {
    fn status(&self) -> Value {
        let state = match &self.state {
            State::Waiting { reason, message } if message.is_empty() => json!({ "waiting": { "reason": reason } }),
            State::Waiting { reason, message } => json!({ "waiting": { "reason": reason, "message": message } }),
            State::Running { since } => json!({ "running": { "startedAt": since } }),
            State::Terminated(end) => json!({ "terminated": end.shown() }),
        };
        let mut status = json!({
            "name": self.name,
            "image": self.image,
            "imageID": self.image_id,
            "restartCount": self.restarts,
            "started": self.started,
            "ready": self.ready,
            "state": state,
        });
        if let Some(last) = &self.last {
            status["lastState"] = json!({ "terminated": last.shown() });
        }
        status
    }
}

/// Whether every container is ready, and so the pod.
pub(super) fn ready(containers: &[Shown]) -> bool {
    containers.iter().all(|one| one.ready)
}

/// The phase: of the API's words, those that the containers of a pod without init containers of its own can lead to.
fn phase(containers: &[Shown], begun: bool, restarts: bool) -> &'static str {
    let ended = |one: &Shown| match &one.state {
        State::Terminated(end) => Some(end.code == 0),
        _ => None,
    };
    if !restarts && let Some(ends) = containers.iter().map(ended).collect::<Option<Vec<bool>>>() {
        return if ends.into_iter().all(|good| good) { "Succeeded" } else { "Failed" };
    }
    if begun { "Running" } else { "Pending" }
}

/// The patch of a pod's status. `begun` is whether each container was started at least once, `restarts` whether one that has ended will be.
pub(super) fn patch(
    containers: &[Shown],
    (begun, restarts): (bool, bool),
    ip: IpAddr,
    conditions: &mut Conditions,
    (since, now): (Timestamp, Timestamp),
) -> Value {
    let ready = ready(containers);
    let unready: Vec<&str> = containers.iter().filter(|one| !one.ready).map(|one| one.name.as_str()).collect();
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    let all = [
        ("PodReadyToStartContainers", true),
        ("Initialized", true),
        ("Ready", ready),
        ("ContainersReady", ready),
    ]
    .map(|(kind, holds)| {
        let known = conditions.0.get(kind).copied().filter(|(before, _)| *before == holds);
        let (_, at) = known.unwrap_or((holds, now));
        conditions.0.insert(kind, (holds, at));
        let mut condition = json!({
            "type": kind,
            "status": if holds { "True" } else { "False" },
            "lastTransitionTime": at,
            "reason": null,
            "message": null,
        });
        if !holds {
            condition["reason"] = "ContainersNotReady".into();
            condition["message"] = message.clone().into();
        }
        condition
    });
    json!({ "status": {
        "phase": phase(containers, begun, restarts),
        "startTime": since,
        "hostIP": "127.0.0.1",
        "hostIPs": [{ "ip": "127.0.0.1" }],
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
        "conditions": all,
        "containerStatuses": containers.iter().map(Shown::status).collect::<Vec<_>>(),
    } })
}

/// Whether a pod says something else about its readiness than this patch did: the node lifecycle controller says of every pod that it is
/// not ready while its node is late, and a kubelet takes that back.
pub(super) fn is_contradicted(pod: &Pod, patch: &Value) -> bool {
    let said = |kind: &str| {
        let all = patch["status"]["conditions"].as_array()?;
        all.iter().find(|one| one["type"] == kind)?["status"].as_str()
    };
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .filter_map(|one| Some((said(&one.type_)?, one.status.as_str())))
        .any(|(said, is)| said != is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn shown(state: State, ready: bool) -> Shown {
        Shown {
            name: "operator".into(),
            image: "i".into(),
            image_id: "d".into(),
            state,
            last: None,
            restarts: 0,
            started: ready,
            ready,
        }
    }

    #[test]
    fn pod_status_changed_by_another_is_written_again() {
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]}});
        let pod = |ready: &str| -> Pod {
            let conditions = json!([{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}]);
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": conditions}})).expect("a pod")
        };
        assert!(is_contradicted(&pod("False"), &patch));
        assert!(!is_contradicted(&pod("True"), &patch));
        assert!(!is_contradicted(&Pod::default(), &patch));
    }

    #[test]
    fn backoff_of_repeated_ends_doubles_and_is_forgotten() {
        let begin = Instant::now();
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..8).map(|_| backoff.pause(begin).as_secs()).collect();
        assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.pause(begin + Duration::from_secs(600)), Duration::ZERO);
    }

    #[test]
    fn patch_phase_and_readiness_follow_the_containers() {
        let end = |code| {
            State::Terminated(End {
                code,
                started: at(1),
                finished: at(2),
            })
        };
        let waiting = State::Waiting {
            reason: "ErrImagePull",
            message: String::new(),
        };
        for (state, ready, begun, restarts, phase) in [
            (waiting, false, false, true, "Pending"),
            (State::Running { since: at(1) }, true, true, true, "Running"),
            (end(1), false, true, true, "Running"),
            (end(1), false, true, false, "Failed"),
            (end(0), false, true, false, "Succeeded"),
        ] {
            let ip = "127.1.1.1".parse().expect("an address");
            let patch = patch(
                &[shown(state.clone(), ready)],
                (begun, restarts),
                ip,
                &mut Conditions::default(),
                (at(0), at(3)),
            );
            assert_eq!(patch["status"]["phase"], phase, "{state:?}");
            let conditions = patch["status"]["conditions"].as_array().expect("conditions").clone();
            let is_ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
            assert_eq!(is_ready, ready, "{state:?}");
        }
    }

    #[test]
    fn patch_condition_keeps_its_time_while_it_stays() {
        let mut conditions = Conditions::default();
        let ip = "127.1.1.1".parse().expect("an address");
        let mut time_of = |ready, now| {
            let one = shown(State::Running { since: at(1) }, ready);
            let patch = patch(&[one], (true, true), ip, &mut conditions, (at(0), at(now)));
            patch["status"]["conditions"][2]["lastTransitionTime"].clone()
        };
        let first = time_of(false, 10);
        assert_eq!(time_of(false, 20), first);
        assert_eq!(time_of(true, 30), json!(at(30)));
    }
}
