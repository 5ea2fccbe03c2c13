// SPDX-License-Identifier: Apache-2.0
//! Converts a Node and its CSINode into the fact `Node` (pure).

use serde_json::Value;
use std::collections::BTreeSet;
use vdo_api::facts::{Away, Node, Place};
use vdo_core::drivers::CSI_DRIVER;
use vdo_core::manifest::{Object, UNINITIALIZED};

/// The topology keys with which our CSI driver is registered on the node of a CSINode, where it is.
pub(in crate::reconcile) fn registration(csi_node: &Object) -> Option<BTreeSet<String>> {
    let drivers = csi_node.value().pointer("/spec/drivers").and_then(Value::as_array)?;
    let own = drivers.iter().find(|d| d.get("name").and_then(Value::as_str) == Some(CSI_DRIVER))?;
    let keys = own.get("topologyKeys").and_then(Value::as_array).into_iter().flatten();
    Some(keys.filter_map(|key| key.as_str().map(str::to_owned)).collect())
}

/// A node as the drivers see it, with the topology keys of its CSI driver where one is registered.
pub(in crate::reconcile) fn node(object: &Object, registration: Option<&BTreeSet<String>>) -> Node {
    const CONTROL_PLANE: [&str; 3] = [
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/controlplane",
        "node-role.kubernetes.io/master",
    ];
    let taints = object.value().pointer("/spec/taints").and_then(Value::as_array);
    Node {
        name: object.name().to_owned(),
        control_plane: CONTROL_PLANE.iter().any(|label| object.label(label).is_some()),
        provider_id: object.text("/spec/providerID").to_owned(),
        uninitialized: taints.is_some_and(|all| all.iter().any(|t| t.get("key").and_then(Value::as_str) == Some(UNINITIALIZED))),
        linux: object.label("kubernetes.io/os").is_none_or(|os| os == "linux"),
        csi_registered: registration.is_some(),
        topology_keys: registration.cloned().unwrap_or_default(),
        system_uuid: object.text("/status/nodeInfo/systemUUID").to_owned(),
        kubelet: Some(object.text("/status/nodeInfo/kubeletVersion").to_owned()).filter(|version| !version.is_empty()),
        addresses: addresses(object),
        network: network(object),
        away: away(object),
        place: place(object),
    }
}

/// What a node says of a pod network that is not ready: its own condition, or the kubelet's reason for not being ready.
fn network(node: &Object) -> Option<String> {
    let all = node.value().pointer("/status/conditions").and_then(Value::as_array)?;
    let says = |kind: &str, status: &str| {
        let found = all.iter().find(|c| text(c, "type") == kind && text(c, "status") == status)?;
        Some(format!("{}: {}", text(found, "reason"), text(found, "message")))
    };
    says("NetworkUnavailable", "True").or_else(|| {
        // The kubelet: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:… cni plugin …".
        says("Ready", "False").filter(|text| {
            ["network not ready", "network plugin", "cni"]
                .iter()
                .any(|word| text.contains(word))
        })
    })
}

/// Why it takes no new pods for now. A node that has reported nothing yet counts as alive.
fn away(node: &Object) -> Option<Away> {
    let all = node.value().pointer("/status/conditions").and_then(Value::as_array);
    let ready = all.into_iter().flatten().find(|c| text(c, "type") == "Ready");
    match ready.map(|c| text(c, "status")).as_deref() {
        Some("False") => Some(Away::NotReady),
        Some("Unknown") => Some(Away::Unreachable),
        _ => {
            let cordoned = node.value().pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
            cordoned.then_some(Away::Cordoned)
        }
    }
}

fn place(node: &Object) -> Place {
    let labels = node.value().pointer("/metadata/labels").and_then(Value::as_object);
    let taints = node.value().pointer("/spec/taints").and_then(Value::as_array);
    let taint = |t: &Value| (text(t, "key"), text(t, "value"), text(t, "effect"));
    Place {
        labels: labels
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        taints: taints
            .into_iter()
            .flatten()
            .map(taint)
            .filter(|(_, _, effect)| matches!(effect.as_str(), "NoSchedule" | "NoExecute"))
            .collect(),
    }
}

fn addresses(object: &Object) -> Vec<String> {
    let all = object.value().pointer("/status/addresses").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter(|entry| matches!(text(entry, "type").as_str(), "InternalIP" | "ExternalIP"))
        .map(|entry| text(entry, "address"))
        .collect()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn node_network_not_ready_is_read_from_conditions() {
        let read = |conditions: Value| {
            let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": conditions}});
            node(&Object::new(object).expect("a node"), None).network
        };
        let kubelet = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";
        for (conditions, expected) in [
            (json!([]), None),
            (
                json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "cni is fine"}]),
                None,
            ),
            (
                json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "PLEG is not healthy"}]),
                None,
            ),
            (
                json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": kubelet}]),
                Some(format!("KubeletNotReady: {kubelet}")),
            ),
            (
                json!([{"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated", "message": "RouteController failed"}]),
                Some("NoRouteCreated: RouteController failed".into()),
            ),
            (
                json!([{"type": "NetworkUnavailable", "status": "False", "reason": "CiliumIsUp", "message": "up"}]),
                None,
            ),
        ] {
            assert_eq!(read(conditions), expected);
        }
    }

    #[test]
    fn node_away_is_read_from_its_conditions_and_specification() {
        let read = |status: Option<&str>, cordoned: Option<bool>| {
            let conditions = status.map_or(json!([]), |status| json!([{"type": "Ready", "status": status}]));
            let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": cordoned},
                "status": {"conditions": conditions}});
            node(&Object::new(object).expect("a node"), None).away
        };
        for (status, cordoned, expected) in [
            (Some("True"), None, None),
            (None, None, None),
            (Some("False"), None, Some(Away::NotReady)),
            (Some("Unknown"), Some(true), Some(Away::Unreachable)),
            (Some("True"), Some(true), Some(Away::Cordoned)),
            (Some("True"), Some(false), None),
        ] {
            assert_eq!(read(status, cordoned), expected, "{status:?} {cordoned:?}");
        }
    }

    #[test]
    fn node_labels_and_taints_are_read() {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"taints": [
            {"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"}]}});
        let place = place(&Object::new(object).expect("a node"));
        assert_eq!(place.labels, BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        assert_eq!((place.label("a"), place.label("b")), (Some("b"), None));
        assert_eq!(place.taints, [("k".to_owned(), "v".to_owned(), "NoSchedule".to_owned())]);
    }
}
