// SPDX-License-Identifier: Apache-2.0
//! Judges a DaemonSet or Deployment node by node, without nodes that are not alive or that the driver does not use.
//!
//! Such a node is counted apart; a missing pod there, or a rollout that waits for that node, is not a fault of the workload.

use super::rollout::{self, condition, is_seen, max_unavailable};
use super::scheduling::{Standing, is_apart, standing};
use super::{Pods, Verdict, assess};
use crate::manifest::Object;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::facts::Node;
use vdo_api::types::count;

/// A node that is counted apart, and why.
pub(super) type Apart = BTreeMap<String, String>;

/// The nodes that are counted apart for a workload: why, and whether they get it later.
type Beside<'a> = BTreeMap<&'a str, (String, bool)>;

/// What is found of one workload.
pub(super) struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Its pods on the nodes that count.
    pub pods: Pods,
    /// The nodes that are counted apart because of it.
    pub apart: Apart,
    /// The nodes that count, and on which it has no pod that is ready.
    pub ill: BTreeSet<String>,
    /// Nothing but nodes keeps it from being current: those in `ill`, and those that are counted apart.
    pub only_nodes: bool,
    /// What waits for the nodes that are counted apart, if something does.
    pub note: Option<String>,
}

/// The pods of a workload, by how they are.
struct Own<'a> {
    ready: BTreeMap<&'a str, &'a Object>,
    /// Not ready, on a node.
    placed: BTreeMap<&'a str, &'a Object>,
    /// Without a node.
    pending: i64,
}

impl<'a> Own<'a> {
    fn of(workload: &Object, pods: &[&'a Object]) -> Self {
        let mut own = Self {
            ready: BTreeMap::new(),
            placed: BTreeMap::new(),
            pending: 0,
        };
        for pod in pods.iter().filter(|pod| belongs(workload, pod)) {
            let node = pod.text("/spec/nodeName");
            match condition(pod, "Ready", "True").is_some() && !pod.is_terminating() {
                true => drop(own.ready.insert(node, pod)),
                false if node.is_empty() => own.pending += 1,
                false => drop(own.placed.insert(node, pod)),
            }
        }
        own
    }
}

fn belongs(workload: &Object, pod: &Object) -> bool {
    let labels = workload.value().pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    workload.namespace() == pod.namespace()
        && labels.is_some_and(|labels| labels.iter().all(|(key, value)| pod.label(key) == value.as_str()))
}

/// The nodes that count for a workload, and those that are counted apart. `optional` says of a node why it need not take part. Where no
/// node counts, all do: something has to be judged.
fn crowd<'a>(workload: &Object, nodes: &'a [Arc<Node>], optional: fn(&Node) -> Option<String>) -> (BTreeSet<&'a str>, Beside<'a>) {
    let daemon = workload.kind() == "DaemonSet";
    let (mut due, mut apart) = (BTreeSet::new(), BTreeMap::new());
    let Some(pod) = workload.pod_spec() else { return (due, apart) };
    for node in nodes {
        match (standing(pod, daemon, node), optional(node).filter(|_| daemon)) {
            (Standing::NotHere(_), _) => {}
            (_, Some(why)) => drop(apart.insert(node.name.as_str(), (why, false))),
            (Standing::Later(away), None) => drop(apart.insert(node.name.as_str(), (away.to_string(), true))),
            (Standing::Due, None) => drop(due.insert(node.name.as_str())),
        }
    }
    match due.is_empty() {
        true => (apart.keys().copied().collect(), BTreeMap::new()),
        false => (due, apart),
    }
}

/// The verdict on an object with its pods on these nodes.
pub(super) fn judge(object: &Object, pods: &[&Object], nodes: &[Arc<Node>], optional: fn(&Node) -> Option<String>) -> Judged {
    let (verdict, numbers) = match object.kind() {
        // A budget says what a drain may do. Its pods are judged with their workload, and those on dead nodes do not count there.
        "PodDisruptionBudget" => (Verdict::Current, Pods::default()),
        _ => assess(object),
    };
    let mut judged = Judged {
        verdict,
        pods: numbers,
        apart: Apart::new(),
        ill: BTreeSet::new(),
        only_nodes: false,
        note: None,
    };
    let is_workload = matches!(object.kind(), "DaemonSet" | "Deployment");
    if !is_workload || object.is_terminating() || !is_seen(object) || nodes.is_empty() {
        return judged;
    }
    let (due, apart) = crowd(object, nodes, optional);
    if apart.is_empty() && judged.verdict == Verdict::Current {
        return judged;
    }
    let own = Own::of(object, pods);
    match object.kind() {
        "DaemonSet" => daemon_set(object, &own, (&due, &apart), &mut judged),
        _ => deployment(object, &own, (&due, &apart), &mut judged),
    }
    judged
}

