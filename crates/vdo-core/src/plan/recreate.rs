// SPDX-License-Identifier: Apache-2.0
//! Decides which objects may be deleted and recreated when an immutable field differs, and whether their pods stay.

use crate::manifest::Object;
use serde_json::Value;
use vdo_api::types::ObjectId;

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

/// Whether an object of this kind may be deleted and recreated.
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

/// In this annotation a DaemonSet counts the changes of its template, and in a label each of its pods has the number of its template. The
/// DaemonSet controller takes a pod with the number of now for a current one, whatever its template was.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The object as it is created. The API server lets a DaemonSet begin to count at any number, by default at 1, where its predecessor began,
/// too: pods that it takes over would then keep their old template. So it begins at a number of its own content; where the template of
/// such pods is the same, the controller knows that by its hash.
pub(super) fn created(mut object: Object) -> Object {
    if (object.identity().group(), object.kind()) == ("apps", "DaemonSet") {
        let digest = object.digest("").hex();
        // 28 bits, and never the number at which all others begin.
        let number = digest.get(..7).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        object.set_annotation(TEMPLATE_GENERATION, &number.unwrap_or_default().saturating_add(2).to_string());
    }
    object
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
    fn recreate_of_daemon_set_counts_its_templates_from_a_number_of_its_own() {
        let object = |api_version: &str, kind: &str, image: &str| {
            let spec = json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}});
            Object::new(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "d"}, "spec": spec})).expect("an object")
        };
        let begins = |image: &str| {
            let first = created(object("apps/v1", "DaemonSet", image));
            first.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse::<i64>().ok())
        };
        assert_eq!(begins("a"), begins("a"));
        assert_ne!(begins("a"), begins("b"));
        assert!(["a", "b", "c"].into_iter().all(|image| begins(image) > Some(1)));
        for (api_version, kind) in [("apps/v1", "Deployment"), ("example.com/v1", "DaemonSet"), ("v1", "ConfigMap")] {
            let plain = object(api_version, kind, "a");
            assert_eq!(created(plain.clone()), plain, "{api_version} {kind}");
        }
    }

    #[test]
    fn recreate_kind_that_holds_nothing_is_allowed() {
        for (group, kind) in REPLACEABLE {
            assert!(replaceable(&ObjectId::new(group, kind, "", "x")), "{group} {kind}");
        }
    }
}
