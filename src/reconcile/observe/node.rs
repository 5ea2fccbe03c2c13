//! A Node object as a fact (pure).

use serde_json::Value;
use vdo_api::facts::{Node, Place};
use vdo_core::drivers::CSI_DRIVER;
use vdo_core::manifest::{Object, UNINITIALIZED};

/// Whether our CSI driver is registered on the node of a CSINode.
pub(in crate::reconcile) fn registers(csi_node: &Object) -> bool {
    let drivers = csi_node.value().pointer("/spec/drivers").and_then(Value::as_array);
    drivers.is_some_and(|all| all.iter().any(|d| d.get("name").and_then(Value::as_str) == Some(CSI_DRIVER)))
}

/// A node as the drivers see it.
pub(in crate::reconcile) fn node(object: &Object, csi_registered: bool) -> Node {
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
        csi_registered,
        system_uuid: object.text("/status/nodeInfo/systemUUID").to_owned(),
        kubelet: Some(object.text("/status/nodeInfo/kubeletVersion").to_owned()).filter(|version| !version.is_empty()),
        addresses: addresses(object),
        network: network(object),
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
            node(&Object::new(object).expect("a node"), false).network
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
    fn node_labels_and_taints_are_read() {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"taints": [
            {"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"}]}});
        let place = place(&Object::new(object).expect("a node"));
        assert_eq!(place.labels, BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        assert_eq!((place.label("a"), place.label("b")), (Some("b"), None));
        assert_eq!(place.taints, [("k".to_owned(), "v".to_owned(), "NoSchedule".to_owned())]);
    }
}
