// SPDX-License-Identifier: Apache-2.0
//! Removes unused fields of nodes, pods and other numerous objects before the cache stores them (a transform of controller-runtime).

use crate::cluster::bounded_deserialize::{TABLE, WHOLE, place};
use serde_json::Value;
use vdo_core::manifest::Object;

/// Of the metadata; the resource version, which changes with every heartbeat, is not looked at.
const METADATA: [&str; 6] = [
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
    "/metadata/generation",
];

/// An object with nothing but what is looked at. `None`: everything is kept.
pub(super) fn trim(object: &Object) -> Option<Object> {
    let fields = match place(object.kind()) {
        WHOLE => return None,
        known => TABLE[known].fields,
    };
    let mut small = serde_json::json!({"apiVersion": object.api_version(), "kind": object.kind(), "metadata": {}});
    let value = object.value();
    for pointer in METADATA.iter().chain(fields) {
        let Some(value) = value.pointer(pointer).and_then(|value| telling(pointer, value)) else {
            continue;
        };
        let mut place = &mut small;
        for part in pointer.split('/').skip(1) {
            place = &mut place[part];
        }
        *place = value;
    }
    Object::new(small).ok()
}

/// A value without what says only that all is well: a pod of the CSI driver has seven containers, and there is one on each node.
fn telling(pointer: &str, value: &Value) -> Option<Value> {
    let all = match pointer.rsplit('/').next()? {
        "containerStatuses" | "initContainerStatuses" | "conditions" => value.as_array()?,
        _ => return Some(value.clone()),
    };
    let is = |entry: &Value, pointer: &str, wanted: &str| entry.pointer(pointer).and_then(Value::as_str) == Some(wanted);
    let bad: Vec<Value> = all
        .iter()
        .filter(|entry| match entry.get("type").and_then(Value::as_str) {
            // The condition of a node that says something bad when it is true.
            Some("Ready") => true,
            Some("PodScheduled" | "Initialized" | "ContainersReady" | "PodReadyToStartContainers") => !is(entry, "/status", "True"),
            Some(_) => !is(entry, "/status", "False"),
            // A container.
            None => entry.get("ready") != Some(&Value::Bool(true)),
        })
        .cloned()
        .map(|mut entry| {
            if is(&entry, "/type", "Ready") && is(&entry, "/status", "True") {
                return serde_json::json!({"type": "Ready", "status": "True"});
            }
            // Else every heartbeat of a bad node would be news.
            entry.as_object_mut().map(|entry| entry.shift_remove("lastHeartbeatTime"));
            entry
        })
        .collect();
    (!bad.is_empty()).then(|| bad.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(value: Value) -> Value {
        let object = Object::new(value).expect("an object");
        trim(&object).unwrap_or(object).into_value()
    }

    #[test]
    fn watch_trim_unused_fields_are_dropped() {
        let metadata = json!({"name": "a", "uid": "u", "labels": {"l": "1"}, "annotations": {"long": "text"}});
        for (whole, small) in [
            (
                json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata,
                    "spec": {"providerID": "vsphere://1", "podCIDR": "10.0.0.0/24", "unschedulable": true},
                    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "images": ["many"],
                        "nodeInfo": {"systemUUID": "s", "kubeletVersion": "v1", "kernelVersion": "6"},
                        "conditions": [{"type": "Ready", "status": "True"}, {"type": "NetworkUnavailable", "status": "True", "lastHeartbeatTime": "now"},
                            {"type": "DiskPressure", "status": "False"}]}}),
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "uid": "u", "labels": {"l": "1"}},
                    "spec": {"providerID": "vsphere://1", "unschedulable": true},
                    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "nodeInfo": {"systemUUID": "s", "kubeletVersion": "v1"},
                        "conditions": [{"type": "Ready", "status": "True"}, {"type": "NetworkUnavailable", "status": "True"}]}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": []},
                    "status": {"phase": "Running",
                        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}, {"type": "Initialized", "status": "True"}],
                        "containerStatuses": [{"name": "good", "ready": true}, {"name": "bad", "ready": false}]}}),
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n"},
                    "status": {"phase": "Running", "containerStatuses": [{"name": "bad", "ready": false}],
                        "conditions": [{"type": "Ready", "status": "True"}]}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}),
            ),
        ] {
            assert_eq!(kept(whole), small);
        }
    }
}
