// SPDX-License-Identifier: Apache-2.0
//! Computes on which nodes a workload's pods may run, by node selector, affinity and taints, and why not on the others.

use crate::manifest::{Object, UNINITIALIZED};
use serde_json::{Map, Value};
use std::sync::Arc;
use vdo_api::facts::{Away, Node};

/// Whether a workload with a number of pods finds enough nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// How many nodes it needs: one for each pod when they must be apart, else one.
    pub needed: usize,
    /// How many nodes that are alive its pods may run on.
    pub eligible: usize,
    /// The nodes that its pods may run on later: the name of each, and why not now.
    pub later: Vec<(String, Away)>,
    /// Why other nodes do not do: the first few, each with its reason.
    pub refused: Vec<(String, String)>,
}

impl Placement {
    /// Whether its pods find nodes. Some may wait for nodes that are not alive, but not all; a node whose kubelet says that it is not ready is
    /// as good as one that is: before there is a pod network no node is.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        let soon = self.later.iter().filter(|(_, away)| *away == Away::NotReady).count();
        self.eligible + soon >= self.needed.min(1) && self.eligible + self.later.len() >= self.needed
    }
}

impl Placement {
    /// The nodes that its pods may run on later, each with why not now.
    #[must_use]
    pub fn later(&self) -> Vec<String> {
        self.later.iter().map(|(name, away)| format!("{name} {away}")).collect()
    }

    /// Why nodes do not do: those that may later, then the others.
    #[must_use]
    pub fn hindrances(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|(name, why)| format!("{name}: {why}"));
        self.later().into_iter().chain(refused).collect()
    }
}

/// Whether a node gets a pod of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It may run there, and the node is alive.
    Due,
    /// It may run there, and the node is not alive.
    Later(Away),
    /// It may not run there, and why.
    NotHere(String),
}

/// Taints that go away by themselves, and of which other conditions or [`Away`] tell.
const PASSING: [&str; 7] = [
    UNINITIALIZED,
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/out-of-service",
];

/// Taints that every pod of a DaemonSet tolerates: its controller adds the tolerations.
const OF_DAEMONS: [&str; 2] = ["node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure"];

/// The taint of a node whose machine is powered off.
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Nodes that a message names.
const NAMED: usize = 3;

/// On which nodes the pods of a Deployment may run: node selector, required node affinity, taints and tolerations, as the
/// scheduler judges them. What changes by the minute (load, free memory) is left out. `None` for other kinds: a DaemonSet
/// wants as many nodes as there are.
#[must_use]
pub fn placement(workload: &Object, nodes: &[Arc<Node>]) -> Option<Placement> {
    let pod = workload.pod_spec().filter(|_| workload.kind() == "Deployment")?;
    let replicas = workload.number("/spec/replicas").unwrap_or(1).max(0);
    let replicas = usize::try_from(replicas).unwrap_or(0);
    let needed = if is_apart(workload) { replicas } else { replicas.min(1) };
    let (mut eligible, mut later, mut refused) = (0, Vec::new(), Vec::new());
    for node in nodes {
        match standing(pod, false, node) {
            Standing::Due => eligible += 1,
            Standing::Later(away) => later.push((node.name.clone(), away)),
            Standing::NotHere(why) if refused.len() < NAMED => refused.push((node.name.clone(), why)),
            Standing::NotHere(_) => {}
        }
    }
    Some(Placement {
        needed,
        eligible,
        later,
        refused,
    })
}

/// Whether a node gets a pod, now or later. `daemon`: the pod is one of a DaemonSet, which tolerates more.
#[must_use]
pub(super) fn standing(pod: &Value, daemon: bool, node: &Node) -> Standing {
    match (refusal(pod, daemon, node), node.away) {
        (Some(why), _) => Standing::NotHere(why),
        (None, Some(away)) => Standing::Later(away),
        (None, None) => Standing::Due,
    }
}

/// Whether each pod must be on a node of its own.
pub(super) fn is_apart(workload: &Object) -> bool {
    let terms = workload
        .pod_spec()
        .and_then(|pod| pod.pointer("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"));
    terms
        .and_then(Value::as_array)
        .is_some_and(|terms| terms.iter().any(|term| text(term, "topologyKey") == "kubernetes.io/hostname"))
}

