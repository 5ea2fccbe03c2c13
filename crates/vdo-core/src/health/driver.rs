// SPDX-License-Identifier: Apache-2.0
//! Decides whether a driver is healthy from all its objects, pods, endpoints and nodes; `kstatus.rs` judges single objects.

use super::scheduling::{Standing, refusal, standing};
use super::workload_by_node::{Apart, judge};
use super::{PodFailure, Pods, Verdict, admission_remedy, log_excerpt, unserved, worst_pod};
use crate::drivers::{self, OnNodes, STORAGE};
use crate::manifest::Object;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::{self, Node};
use vdo_api::types::{ObjectId, name_list, verb};

/// Whether a driver works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverHealth {
    /// It does.
    pub ready: bool,
    /// Why, as a reason.
    pub reason: Reason,
    /// Why, as a sentence.
    pub message: String,
    /// Its pods.
    pub pods: Pods,
    /// The pod that is furthest from ready, if one says why.
    pub failure: Option<PodFailure>,
    /// A DaemonSet or StatefulSet of which pods are not even made, or a pod that does not start. Unlike a Deployment, it has no condition that
    /// says why; an event does.
    pub unmade: Option<Unmade>,
    /// The nodes, one by one.
    pub nodes: NodesFound,
}

/// What a driver is on single nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodesFound {
    /// On how many nodes a driver of the table has done its work, of how many that count for it.
    pub done: Option<(usize, usize)>,
    /// The nodes that count and on which it is not done, and what each waits for.
    pub waiting: Vec<(String, &'static str)>,
    /// The nodes that are counted apart, each with the reason.
    pub apart: Vec<(String, String)>,
    /// The nodes that count and on which it does not work.
    pub ill: BTreeSet<String>,
    /// Nothing but nodes keeps it from being ready: those in `ill`, and those that are counted apart.
    pub only_nodes: bool,
}

impl NodesFound {
    /// Whether nothing keeps the driver from being ready but nodes that are not alive, and nodes on which it did not work before.
    #[must_use]
    pub fn is_as_before(&self, before: &[String]) -> bool {
        self.only_nodes && self.ill.iter().all(|node| before.contains(node))
    }
}

/// A workload of which pods are not made, or a pod that does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmade {
    /// The workload, or the pod.
    pub workload: ObjectId,
    /// Its UID, by which its events are known.
    pub uid: String,
}

impl Unmade {
    fn of(object: &Object) -> Self {
        Self {
            workload: object.id(),
            uid: object.uid().to_owned(),
        }
    }
}

/// The longest part of a refusal that is shown: one of OpenShift has a reason for each of its constraints.
const REFUSAL: usize = 600;

impl DriverHealth {
    /// Says why pods are not even made, in the words of the API server.
    #[must_use]
    pub fn with_refusal(mut self, why: &str) -> Self {
        if let Some(unmade) = &self.unmade {
            let cut = why.char_indices().nth(REFUSAL).map_or(why, |(end, _)| &why[..end]);
            let more = if cut.len() < why.len() { "…" } else { "" };
            self.reason = Reason::PodsFailing;
            self.message = match unmade.workload.kind() {
                "Pod" => format!("{} does not start: {cut}{more}", unmade.workload),
                _ => {
                    let remedy = admission_remedy(&unmade.workload, why);
                    format!("{} cannot create its pods: FailedCreate: {cut}{more}; {remedy}", unmade.workload)
                }
            };
        }
        self
    }

    /// Adds what the log of the failing container said last, else what it left as its termination message, without these secrets; and
    /// how to read all of it.
    #[must_use]
    pub fn with_log_excerpt(mut self, words: Option<&str>, secrets: &[&str]) -> Self {
        let Some((pod, container)) = self.failure.as_ref().and_then(|t| Some((t, t.container.as_ref()?))) else {
            return self;
        };
        let left = || log_excerpt(&container.ended.as_ref()?.message, secrets);
        if let Some(words) = words.map(str::to_owned).or_else(left) {
            self.message.push_str(&format!("; its last output: {words}"));
        }
        if container.ended.is_some() {
            let read = format!(
                "; for the complete log, run: kubectl logs --previous -n {} {} -c {}",
                pod.namespace, pod.pod, container.name
            );
            self.message.push_str(&read);
        }
        self
    }
}

