// SPDX-License-Identifier: Apache-2.0
use super::dry_run::wants;
use super::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo_core::drivers::{CLOUD_PROVIDER, Driver, KNOWN, STORAGE};
use vdo_core::installed::{MOVED, Moving, Phase};
use vdo_core::manifest::Object;

fn object(value: Value) -> Object {
    Object::new(value).expect("an object")
}

fn workload(kind: &str, name: &str, spec: Value) -> Object {
    object(
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "kube-system", "annotations": {"a": "b"}}, "spec": spec}),
    )
}

fn daemons(name: &str, port: u64) -> Object {
    let pod = json!({"hostNetwork": true, "containers": [{"name": "c", "ports": [{"containerPort": port}]}], "tolerations": [{"operator": "Exists"}]});
    workload(
        "DaemonSet",
        name,
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}, "template": {"spec": pod}}),
    )
}

fn old(driver: &'static Driver, object: Object) -> Old {
    Old {
        driver,
        object,
        owner: None,
        writers: Vec::new(),
        pods: Vec::new(),
    }
}

fn node(name: &str, ready: bool) -> Node {
    let status = if ready { "True" } else { "Unknown" };
    Node {
        object: object(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"l": "m"}},
            "status": {"conditions": [{"type": "Ready", "status": status}]}}),
        ),
        is_registered: false,
    }
}

/// Both drivers as Rancher's charts install them, on three nodes.
fn rancher() -> State {
    let config = object(
        json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo", "namespace": "n"}, "spec": {}}),
    );
    let settings = object(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vsphere-cloud-config", "namespace": "kube-system"}, "data": {"vsphere.yaml": "x"}}),
    );
    let mut state = State {
        config: Config::Managed {
            object: config,
            drivers: KNOWN.iter().map(|driver| driver.name.to_owned()).collect(),
            is_observed: true,
        },
        condition: String::new(),
        obstacles: BTreeMap::new(),
        old: vec![
            old(STORAGE, daemons("vsphere-csi-node", 9808)),
            old(STORAGE, workload("Deployment", "vsphere-csi-controller", json!({"replicas": 3}))),
            old(CLOUD_PROVIDER, daemons("rancher-cpi", 10258)),
        ],
        new: Vec::new(),
        nodes: vec![node("a", true), node("b", true), node("c", true)],
        shared: vec![Shared {
            live: Some(settings),
            is_ours: false,
            saved: None,
        }],
    };
    settle(&mut state, || true);
    assert!(state.new.is_empty(), "the operator has not waited");
    state
}

/// The pods that an old workload starts, on nodes that no other node plugin has.
fn missing(old: &Old, mark: Option<&Moving>, nodes: &[Node], taken: &[String]) -> Vec<Pod> {
    let pod = |node: &str| Pod {
        name: format!("{}-{node}", old.object.name()),
        node: node.to_owned(),
        ready: true,
    };
    let all: Vec<Pod> = match old.object.value().pointer("/spec/replicas").and_then(Value::as_u64) {
        Some(replicas) => (0..replicas).map(|_| pod("")).skip(old.pods.len()).collect(),
        None => nodes.iter().map(|node| pod(node.object.name())).collect(),
    };
    let is_free = |pod: &Pod| pod.node.is_empty() || !old.pods.contains(pod) && !taken.contains(&pod.node);
    all.into_iter().filter(|pod| wants(mark, nodes, pod) && is_free(pod)).collect()
}

/// What controllers do with the old workloads, and everything that a dry run foresees.
fn settle(state: &mut State, mut allow: impl FnMut() -> bool) {
    let taken: Vec<String> = state.new.iter().flat_map(|new| &new.pods).map(|pod| pod.node.clone()).collect();
    for old in &mut state.old {
        let pods = missing(old, Moving::of(&old.object).as_ref(), &state.nodes, &taken);
        old.pods.extend(pods.into_iter().filter(|_| allow()));
    }
    state.converge(allow);
}

fn said(next: &Next) -> String {
    match next {
        Next::Do(step) => step.to_string(),
        Next::Wait(wait) => format!("… {wait}"),
        Next::Blocked { what, .. } => format!("blocked: {what}"),
        Next::Done => "done".to_owned(),
    }
}

fn outline(state: State, next: impl Fn(&State) -> Next) -> Vec<String> {
    state.outline(next).iter().map(said).collect()
}