/// Why the pod may not run on the node.
pub(super) fn refusal(pod: &Value, daemon: bool, node: &Node) -> Option<String> {
    let selector = pod.get("nodeSelector").and_then(Value::as_object);
    for (key, wanted) in selector.into_iter().flatten() {
        let wanted = wanted.as_str().unwrap_or_default();
        if node.place.label(key) != Some(wanted) {
            return Some(format!("it lacks the label {key}={wanted}"));
        }
    }
    let terms = pod.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    if let Some(terms) = terms.and_then(Value::as_array)
        && !terms.iter().any(|term| term_fits(term, node))
    {
        return Some(format!("its labels do not match the node affinity{}", wanted_labels(terms)));
    }
    let tolerations: Vec<&Value> = pod.get("tolerations").and_then(Value::as_array).into_iter().flatten().collect();
    let passing = |key: &str| PASSING.contains(&key) || daemon && OF_DAEMONS.contains(&key) || node.away.is_some() && key == SHUTDOWN;
    node.place
        .taints
        .iter()
        .filter(|(key, ..)| !passing(key))
        .find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
        .map(|(key, value, effect)| {
            let value = if value.is_empty() { String::new() } else { format!("={value}") };
            format!("its taint {key}{value}:{effect} is not tolerated")
        })
}

/// A term fits when all of its expressions do; one without any fits nothing.
fn term_fits(term: &Value, node: &Node) -> bool {
    let list = |key: &str| term.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
    let name = |key: &str| (key == "metadata.name").then_some(node.name.as_str());
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|e| expression_fits(e, node.place.label(text(e, "key"))))
        && fields.iter().all(|e| expression_fits(e, name(text(e, "key"))))
}

fn expression_fits(expression: &Value, found: Option<&str>) -> bool {
    let values = expression.get("values").and_then(Value::as_array);
    let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = number(values.first().copied());
    match text(expression, "operator") {
        "In" => found.is_some_and(|found| values.contains(&found)),
        "NotIn" => found.is_none_or(|found| !values.contains(&found)),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => matches!((number(found), bound), (Some(found), Some(bound)) if found > bound),
        "Lt" => matches!((number(found), bound), (Some(found), Some(bound)) if found < bound),
        _ => false,
    }
}

fn tolerates(toleration: &Value, (key, value, effect): &(String, String, String)) -> bool {
    let (own_key, own_effect) = (text(toleration, "key"), text(toleration, "effect"));
    let exists = text(toleration, "operator") == "Exists";
    (own_effect.is_empty() || own_effect == effect)
        && ((own_key.is_empty() && exists) || own_key == key)
        && (exists || text(toleration, "value") == value)
}