/// Why a driver whose workloads are as specified does not run: one that is scaled to zero, or nodes of which none takes its pods. A
/// DaemonSet for other nodes than there are, such as those with Windows, is as it should be beside pods that run.
fn without_pods(driver: &str, objects: &[&Object], total: Pods, nodes: &[Arc<Node>]) -> Option<(Reason, String)> {
    let is_scaled = |object: &&&Object| matches!(object.kind(), "Deployment" | "StatefulSet") && object.number("/spec/replicas") == Some(0);
    if let Some(scaled) = objects.iter().find(is_scaled) {
        return Some((
            Reason::WaitingForPods,
            format!("{scaled} is scaled to 0 replicas, so it has no pods"),
        ));
    }
    let mut all = objects.iter().filter(|object| object.kind() == "DaemonSet");
    let daemons = all.clone().next()?;
    let wants_some = match drivers::known(driver) {
        // Without pods on nodes it does nothing for them.
        Some(_) => all.any(|object| object.number("/status/desiredNumberScheduled").unwrap_or(0) > 0),
        None => total.wanted > 0,
    };
    if wants_some || nodes.is_empty() {
        return None;
    }
    let of = vdo_api::types::count(nodes.len(), "node");
    let why = nodes
        .iter()
        .find_map(|node| Some((node, refusal(daemons.pod_spec()?, true, node)?)));
    let why = why.map_or(String::new(), |(node, why)| format!("; node {}: {why}", node.name));
    Some((
        Reason::NoEligibleNode,
        format!("{daemons} has no pods, because none of {of} accepts them{why}"),
    ))
}

/// What a driver of the table does on nodes, node by node. One that works by its pods does so where one of its DaemonSets may run.
fn on_nodes(rule: &OnNodes, objects: &[&Object], nodes: &[Arc<Node>], found: &mut NodesFound, apart: &mut Apart) {
    let daemons: Vec<_> = objects
        .iter()
        .filter(|object| object.kind() == "DaemonSet")
        .filter_map(|object| object.pod_spec())
        .collect();
    let keys: BTreeSet<String> = objects.iter().flat_map(|object| drivers::topology_keys(object)).collect();
    let everywhere = !rule.by_pods || daemons.is_empty();
    let is_here = |node: &Node, pod: &serde_json::Value| !matches!(standing(pod, true, node), Standing::NotHere(_));
    let takes = |node: &Node| everywhere || daemons.iter().any(|pod| is_here(node, pod));
    let candidates: Vec<&Node> = nodes.iter().map(|node| &**node).filter(|node| takes(node)).collect();
    let due: Vec<&Node> = facts::due(candidates.iter().copied()).collect();
    let names: BTreeSet<&str> = due.iter().map(|node| node.name.as_str()).collect();
    for node in candidates.iter().filter(|node| !names.contains(node.name.as_str())) {
        let lacks = (rule.waits_for)(node, &keys).is_some();
        match node.other_provider().is_some() {
            true => drop(apart.entry(node.name.clone()).or_insert_with(|| node.apart().unwrap_or_default())),
            false if lacks => {
                let why = node.apart().unwrap_or_default();
                apart
                    .entry(node.name.clone())
                    .or_insert_with(|| format!("{why} and is set up later"));
            }
            false => {}
        }
    }
    let waiting = due
        .iter()
        .filter_map(|node| Some((node.name.clone(), (rule.waits_for)(node, &keys)?)));
    found.waiting = waiting.collect();
    found.done = Some((due.len() - found.waiting.len(), due.len()));
}

/// The nodes that are counted apart, for the end of a message.
fn beside(apart: &[(String, String)]) -> String {
    const NAMED: usize = 3;
    let mut text = String::new();
    for (node, why) in apart.iter().take(NAMED) {
        text.push_str(&format!("; node {node} {why}"));
    }
    match apart.len().saturating_sub(NAMED) {
        0 => text,
        more => format!(
            "{text}; {} not counted",
            format_args!("{more} {}", verb(more, "more node is", "more nodes are"))
        ),
    }
}

/// What its workloads are, on the nodes that count.
struct Workloads {
    total: Pods,
    waiting: Option<(Reason, String)>,
    nodes: NodesFound,
    apart: Apart,
    notes: String,
}

fn workloads(driver: &str, objects: &[&Object], pods: &[&Object], nodes: &[Arc<Node>]) -> Workloads {
    // The driver of volumes works on machines of a vCenter only; on others its pods may do as they like.
    let optional: fn(&Node) -> Option<String> = match driver == STORAGE.name {
        true => |node| node.other_provider().and_then(|_| node.apart()),
        false => |_| None,
    };
    let mut all = Workloads {
        total: Pods::default(),
        waiting: None,
        nodes: NodesFound {
            only_nodes: true,
            ..NodesFound::default()
        },
        apart: Apart::new(),
        notes: String::new(),
    };
    for object in objects {
        let judged = judge(object, pods, nodes, optional);
        all.total.add(judged.pods);
        all.apart.extend(judged.apart);
        all.nodes.ill.extend(judged.ill);
        all.notes.extend(judged.note.map(|note| format!("; {note}")));
        if let Verdict::Waiting(reason, message) = judged.verdict {
            all.nodes.only_nodes &= judged.only_nodes;
            all.waiting.get_or_insert((reason, message));
        }
    }
    all
}