#[test]
fn move_of_both_drivers_is_in_order() {
    assert_eq!(
        outline(rancher(), State::next),
        [
            "ConfigMap kube-system/vsphere-cloud-config: copied to vsphere-cloud-config.moved",
            "Deployment kube-system/vsphere-csi-controller: scaled from 3 to 0 replicas",
            "DaemonSet kube-system/rancher-cpi: its pods no longer run on any node",
            "DaemonSet kube-system/vsphere-csi-node: its pods stay until their nodes are moved",
            "… 3 pods of Deployment kube-system/vsphere-csi-controller to terminate",
            "Deployment kube-system/vsphere-csi-controller: stopped",
            "DaemonSet kube-system/rancher-cpi: stopped",
            "… the operator to install vsphere-csi",
            "Node a: moved to the new node plugin",
            "… the old node plugin to terminate on Node a",
            "Node b: moved to the new node plugin",
            "… the old node plugin to terminate on Node b",
            "Node c: moved to the new node plugin",
            "… the old node plugin to terminate on Node c",
            "DaemonSet kube-system/vsphere-csi-node: stopped",
            "Node a: label vdo.vmware.com/moved removed",
            "Node b: label vdo.vmware.com/moved removed",
            "Node c: label vdo.vmware.com/moved removed",
            "done",
        ]
    );
}

/// A node plugin without the port cannot be kept beside the new one.
#[test]
fn node_plugin_that_no_port_keeps_apart_is_stopped_at_once() {
    let mut state = rancher();
    state.old = vec![old(STORAGE, daemons("vsphere-csi-node", 9999))];
    state.shared.clear();
    settle(&mut state, || true);
    assert_eq!(
        outline(state, State::next),
        [
            "DaemonSet kube-system/vsphere-csi-node: its pods no longer run on any node",
            "… 3 pods of DaemonSet kube-system/vsphere-csi-node to terminate",
            "DaemonSet kube-system/vsphere-csi-node: stopped",
            "… the operator to install vsphere-csi",
            "done",
        ]
    );
}

#[test]
fn move_is_blocked_by_what_only_a_person_can_do() {
    let changed = |change: fn(&mut State)| {
        let mut state = rancher();
        change(&mut state);
        said(&state.next())
    };
    for (change, expected) in [
        (
            (|state| state.config = Config::Missing) as fn(&mut State),
            "blocked: no VDOConfig requests a driver",
        ),
        (
            |state| state.config = Config::Paused { is_observed: true },
            "blocked: the VDOConfig is paused",
        ),
        (
            |state| state.old[1].owner = Some("Argo CD application csi".to_owned()),
            "blocked: Deployment kube-system/vsphere-csi-controller belongs to Argo CD application csi, which would undo the move",
        ),
        (
            |state| {
                let mut value = Moving::changed(&state.old[1].object, Phase::Stopped);
                value["spec"]["replicas"] = 3.into();
                state.old[1].object = object(value);
                state.old[1].writers = vec!["helm".to_owned()];
            },
            "blocked: Deployment kube-system/vsphere-csi-controller was stopped for the move, but helm started it again",
        ),
        (
            |state| {
                let mut value = state.old[1].object.clone().into_value();
                value["metadata"]["annotations"][MOVED] = "true".into();
                state.old[1].object = object(value);
            },
            "blocked: the annotation vdo.vmware.com/moved of Deployment kube-system/vsphere-csi-controller cannot be read",
        ),
    ] {
        let found = changed(change);
        assert!(found.starts_with(expected), "{found}");
    }
    // Nothing is stopped for a driver that would not come. What has begun goes on.
    let mut state = rancher();
    state
        .obstacles
        .insert(CLOUD_PROVIDER.name, "the matrix does not list 1.37.0-rc.0".to_owned());
    assert_eq!(
        said(&state.next()),
        "blocked: the operator would not be able to install vsphere-cpi after the old driver is \
         stopped: the matrix does not list 1.37.0-rc.0"
    );
    for old in &mut state.old {
        old.object = object(Moving::changed(&old.object, Phase::Stopping));
    }
    assert!(!said(&state.next()).starts_with("blocked"), "{}", said(&state.next()));
    // What the operator said of an earlier specification says nothing.
    let mut state = rancher();
    if let Config::Managed { is_observed, .. } = &mut state.config {
        *is_observed = false;
    }
    let lines = outline(state, State::next);
    assert_eq!(lines[0], "… the operator to read the current VDOConfig");
    assert_eq!(lines.last().map(String::as_str), Some("done"));
    // A driver that the VDOConfig does not ask for stays on purpose.
    let mut state = rancher();
    if let Config::Managed { drivers, .. } = &mut state.config {
        drivers.remove(CLOUD_PROVIDER.name);
    }
    assert!(outline(state, State::next).iter().all(|line| !line.contains("rancher-cpi")));
}