/// The labels that the terms ask for, for a message.
fn wanted_labels(terms: &[Value]) -> String {
    let expressions = terms.iter().filter_map(|term| term.get("matchExpressions")?.as_array()).flatten();
    let keys: Vec<&str> = expressions.map(|e| text(e, "key")).collect();
    if keys.is_empty() {
        String::new()
    } else {
        format!(" (label keys: {})", keys.join(", "))
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    let map: Option<&Map<String, Value>> = value.as_object();
    map.and_then(|map| map.get(key)).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::facts::Place;

    fn node(name: &str, labels: &[(&str, &str)], taints: &[(&str, &str, &str)]) -> Arc<Node> {
        let own = |text: &&str| (*text).to_owned();
        let place = Place {
            labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            taints: taints
                .iter()
                .map(|(key, value, effect)| (own(key), own(value), own(effect)))
                .collect(),
        };
        Arc::new(Node {
            name: name.into(),
            place,
            ..Node::default()
        })
    }

    fn found(replicas: i64, pod: Value, nodes: &[Arc<Node>]) -> String {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "n"}, "spec": {"replicas": replicas, "template": {"spec": pod}}});
        let found = placement(&Object::new(object).expect("an object"), nodes).expect("a Deployment");
        let refused: Vec<String> = found.refused.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        format!("{} of {}; {}", found.eligible, found.needed, refused.join("; "))
    }

    #[test]
    fn placement_deployment_matches_scheduler_rules() {
        const ROLE: &str = "node-role.kubernetes.io/control-plane";
        let nodes = [
            node("cp-1", &[(ROLE, ""), ("n", "3")], &[(ROLE, "", "NoSchedule")]),
            node(
                "cp-2",
                &[(ROLE, "true")],
                &[
                    (ROLE, "", "NoSchedule"),
                    ("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"),
                ],
            ),
            node("w-1", &[("zone", "a")], &[]),
            node("w-2", &[("zone", "b")], &[("dedicated", "db", "NoExecute")]),
        ];
        let tolerant = json!([{"key": ROLE, "operator": "Exists", "effect": "NoSchedule"}]);
        let on = |expressions: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}, "tolerations": [{"operator": "Exists"}]});
        for (replicas, pod, expected) in [
            (
                1,
                json!({}),
                "1 of 1; cp-1: its taint node-role.kubernetes.io/control-plane:NoSchedule is not tolerated; cp-2: its taint node-role.kubernetes.io/control-plane:NoSchedule is not tolerated; w-2: its taint dedicated=db:NoExecute is not tolerated",
            ),
            // The label of the original has no value; some distributions write one. A passing taint keeps no node out.
            (
                2,
                json!({"nodeSelector": {ROLE: ""}, "tolerations": tolerant}),
                "1 of 1; cp-2: it lacks the label node-role.kubernetes.io/control-plane=; w-1: it lacks the label node-role.kubernetes.io/control-plane=; w-2: it lacks the label node-role.kubernetes.io/control-plane=",
            ),
            (
                3,
                json!({"tolerations": [{"operator": "Exists"}], "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}}}),
                "4 of 3; ",
            ),
            (
                0,
                json!({"nodeSelector": {"none": "x"}}),
                "0 of 0; cp-1: it lacks the label none=x; cp-2: it lacks the label none=x; w-1: it lacks the label none=x",
            ),
            (
                1,
                json!({"tolerations": [{"key": "dedicated", "value": "db", "effect": "NoExecute"}, {"key": ROLE, "operator": "Exists"}]}),
                "4 of 1; ",
            ),
            (
                1,
                json!({"tolerations": [{"key": "dedicated", "value": "other"}, {"key": ROLE, "operator": "Exists"}]}),
                "3 of 1; w-2: its taint dedicated=db:NoExecute is not tolerated",
            ),
            (
                1,
                on(json!([{"key": ROLE, "operator": "Exists"}])),
                "2 of 1; w-1: its labels do not match the node affinity (label keys: node-role.kubernetes.io/control-plane); w-2: its labels do not match the node affinity (label keys: node-role.kubernetes.io/control-plane)",
            ),
            (
                1,
                on(json!([{"key": "zone", "operator": "In", "values": ["a"]}])),
                "1 of 1; cp-1: its labels do not match the node affinity (label keys: zone); cp-2: its labels do not match the node affinity (label keys: zone); w-2: its labels do not match the node affinity (label keys: zone)",
            ),
            (
                1,
                on(json!([{"key": "zone", "operator": "NotIn", "values": ["a"]}])),
                "3 of 1; w-1: its labels do not match the node affinity (label keys: zone)",
            ),
            (
                1,
                on(json!([{"key": "zone", "operator": "DoesNotExist"}, {"key": "n", "operator": "Gt", "values": ["2"]}])),
                "1 of 1; cp-2: its labels do not match the node affinity (label keys: zone, n); w-1: its labels do not match the node affinity (label keys: zone, n); w-2: its labels do not match the node affinity (label keys: zone, n)",
            ),
            (
                1,
                on(json!([])),
                "0 of 1; cp-1: its labels do not match the node affinity; cp-2: its labels do not match the node affinity; w-1: its labels do not match the node affinity",
            ),
        ] {
            assert_eq!(found(replicas, pod.clone(), &nodes), expected, "{pod}");
        }
    }

    #[test]
    fn placement_counts_nodes_that_are_not_alive_apart() {
        let with = |name: &str, away: Option<Away>, taint: &str| {
            let mut node = Arc::unwrap_or_clone(node(name, &[], &[(taint, "", "NoSchedule")]));
            node.place.taints.retain(|(key, ..)| !key.is_empty());
            node.away = away;
            Arc::new(node)
        };
        let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}}});
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "n"}, "spec": {"replicas": 3, "template": {"spec": apart}}});
        let object = Object::new(object).expect("an object");
        let alive = |n: usize| (0..n).map(|n| with(&format!("a-{n}"), None, "")).collect::<Vec<_>>();
        for (alive_ones, others, enough) in [
            (3, vec![], true),
            (2, vec![], false),
            (2, vec![with("b", Some(Away::Cordoned), "node.kubernetes.io/unschedulable")], true),
            (2, vec![with("b", Some(Away::Unreachable), SHUTDOWN)], true),
            (2, vec![with("b", None, SHUTDOWN)], false),
            (1, vec![with("b", Some(Away::NotReady), "node.kubernetes.io/not-ready")], false),
            (
                0,
                vec![
                    with("b", Some(Away::NotReady), ""),
                    with("c", Some(Away::NotReady), ""),
                    with("d", Some(Away::NotReady), ""),
                ],
                true,
            ),
        ] {
            let nodes: Vec<_> = alive(alive_ones).into_iter().chain(others).collect();
            let found = placement(&object, &nodes).expect("a Deployment");
            assert_eq!((found.eligible, found.is_enough()), (alive_ones, enough), "{nodes:?}");
        }
        let pressed = with("p", None, "node.kubernetes.io/disk-pressure");
        assert_eq!(standing(&json!({}), true, &pressed), Standing::Due);
        assert!(matches!(standing(&json!({}), false, &pressed), Standing::NotHere(_)));
    }

    #[test]
    fn placement_daemonset_is_not_judged() {
        let nodes = [node("w-1", &[], &[])];
        let daemon_set =
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {"template": {"spec": {}}}});
        assert_eq!(placement(&Object::new(daemon_set).expect("an object"), &nodes), None);
    }
}