/// The health of a driver from its live objects, its pods, the EndpointSlices of its webhooks and the nodes.
///
/// Beyond its workloads, a driver of the table works when it has done its work on every node that counts: one that is alive, and where it
/// may run.
#[must_use]
pub fn driver_health(driver: &str, objects: &[&Object], pods: &[&Object], slices: &[&Object], nodes: &[Arc<Node>]) -> DriverHealth {
    let Workloads {
        total,
        waiting,
        nodes: mut found,
        mut apart,
        notes,
    } = workloads(driver, objects, pods, nodes);
    let rule = drivers::known(driver).map(|driver| &driver.on_nodes);
    if let Some(rule) = rule {
        on_nodes(rule, objects, nodes, &mut found, &mut apart);
        found.ill.extend(found.waiting.iter().map(|(node, _)| node.clone()));
    }
    let due = |pod: &&Object| !apart.contains_key(pod.text("/spec/nodeName"));
    let failure = waiting.as_ref().and_then(|_| worst_pod(pods.iter().copied().filter(due)));
    let pending = match failure {
        None => pods.iter().copied().filter(due).find_map(pending),
        Some(_) => None,
    };
    found.apart = apart.into_iter().collect();
    let beside = beside(&found.apart);
    let health = |ready, reason, message| DriverHealth {
        ready,
        reason,
        message,
        pods: total,
        failure: None,
        unmade: None,
        nodes: found.clone(),
    };
    let alone = |reason, message| {
        let mut health = health(false, reason, message);
        health.nodes.only_nodes = false;
        health
    };
    if let Some((reason, message)) = waiting {
        let (reason, message) = match &failure {
            Some(pod) if pod.container.is_none() => (reason, format!("{message}; {pod}")),
            Some(pod) => (Reason::PodsFailing, format!("{message}; {pod}")),
            None => (reason, message),
        };
        return DriverHealth {
            failure,
            unmade: objects.iter().find_map(|object| unmade(object)).or(pending),
            ..health(false, reason, format!("{message}{beside}"))
        };
    }
    if let Some((reason, message)) = without_pods(driver, objects, total, nodes) {
        return alone(reason, message);
    }
    if let Some(message) = unserved(objects, slices) {
        return alone(Reason::WebhookNotServed, message);
    }
    if let (Some(rule), Some((_, all)), false) = (rule, found.done, found.waiting.is_empty()) {
        let names: Vec<&str> = found.waiting.iter().map(|(node, _)| node.as_str()).collect();
        let message = format!(
            "{} of {all} nodes are not yet {}: {}{beside}",
            names.len(),
            rule.done,
            name_list(&names)
        );
        return health(false, rule.reason, message);
    }
    let message = format!("{} of {} pods are ready{beside}{notes}", total.ready, total.wanted);
    health(true, Reason::Healthy, message)
}

/// That a DaemonSet has fewer pods than nodes that should have one, or a StatefulSet fewer than its replicas.
fn unmade(object: &Object) -> Option<Unmade> {
    let number = |field: &str| object.number(&format!("/status/{field}"));
    let lacks = match object.kind() {
        "DaemonSet" => number("currentNumberScheduled")? < number("desiredNumberScheduled")?,
        "StatefulSet" => number("replicas").unwrap_or(0) < object.number("/spec/replicas").unwrap_or(1),
        _ => false,
    };
    lacks.then(|| Unmade::of(object))
}

