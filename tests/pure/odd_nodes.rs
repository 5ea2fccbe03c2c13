// SPDX-License-Identifier: Apache-2.0
//! Nodes that are not alive, or of another provider, are never the only reason why a driver is not ready or why a change of it is given up,
//! and they are always named.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use vdo_api::api::{Reason, VDOConfigStatus};
use vdo_api::facts::{Away, Cluster, Node};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::health::{DriverHealth, driver_health};
use vdo_core::manifest::Object;
use vdo_core::status::{DriverReport, Report, fold};

const NS: &str = "vmware-system-csi";
const DAEMONS: &str = "node";

/// What a node of a random cluster is, and how the pod of the DaemonSet there is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Fine,
    /// Its pod keeps the older revision, because the controller may not replace it yet.
    Older,
    Dead(Away),
    Cordoned,
    /// Cordoned, without a pod.
    CordonedNew,
    Other,
    OtherDead,
    /// The selector leaves it out.
    Unselected,
}

impl Kind {
    const ODD: [Self; 6] = [
        Self::Dead(Away::NotReady),
        Self::Dead(Away::Unreachable),
        Self::Cordoned,
        Self::CordonedNew,
        Self::Other,
        Self::OtherDead,
    ];

    fn is_lost(self) -> bool {
        !matches!(self, Self::Fine | Self::Older | Self::Unselected | Self::Cordoned)
    }

    fn node(self, name: String) -> Arc<Node> {
        let away = match self {
            Self::Dead(away) => Some(away),
            Self::Cordoned | Self::CordonedNew => Some(Away::Cordoned),
            Self::OtherDead => Some(Away::NotReady),
            _ => None,
        };
        let is_other = matches!(self, Self::Other | Self::OtherDead);
        let mut node = Node {
            provider_id: format!("{}://{name}", if is_other { "metal3" } else { "vsphere" }),
            name,
            linux: true,
            csi_registered: matches!(self, Self::Fine | Self::Older | Self::Cordoned),
            away,
            ..Node::default()
        };
        let selected = if self == Self::Unselected { "no" } else { "yes" };
        node.place.labels = [("storage".to_owned(), selected.to_owned())].into();
        if away == Some(Away::Cordoned) {
            let taint = ("node.kubernetes.io/unschedulable", "", "NoSchedule");
            node.place.taints.push((taint.0.into(), taint.1.into(), taint.2.into()));
        }
        Arc::new(node)
    }

    /// Whether the pod there is ready, and at the newest revision; `None` without a pod.
    fn pod(self) -> Option<(bool, bool)> {
        match self {
            Self::Fine | Self::Cordoned => Some((true, true)),
            Self::Older => Some((true, false)),
            Self::Dead(_) | Self::Other | Self::OtherDead => Some((false, false)),
            Self::CordonedNew | Self::Unselected => None,
        }
    }
}

fn object(value: Value) -> Object {
    Object::new(value).expect("an object")
}

fn pod(name: &str, node: &str, ready: bool, newest: bool) -> Object {
    let status = if ready { "True" } else { "False" };
    object(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS,
            "labels": {"app": DAEMONS, "pod-template-generation": if newest { "2" } else { "1" }}},
        "spec": {"nodeName": node}, "status": {"conditions": [{"type": "Ready", "status": status}]}}),
    )
}

/// A DaemonSet as its controller counts its pods: those of all nodes that it may run on, whether they are alive or not.
fn daemon_set(pods: &[Object], desired: usize) -> Object {
    let ready = pods.iter().filter(|pod| pod.text("/status/conditions/0/status") == "True").count();
    let newest = pods.iter().filter(|pod| pod.label("pod-template-generation") == Some("2")).count();
    object(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": DAEMONS, "namespace": NS, "generation": 2, "annotations": {"deprecated.daemonset.template.generation": "2"}},
        "spec": {"selector": {"matchLabels": {"app": DAEMONS}}, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}},
            "template": {"spec": {"nodeSelector": {"storage": "yes"}, "tolerations": [{"operator": "Exists"}]}}},
        "status": {"observedGeneration": 2, "desiredNumberScheduled": desired, "currentNumberScheduled": pods.len(), "numberReady": ready,
            "numberAvailable": ready, "updatedNumberScheduled": newest}}))
}

/// The health of the CSI driver in a cluster of these nodes, of which the pods on some crash.
fn health(kinds: &[Kind], crashing: &[usize]) -> (DriverHealth, Vec<Arc<Node>>) {
    let name = |at: usize| format!("w-{at}");
    let nodes: Vec<Arc<Node>> = kinds.iter().enumerate().map(|(at, kind)| kind.node(name(at))).collect();
    let pods: Vec<Object> = kinds
        .iter()
        .enumerate()
        .filter_map(|(at, kind)| {
            let (ready, newest) = kind.pod()?;
            Some(pod(&format!("p-{at}"), &name(at), ready && !crashing.contains(&at), newest))
        })
        .collect();
    let desired = kinds.iter().filter(|kind| **kind != Kind::Unselected).count();
    let set = daemon_set(&pods, desired);
    let pods: Vec<&Object> = pods.iter().collect();
    (driver_health(CSI, &[&set], &pods, &[], &nodes), nodes)
}