type Crowd<'a> = (&'a BTreeSet<&'a str>, &'a Beside<'a>);

fn daemon_set(object: &Object, own: &Own<'_>, (due, apart): Crowd<'_>, judged: &mut Judged) {
    let number = |field: &str| object.number(&format!("/status/{field}")).unwrap_or(0);
    let desired = number("desiredNumberScheduled");
    let is_newest = |pod: &Object| {
        let generation = object.text("/metadata/annotations/deprecated.daemonset.template.generation");
        pod.label("pod-template-generation").is_some_and(|of| of == generation)
    };
    let ready_apart = own.ready.iter().filter(|(node, _)| apart.contains_key(*node));
    let (newest, ready): (Vec<_>, Vec<_>) = ready_apart.map(|(node, pod)| (is_newest(pod), *node)).unzip();
    let all_apart = own.ready.iter().chain(&own.placed).filter(|(node, _)| apart.contains_key(*node));
    let updated_apart = all_apart.filter(|(_, pod)| is_newest(pod)).count();
    // The controller counts nodes that are not alive among those that it wants a pod on, and for a while those that are deleted.
    let wanted = desired.min(int(due.len()));
    let deleted = (desired - int(due.len() + apart.len())).max(0);
    let on_due = |field: &str, apart: usize| (number(field) - int(apart)).clamp(0, wanted);
    let (now, available) = (on_due("numberReady", ready.len()), on_due("numberAvailable", ready.len()));
    let updated = on_due("updatedNumberScheduled", updated_apart);
    (judged.verdict, judged.pods) = rollout::daemons(object, (now, wanted), updated, available);
    let done: BTreeSet<&str> = ready
        .iter()
        .zip(&newest)
        .filter(|(_, newest)| **newest)
        .map(|(node, _)| *node)
        .collect();
    for (node, (why, waits)) in apart {
        let later = if done.contains(node) || !waits {
            ""
        } else {
            " and is set up later"
        };
        judged.apart.insert((*node).to_owned(), format!("{why}{later}"));
    }
    judged.ill = due
        .iter()
        .filter(|node| !own.ready.contains_key(*node))
        .map(|node| (*node).to_owned())
        .collect();
    let lost = int(apart.len() - ready.len()) + deleted;
    let stops = lost + int(judged.ill.len()) >= max_unavailable(object, desired) && updated < wanted;
    if judged.verdict != Verdict::Current && available.min(now) >= wanted && stops && lost > 0 {
        judged.verdict = Verdict::Current;
        let others = count(usize::try_from(wanted - updated).unwrap_or(0), "older pod");
        let until = match apart.is_empty() {
            true => "the DaemonSet controller has noticed the deletion of a node",
            false => "its pods on these nodes are ready, or these nodes are deleted",
        };
        judged.note = Some(format!("{object} replaces {others} only when {until}"));
    }
    let behind = wanted - available.min(now);
    let moves = updated >= wanted || stops;
    judged.only_nodes = judged.verdict != Verdict::Current && moves && behind > 0 && behind <= int(judged.ill.len());
}

/// Pods of a Deployment on nodes that are not alive are moved to others, where there are others.
fn deployment(object: &Object, own: &Own<'_>, (due, apart): Crowd<'_>, judged: &mut Judged) {
    if judged.verdict == Verdict::Current || condition(object, "ReplicaFailure", "True").is_some() {
        return;
    }
    let lost: Vec<&str> = own.placed.keys().copied().filter(|node| apart.contains_key(node)).collect();
    let elsewhere = own.placed.keys().filter(|node| !apart.contains_key(*node)).count();
    let stranded = if is_apart(object) { own.pending.min(int(apart.len())) } else { 0 };
    let behind = judged.pods.wanted - judged.pods.ready;
    judged.ill = own
        .placed
        .keys()
        .filter(|node| due.contains(*node))
        .map(|node| (*node).to_owned())
        .collect();
    let blamed = !apart.is_empty() && elsewhere == 0 && own.pending == stranded && (!lost.is_empty() || stranded > 0);
    judged.only_nodes = !due.is_empty() && own.pending == stranded && behind > 0 && (blamed || elsewhere > 0);
    for (node, (why, _)) in apart.iter().filter(|(node, _)| lost.contains(node) || stranded > 0) {
        judged
            .apart
            .insert((*node).to_owned(), format!("{why} and gets its pod of {object} later"));
    }
    if blamed && judged.pods.ready > 0 && behind <= int(apart.len()) {
        let pods = Pods {
            wanted: judged.pods.ready,
            updated: judged.pods.updated.min(judged.pods.ready),
            ..judged.pods
        };
        judged.pods = pods;
        judged.verdict = Verdict::Current;
    }
}

fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