/// That a pod has a node and does not start there: a volume that is not mounted, a network that is not set up. Only an event says why.
fn pending(pod: &Object) -> Option<Unmade> {
    let waits = pod.text("/status/phase") == "Pending" && !pod.text("/spec/nodeName").is_empty() && !pod.is_terminating();
    waits.then(|| Unmade::of(pod))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::facts::Place;

    fn workload(kind: &str, replicas: i64, selector: &str) -> Object {
        let status = json!({"observedGeneration": 1, "desiredNumberScheduled": replicas, "numberReady": replicas, "numberAvailable": replicas,
            "updatedNumberScheduled": replicas, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas});
        Object::new(
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "n", "generation": 1},
            "spec": {"replicas": replicas, "template": {"spec": {"nodeSelector": {"role": selector}}}}, "status": status}),
        )
        .expect("an object")
    }

    fn nodes(labels: &[&str]) -> Vec<Arc<Node>> {
        let node = |label: &&str| {
            Arc::new(Node {
                name: format!("node-{label}"),
                place: Place {
                    labels: [("role".to_owned(), (*label).to_owned())].into(),
                    ..Place::default()
                },
                ..Node::default()
            })
        };
        labels.iter().map(node).collect()
    }

    #[test]
    fn driver_health_of_refused_pods_is_in_the_words_of_the_api_server() {
        let mut refused = workload("DaemonSet", 2, "worker").into_value();
        for (field, value) in [("currentNumberScheduled", 0), ("numberReady", 0), ("numberAvailable", 0)] {
            refused["status"][field] = value.into();
        }
        let refused = Object::new(refused).expect("an object");
        let health = driver_health("further", &[&refused], &[], &[], &nodes(&["worker"]));
        assert_eq!(
            health.unmade.as_ref().map(|unmade| unmade.workload.to_string()).as_deref(),
            Some("DaemonSet n/x")
        );
        let said = health.with_refusal("Error creating: pods \"x-\" is forbidden");
        assert_eq!(said.reason, Reason::PodsFailing);
        assert_eq!(
            said.message,
            "DaemonSet n/x cannot create its pods: FailedCreate: Error creating: pods \"x-\" is forbidden; change the policy that the \
             message names, or change the settings of the driver to meet this policy"
        );
        let long = driver_health("further", &[&refused], &[], &[], &[]).with_refusal(&"ä".repeat(700));
        assert!(
            long.message.contains("ä…; change the policy") && long.message.chars().count() < 800,
            "{}",
            long.message
        );
        let short = Object::new(
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "n", "generation": 1},
            "spec": {"replicas": 2}, "status": {"observedGeneration": 1, "replicas": 1}}),
        )
        .expect("an object");
        let found = driver_health("further", &[&short], &[], &[], &[]).unmade;
        assert_eq!(found.map(|unmade| unmade.workload.to_string()).as_deref(), Some("StatefulSet n/s"));
        let made = workload("DaemonSet", 2, "worker");
        assert_eq!(driver_health("further", &[&made], &[], &[], &[]).unmade, None);
    }

    /// The kubelet says in an event, and nowhere else, why a pod that has a node does not start.
    #[test]
    fn driver_health_of_pending_pod_is_in_the_words_of_its_event() {
        let mut waits = workload("DaemonSet", 1, "worker").into_value();
        waits["status"]["currentNumberScheduled"] = 1.into();
        waits["status"]["numberReady"] = 0.into();
        let waits = Object::new(waits).expect("an object");
        let pod = |node: &str| {
            let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "u"},
                "spec": {"nodeName": node}, "status": {"phase": "Pending"}});
            Object::new(value).expect("an object")
        };
        let health = driver_health("further", &[&waits], &[&pod("w")], &[], &nodes(&["worker"]));
        assert_eq!(health.reason, Reason::WaitingForPods);
        let said = health.with_refusal("FailedMount: secret \"x\" not found");
        assert_eq!(said.message, "Pod n/p does not start: FailedMount: secret \"x\" not found");
        assert_eq!(said.reason, Reason::PodsFailing);
        assert_eq!(driver_health("further", &[&waits], &[&pod("")], &[], &[]).unmade, None);
    }

    /// A driver of which no pod is wanted does not work, unless there is no node at all.
    #[test]
    fn driver_health_without_pods_is_not_healthy() {
        let none = workload("DaemonSet", 0, "master");
        let some = workload("DaemonSet", 2, "worker");
        let scaled = workload("Deployment", 0, "worker");
        let runs = workload("Deployment", 1, "worker");
        for (objects, labels, expected) in [
            (
                vec![&none],
                &["worker"][..],
                Some("DaemonSet n/x has no pods, because none of 1 node accepts them; node node-worker: it lacks the label role=master"),
            ),
            (vec![&none], &[], None),
            (vec![&none, &some], &["worker"], None),
            (vec![&none, &runs], &["worker"], None),
            (
                vec![&scaled],
                &["worker"],
                Some("Deployment n/x is scaled to 0 replicas, so it has no pods"),
            ),
            (
                vec![&scaled, &some],
                &["worker"],
                Some("Deployment n/x is scaled to 0 replicas, so it has no pods"),
            ),
            (vec![&runs], &["worker"], None),
            (vec![], &["worker"], None),
        ] {
            let health = driver_health("further", &objects, &[], &[], &nodes(labels));
            assert_eq!((!health.ready).then_some(health.message.as_str()), expected, "{labels:?}");
            if expected.is_some() {
                let no_node = expected.is_some_and(|message| message.contains("none of 1 node"));
                assert_eq!(health.reason == Reason::NoEligibleNode, no_node, "{}", health.reason);
            }
        }
    }
}