/// The status of a VDOConfig with this driver.
fn status(health: DriverHealth, nodes: Vec<Arc<Node>>) -> VDOConfigStatus {
    let report = |name: &str, health| DriverReport {
        name: name.into(),
        version: "1.0.0".into(),
        installed: Some("1.0.0".into()),
        revision: None,
        available: String::new(),
        chart: String::new(),
        because: String::new(),
        objects: 1,
        health: Some(health),
    };
    let provider = driver_health(CPI, &[], &[], &[], &nodes);
    let report = Report {
        cluster: Some(Cluster {
            version: "v1.34.4".parse().expect("a version"),
            uid: "uid".into(),
            nodes,
        }),
        drivers: vec![report(CPI, provider), report(CSI, health)],
        ..Report::default()
    };
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
    fold(&VDOConfigStatus::default(), &report, &now)
}

fn any_kinds() -> impl Strategy<Value = Vec<Kind>> {
    let odd = prop::collection::vec(prop::sample::select(Kind::ODD.to_vec()), 0..5);
    let rest = prop::collection::vec(prop::sample::select(vec![Kind::Fine, Kind::Unselected]), 0..5);
    (odd, rest, any::<bool>()).prop_map(|(odd, rest, stalled)| {
        let is_lost = odd.iter().any(|kind| kind.is_lost());
        let first = if stalled && is_lost { Kind::Older } else { Kind::Fine };
        [first].into_iter().chain(odd).chain(rest).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// One node at least is fine; the others are what they are.
    #[test]
    fn odd_nodes_alone_keep_no_driver_from_being_ready_and_are_named(kinds in any_kinds()) {
        let (health, nodes) = health(&kinds, &[]);
        prop_assert!(health.ready, "{:?}: {}", kinds, health.message);
        let counted = kinds.iter().filter(|kind| matches!(kind, Kind::Fine | Kind::Older)).count();
        prop_assert_eq!(health.nodes.done, Some((counted, counted)));
        let status = status(health.clone(), nodes.clone());
        let ready = status.conditions.iter().find(|c| c.type_ == "Ready").expect("a condition");
        prop_assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Healthy"), "{:?}", ready.message);
        let apart = status.nodes.expect("nodes").apart;
        for node in nodes.iter().filter(|node| node.apart().is_some()) {
            prop_assert!(apart.iter().any(|one| one.name == node.name), "{} is not named: {:?}", node.name, apart);
            prop_assert!(health.nodes.apart.iter().any(|(name, _)| *name == node.name), "{}: {}", node.name, health.message);
        }
    }

    /// A pod that crashes on a node that is alive is a fault, whatever else is odd; and a reason to give a change up unless it was so before.
    #[test]
    fn a_crash_on_a_node_that_is_alive_is_a_fault_beside_odd_nodes(kinds in any_kinds()) {
        let (health, _) = health(&kinds, &[0]);
        prop_assert!(!health.ready, "{:?}: {}", kinds, health.message);
        prop_assert!(!health.nodes.is_as_before(&[]), "{:?}", kinds);
    }
}

#[test]
fn health_of_odd_nodes_reads_as_sentences() {
    use Kind::{Cordoned, CordonedNew, Dead, Fine, Older, Other, Unselected};
    let dead = Dead(Away::NotReady);
    for (kinds, crashing, expected) in [
        (vec![Fine, Fine], vec![], "Healthy: 2 of 2 pods are ready"),
        (
            vec![Fine, Fine, Fine, Fine, dead],
            vec![],
            "Healthy: 4 of 4 pods are ready; node w-4 is not ready and is set up later",
        ),
        (
            vec![Fine, Older, dead],
            vec![],
            "Healthy: 2 of 2 pods are ready; node w-2 is not ready and is set up \
             later; DaemonSet vmware-system-csi/node replaces 1 older pod only \
             when its pods on these nodes are ready, or these nodes are deleted",
        ),
        (
            vec![Fine, Cordoned, CordonedNew],
            vec![],
            "Healthy: 1 of 1 pods are ready; node w-1 is cordoned; node w-2 is cordoned and is set up later",
        ),
        (
            vec![Fine, Other, Unselected],
            vec![],
            "Healthy: 1 of 1 pods are ready; node w-1 belongs to another provider (metal3://)",
        ),
        (
            vec![Fine, Fine, dead],
            vec![1],
            "WaitingForPods: DaemonSet vmware-system-csi/node has 1 of 2 pods ready; node w-2 is not ready and is set up later",
        ),
        // Where nothing is alive, the rest of the status says what is wrong.
        (
            vec![dead],
            vec![],
            "WaitingForPods: DaemonSet vmware-system-csi/node has 0 of 1 pods at its newest revision",
        ),
        (
            vec![Unselected],
            vec![],
            "NoEligibleNode: DaemonSet vmware-system-csi/node has no pods, because none of 1 node accepts them; node w-0: it lacks \
             the label \
             storage=yes",
        ),
    ] {
        let (found, _) = health(&kinds, &crashing);
        assert_eq!(format!("{}: {}", found.reason, found.message), expected, "{kinds:?}");
        assert_eq!(found.ready, found.reason == Reason::Healthy);
    }
}

/// A node was deleted, and the controller, which learns of it from its pods only, still counts it.
#[test]
fn health_beside_a_node_that_was_deleted_does_not_wait_for_it() {
    let nodes = [Kind::Fine.node("w-0".into())];
    let older = pod("p-0", "w-0", true, false);
    for (newest, note) in [
        (true, ""),
        (
            false,
            "; DaemonSet vmware-system-csi/node replaces 1 older pod only when the DaemonSet controller has noticed the deletion of a node",
        ),
    ] {
        let here = if newest { pod("p-0", "w-0", true, true) } else { older.clone() };
        let pods = [here, pod("p-1", "w-1", false, false)];
        let set = daemon_set(&pods, 2);
        let found = driver_health(CSI, &[&set], &pods.iter().collect::<Vec<_>>(), &[], &nodes);
        assert!(found.ready, "{}", found.message);
        assert_eq!(found.message, format!("1 of 1 pods are ready{note}"));
    }
}

/// What was so before a change is no reason to give it up.
#[test]
fn health_that_only_nodes_spoil_is_compared_with_before() {
    let before = |nodes: &[&str]| nodes.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>();
    let (found, _) = health(&[Kind::Fine, Kind::Fine, Kind::Fine], &[1]);
    assert!(found.nodes.is_as_before(&before(&["w-1"])), "{found:?}");
    assert!(!found.nodes.is_as_before(&before(&["w-2"])), "{found:?}");
    let (found, _) = health(&[Kind::Fine, Kind::Fine, Kind::Fine], &[1, 2]);
    assert!(!found.nodes.is_as_before(&before(&["w-1"])), "{found:?}");
}

/// The controller of a driver, with a pod on each node.
fn controller(pods: &[(&str, bool)], nodes: &[(&str, Option<Away>)]) -> DriverHealth {
    let wanted = pods.len();
    let ready = pods.iter().filter(|(_, ready)| *ready).count();
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}});
    let deployment = object(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c", "namespace": NS, "generation": 1},
        "spec": {"replicas": wanted, "selector": {"matchLabels": {"app": DAEMONS}}, "template": {"spec": {"affinity": apart}}},
        "status": {"observedGeneration": 1, "replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready}}),
    );
    let pods: Vec<Object> = pods
        .iter()
        .enumerate()
        .map(|(at, (node, ready))| pod(&format!("p-{at}"), node, *ready, true))
        .collect();
    let nodes: Vec<Arc<Node>> = nodes
        .iter()
        .map(|(name, away)| {
            Arc::new(Node {
                name: (*name).into(),
                away: *away,
                ..Node::default()
            })
        })
        .collect();
    driver_health("further", &[&deployment], &pods.iter().collect::<Vec<_>>(), &[], &nodes)
}

#[test]
fn controller_with_a_pod_on_a_node_that_is_not_alive_is_judged_by_the_others() {
    let dead = Some(Away::Unreachable);
    let nodes = [("a", None), ("b", None), ("c", dead)];
    for (pods, nodes, ready, as_before) in [
        (&[("a", true), ("b", true), ("c", false)][..], &nodes[..], true, true),
        // Its pod was moved, and finds no other node.
        (&[("a", true), ("b", true), ("", false)], &nodes, true, true),
        (&[("a", true), ("b", false), ("c", false)], &nodes, false, false),
        // Nothing of it runs until the pod is moved; no change is to blame.
        (&[("c", false)], &nodes, false, true),
        // A pod that finds no node where all are alive.
        (&[("a", true), ("", false)], &nodes[..2], false, false),
    ] {
        let found = controller(pods, nodes);
        assert_eq!(found.ready, ready, "{pods:?}: {}", found.message);
        assert_eq!(found.nodes.is_as_before(&[]), as_before, "{pods:?}: {}", found.message);
        let named = nodes
            .iter()
            .all(|(name, away)| away.is_none() || found.message.contains(&format!("{name} is unreachable")));
        assert!(named, "{}", found.message);
    }
}
