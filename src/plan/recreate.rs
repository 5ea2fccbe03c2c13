//! Which objects may be made anew where a field differs that cannot be changed.

use crate::manifest::Object;
use crate::types::ObjectId;
use serde_json::Value;

/// Kinds that hold nothing but what is written into them, so that deleting and creating one loses nothing. Whatever holds data,
/// or whose disappearance takes other things along, is missing here: volumes, claims, storage classes, definitions, namespaces.
const REPLACEABLE: [(&str, &str); 7] = [
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "Service"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("storage.k8s.io", "CSIDriver"),
    ("batch", "Job"),
];

/// Whether an object of this kind may be deleted and made anew.
#[must_use]
pub fn replaceable(id: &ObjectId) -> bool {
    REPLACEABLE.contains(&(id.group(), id.kind()))
}

/// Whether the successor of a workload would take over the pods that run: its selector matches them. Then they stay and are
/// rolled one by one; otherwise two sets of pods would fight for the same sockets, so the old ones go first.
pub(super) fn keeps_pods(wanted: &Object, live: &Object) -> bool {
    let labels = |object: &Object, pointer: &str| {
        object
            .value()
            .pointer(pointer)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (selector, pods) = (
        labels(wanted, "/spec/selector/matchLabels"),
        labels(live, "/spec/template/metadata/labels"),
    );
    !selector.is_empty() && selector.iter().all(|(key, value)| pods.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recreate_kind_that_holds_data_is_never_allowed() {
        for (group, kind) in [
            ("", "PersistentVolumeClaim"),
            ("", "PersistentVolume"),
            ("", "Namespace"),
            ("storage.k8s.io", "StorageClass"),
            ("storage.k8s.io", "VolumeAttachment"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("apps", "StatefulSet"),
            ("example.com", "Deployment"),
        ] {
            assert!(!replaceable(&ObjectId::new(group, kind, "", "x")), "{group} {kind}");
        }
        assert!(replaceable(&ObjectId::new("storage.k8s.io", "CSIDriver", "", "x")));
    }

    #[test]
    fn recreate_matching_selector_keeps_pods() {
        let workload = |selector: Value, labels: Value| {
            let spec = json!({"selector": {"matchLabels": selector}, "template": {"metadata": {"labels": labels}}});
            Object::new(json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec})).expect("an object")
        };
        for (new, old, keep) in [
            (json!({"app": "a"}), json!({"app": "a", "role": "r"}), true),
            (json!({"app": "a"}), json!({"app": "b"}), false),
            (json!({"app": "a", "role": "r"}), json!({"app": "a"}), false),
            (json!({}), json!({"app": "a"}), false),
        ] {
            assert_eq!(keeps_pods(&workload(new.clone(), new), &workload(old.clone(), old)), keep);
        }
    }

    #[test]
    fn recreate_kind_that_holds_nothing_is_allowed() {
        for (group, kind) in REPLACEABLE {
            assert!(replaceable(&ObjectId::new(group, kind, "", "x")), "{group} {kind}");
        }
    }
}
