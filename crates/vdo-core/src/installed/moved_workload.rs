// SPDX-License-Identifier: Apache-2.0
//! The mark that `vdoctl adopt --move` sets on another tool's workload: the phase of the move, and the original fields for the way back.
//!
//! `vdoctl adopt --move` sets the mark in the same write as the change that the mark records; the operator only reads it.

use super::Installed;
use crate::manifest::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vdo_api::types::from_json;

/// The annotation of a workload that is moved, and the label of nodes from which the old node plugin has gone.
pub const MOVED: &str = "vdo.vmware.com/moved";

/// The label of no node: a DaemonSet that wants it has no pods.
const NOWHERE: &str = "vdo.vmware.com/moved-away";

/// The port of every node plugin on the network of the node. Two pods with it are never on one node, so the new one waits for the old one.
pub const NODE_PORT: u64 = 9808;

/// The command that goes on.
pub const GO_ON: &str = "vdoctl adopt --move";

/// How far a workload has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It shall have no pods, and may have some.
    Stopping,
    /// It was seen without pods after that.
    Stopped,
    /// Its pods leave one node after the other.
    Leaving,
}

/// What is written on a workload that is moved: how far it has come, and the fields that were changed as they were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Moving {
    /// How far it has come.
    pub phase: Phase,
    /// The fields of `spec` that were changed, each by its pointer; null where there was none.
    pub before: serde_json::Map<String, Value>,
}

/// Where a DaemonSet says which nodes it wants.
const AFFINITY: &str = "/template/spec/affinity";
const STRATEGY: &str = "/updateStrategy";
const REPLICAS: &str = "/replicas";

impl Moving {
    /// The mark of a workload; `None` of one that is not moved, or whose mark cannot be read.
    #[must_use]
    pub fn of(object: &Object) -> Option<Self> {
        from_json(object.annotation(MOVED)?).ok()
    }