/// A node that does not answer is the last one, and the move does not wait for it.
#[test]
fn move_does_not_wait_for_a_node_that_is_lost() {
    let mut state = rancher();
    state.nodes[0] = node("a", false);
    let lines = outline(state, State::next);
    let place = |line: &str| lines.iter().position(|one| one.contains(line)).expect("it is moved");
    assert!(place("Node c: moved") < place("Node a: moved"), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.starts_with('…') && line.contains("Node a")),
        "{lines:#?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("done"));
}

/// A pod that no node has runs nothing. The controller of DaemonSets does not delete it when its node is moved, only when its DaemonSet changes.
#[test]
fn move_does_not_wait_for_an_old_pod_that_no_node_has() {
    let mut state = rancher();
    for pod in &mut state.old[0].pods {
        pod.node.clear();
    }
    let lines = outline(state, State::next);
    assert!(
        !lines.iter().any(|line| line.contains("old node plugin to terminate")),
        "{lines:#?}"
    );
    assert!(
        lines.contains(&"DaemonSet kube-system/vsphere-csi-node: stopped".to_owned()),
        "{lines:#?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("done"));
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Two controllers, or two node plugins that both run on a node, are never there at the same time.
fn is_lawful(state: &State) {
    let old = |driver: &Driver, kinds: &[&str]| -> BTreeSet<String> {
        let all = state
            .old
            .iter()
            .filter(|old| old.driver.name == driver.name && kinds.contains(&old.object.kind()));
        all.flat_map(|old| &old.pods).map(|pod| pod.node.clone()).collect()
    };
    let new = |driver: &Driver, kinds: &[&str]| -> BTreeSet<String> {
        let all = state
            .new
            .iter()
            .filter(|new| new.driver.name == driver.name && kinds.contains(&new.object.kind()));
        all.flat_map(|new| &new.pods)
            .filter(|pod| pod.ready)
            .map(|pod| pod.node.clone())
            .collect()
    };
    for (driver, kinds) in [(STORAGE, &["Deployment"][..]), (STORAGE, &["DaemonSet"])] {
        let (old, new) = (old(driver, kinds), new(driver, kinds));
        assert!(old.is_disjoint(&new), "{}: {old:?} and {new:?}", driver.name);
    }
    let (old, new) = (old(CLOUD_PROVIDER, &["DaemonSet"]), new(CLOUD_PROVIDER, &["DaemonSet"]));
    assert!(old.is_empty() || new.is_empty(), "two cloud providers: {old:?} and {new:?}");
}

/// Runs one way in a cluster in which things happen late and in any order, for so many turns, or to the end.
fn run(state: &mut State, random: &mut Random, turns: Option<u64>, next: impl Fn(&State) -> Next) {
    for turn in 0_u64.. {
        assert!(turn < 10_000, "it has no end: {}", said(&next(state)));
        if turns.is_some_and(|turns| turn >= turns) {
            return;
        }
        if random.below(2) == 0 {
            settle(state, || random.below(3) == 0);
        } else {
            match next(state) {
                Next::Do(step) => state.take(&step),
                Next::Wait(_) => {}
                Next::Done => return,
                Next::Blocked { what, .. } => panic!("{what}"),
            }
        }
        is_lawful(state);
    }
}

/// Killed anywhere, a move that is repeated comes to the same end; and the way back, from anywhere, to what was there before.
#[test]
fn move_from_any_state_ends_the_same_and_leads_back() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let before = rancher();
        let mut state = before.clone();
        // The process dies after some turns, and people change their minds.
        for _ in 0..random.below(3) {
            let turns = random.below(60);
            run(&mut state, &mut random, Some(turns), State::next);
        }
        if random.below(2) == 0 {
            run(&mut state, &mut random, None, State::next);
            settle(&mut state, || true);
            assert!(state.old.iter().all(|old| old.pods.is_empty()), "seed {seed}");
            assert!(state.new.iter().all(|new| new.pods.iter().all(|pod| pod.ready)), "seed {seed}");
        }
        let turns = random.below(30);
        run(&mut state, &mut random, Some(turns), State::back);
        run(&mut state, &mut random, None, State::back);
        for (old, was) in state.old.iter().zip(&before.old) {
            assert_eq!(old.object.value(), was.object.value(), "seed {seed}");
        }
        for (node, was) in state.nodes.iter().zip(&before.nodes) {
            assert_eq!(node.object.value(), was.object.value(), "seed {seed}");
        }
        assert_eq!(
            state.shared[0].live.as_ref().map(Object::value),
            before.shared[0].live.as_ref().map(Object::value),
            "seed {seed}"
        );
        assert!(state.shared[0].saved.is_none() && state.new.is_empty(), "seed {seed}");
        settle(&mut state, || true);
        assert!(state.old.iter().all(|old| !old.pods.is_empty()), "seed {seed}");
    }
}