    /// The workload as it is in a phase.
    #[must_use]
    pub fn changed(object: &Object, phase: Phase) -> Value {
        let mark = Self::of(object);
        let mut value = mark.as_ref().map_or_else(|| object.value().clone(), |mark| mark.restored(object));
        let fields: &[&str] = if object.kind() == "DaemonSet" {
            &[STRATEGY, AFFINITY]
        } else {
            &[REPLICAS]
        };
        let live = |field: &&str| ((*field).to_owned(), value["spec"].pointer(field).cloned().unwrap_or_default());
        let before = mark.map_or_else(|| fields.iter().map(live).collect(), |mark| mark.before);
        if object.kind() == "DaemonSet" {
            let affinity = with_requirement(&value["spec"]["template"]["spec"]["affinity"], &requirement(phase));
            value["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
            value["spec"]["template"]["spec"]["affinity"] = affinity;
        } else {
            value["spec"]["replicas"] = 0.into();
        }
        let mark = Self { phase, before };
        value["metadata"]["annotations"][MOVED] = serde_json::to_string(&mark).unwrap_or_default().into();
        value
    }

    /// The workload as it was before.
    #[must_use]
    pub fn restored(&self, object: &Object) -> Value {
        let mut value = object.value().clone();
        for (field, before) in &self.before {
            let Some((parent, name)) = field.rsplit_once('/') else { continue };
            let parent = value["spec"].pointer_mut(parent).and_then(Value::as_object_mut);
            match (parent, before) {
                (Some(parent), Value::Null) => drop(parent.shift_remove(name)),
                (Some(parent), before) => drop(parent.insert(name.to_owned(), before.clone())),
                (None, _) => {}
            }
        }
        if let Some(metadata) = value["metadata"].as_object_mut() {
            let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
            let is_empty = annotations.is_some_and(|all| {
                all.shift_remove(MOVED);
                all.is_empty()
            });
            if is_empty {
                metadata.shift_remove("annotations");
            }
        }
        value
    }

    /// Whether the workload still is as the phase wants it; another manager may have written it again.
    #[must_use]
    pub fn is_kept(&self, object: &Object) -> bool {
        if object.kind() != "DaemonSet" {
            return object.number("/spec/replicas") == Some(0);
        }
        let spec = &object.value()["spec"];
        spec["updateStrategy"]["type"] == "OnDelete" && has_requirement(&spec["template"]["spec"]["affinity"], &requirement(self.phase))
    }

    /// Whether nothing of the workload is in the way of a driver of the operator any more.
    #[must_use]
    pub fn is_out_of_the_way(&self, object: &Object) -> bool {
        let is_far = match self.phase {
            Phase::Stopping => false,
            Phase::Stopped => true,
            Phase::Leaving => has_node_port(object),
        };
        is_far && self.is_kept(object)
    }
}

impl Installed {
    /// Whether it is moved, and nothing of it is in the way of a driver of the operator any more.
    #[must_use]
    pub fn is_moved(&self) -> bool {
        Moving::of(&self.object).is_some_and(|mark| mark.is_out_of_the_way(&self.object))
    }
}

/// Whether a workload has the port of node plugins on the network of its nodes.
#[must_use]
pub fn has_node_port(object: &Object) -> bool {
    let Some(pod) = object.pod_spec() else { return false };
    let on_node = pod["hostNetwork"] == true;
    let ports = super::containers(pod)
        .filter_map(|container| container["ports"].as_array())
        .flatten();
    let mut ports = ports.filter(|port| port["protocol"].as_str().unwrap_or("TCP") == "TCP");
    ports.any(|port| port["hostPort"].as_u64().or(port["containerPort"].as_u64().filter(|_| on_node)) == Some(NODE_PORT))
}

/// What the nodes must have on which a DaemonSet keeps its pods in a phase.
fn requirement(phase: Phase) -> Value {
    match phase {
        Phase::Leaving => json!({"key": MOVED, "operator": "DoesNotExist"}),
        Phase::Stopping | Phase::Stopped => json!({"key": NOWHERE, "operator": "Exists"}),
    }
}

const REQUIRED: &str = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// An affinity with one more requirement of the nodes. Its terms are alternatives, so each gets it.
fn with_requirement(affinity: &Value, requirement: &Value) -> Value {
    let terms = affinity
        .pointer(REQUIRED)
        .and_then(Value::as_array)
        .filter(|terms| !terms.is_empty());
    let mut terms = terms.cloned().unwrap_or_else(|| vec![json!({})]);
    for term in &mut terms {
        match term["matchExpressions"].as_array_mut() {
            Some(all) => all.push(requirement.clone()),
            None => term["matchExpressions"] = json!([requirement]),
        }
    }
    let mut affinity = affinity.clone();
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = Value::Array(terms);
    affinity
}

fn has_requirement(affinity: &Value, requirement: &Value) -> bool {
    let terms = affinity.pointer(REQUIRED).and_then(Value::as_array);
    let has = |term: &Value| term["matchExpressions"].as_array().is_some_and(|all| all.contains(requirement));
    terms.is_some_and(|terms| !terms.is_empty() && terms.iter().all(has))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(kind: &str, spec: Value) -> Object {
        let metadata = json!({"name": "x", "namespace": "kube-system"});
        Object::new(json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})).expect("an object")
    }

    fn daemons(affinity: &Value, ports: &Value) -> Object {
        let mut pod = json!({"hostNetwork": true, "containers": [{"name": "c", "ports": ports}]});
        if !affinity.is_null() {
            pod["affinity"] = affinity.clone();
        }
        workload(
            "DaemonSet",
            json!({"updateStrategy": {"type": "RollingUpdate"}, "template": {"spec": pod}}),
        )
    }

    fn required(terms: &Value) -> Value {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
    }

    /// From every phase to every other one and back, a workload is what it was.
    #[test]
    fn moved_workload_is_restored_to_what_it_was() {
        let linux = json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]});
        let port = json!([{"containerPort": 9808}]);
        let mut all = vec![
            workload("Deployment", json!({"replicas": 3})),
            workload("StatefulSet", json!({"replicas": 1})),
        ];
        for affinity in [
            Value::Null,
            json!({"podAntiAffinity": {}}),
            required(&json!([{"matchExpressions": [linux]}])),
            required(&json!([{"matchExpressions": [linux]}, {"matchFields": []}])),
        ] {
            all.push(daemons(&affinity, &port));
        }
        for object in all {
            for (first, second) in [
                (Phase::Stopping, Phase::Stopped),
                (Phase::Leaving, Phase::Stopped),
                (Phase::Stopping, Phase::Stopping),
            ] {
                let once = Object::new(Moving::changed(&object, first)).expect("an object");
                let twice = Object::new(Moving::changed(&once, second)).expect("an object");
                for changed in [&once, &twice] {
                    let mark = Moving::of(changed).expect("a mark");
                    assert!(mark.is_kept(changed), "{changed:?}");
                    assert_eq!(mark.restored(changed), *object.value(), "{first:?} {second:?}");
                }
                // A manager that writes the old fields again is noticed.
                let mut fought = twice.value().clone();
                fought["spec"] = object.value()["spec"].clone();
                let fought = Object::new(fought).expect("an object");
                assert!(!Moving::of(&fought).expect("a mark").is_kept(&fought), "{fought:?}");
            }
        }
    }

    /// The operator goes on when no pod is left, or when a port keeps two pods from being on one node.
    #[test]
    fn moved_workload_is_out_of_the_way_in_its_last_phases() {
        let (port, other) = (json!([{"containerPort": 9808}]), json!([{"containerPort": 9809}]));
        let deployment = workload("Deployment", json!({"replicas": 3}));
        for (object, phase, expected) in [
            (&deployment, Phase::Stopping, false),
            (&deployment, Phase::Stopped, true),
            (&daemons(&Value::Null, &port), Phase::Leaving, true),
            (
                &daemons(&Value::Null, &json!([{"hostPort": 9808, "containerPort": 1}])),
                Phase::Leaving,
                true,
            ),
            (
                &daemons(&Value::Null, &json!([{"containerPort": 9808, "protocol": "UDP"}])),
                Phase::Leaving,
                false,
            ),
            (&daemons(&Value::Null, &other), Phase::Leaving, false),
            (&daemons(&Value::Null, &other), Phase::Stopping, false),
            (&daemons(&Value::Null, &other), Phase::Stopped, true),
        ] {
            let changed = Object::new(Moving::changed(object, phase)).expect("an object");
            assert_eq!(
                Moving::of(&changed).expect("a mark").is_out_of_the_way(&changed),
                expected,
                "{phase:?} {object:?}"
            );
        }
    }

    #[test]
    fn mark_that_cannot_be_read_is_none() {
        for (mark, is_one) in [
            (r#"{"phase":"stopped","before":{"/replicas":3}}"#, true),
            (r#"{"phase":"gone","before":{}}"#, false),
            ("true", false),
            ("", false),
        ] {
            let mut object = workload("Deployment", json!({"replicas": 0})).into_value();
            object["metadata"]["annotations"][MOVED] = mark.into();
            let object = Object::new(object).expect("an object");
            assert_eq!(Moving::of(&object).is_some(), is_one, "{mark}");
        }
    }
}
