// SPDX-License-Identifier: Apache-2.0
//! Compares the rendered objects of two driver versions: added, removed and recreated objects, and what an upgrade breaks.

use super::definitions;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::types::ObjectId;
use vdo_core::chart::{DocumentError, object_id};
use vdo_core::plan::replaceable;

/// A version beside the one before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What an upgrade cannot do, or does at a price: each a sentence.
    pub breaking: Vec<String>,
    /// Objects that are recreated, because a field of them cannot be changed.
    pub recreated: Vec<ObjectId>,
    /// Objects that only the new version has.
    pub added: Vec<ObjectId>,
    /// Objects that only the old version has: they are pruned.
    pub removed: Vec<ObjectId>,
    /// Objects with another content.
    pub changed: Vec<ObjectId>,
}

/// Fields that the API server never lets be changed, by kind. From the API reference of Kubernetes 1.36.
const IMMUTABLE: [(&str, &str, &[&str]); 15] = [
    ("apps", "Deployment", &["/spec/selector"]),
    ("apps", "DaemonSet", &["/spec/selector"]),
    ("apps", "ReplicaSet", &["/spec/selector"]),
    (
        "apps",
        "StatefulSet",
        &[
            "/spec/selector",
            "/spec/serviceName",
            "/spec/podManagementPolicy",
            "/spec/volumeClaimTemplates",
        ],
    ),
    ("batch", "Job", &["/spec/selector", "/spec/template", "/spec/completionMode"]),
    ("", "Service", &["/spec/clusterIP"]),
    ("", "Secret", &["/type"]),
    (
        "",
        "PersistentVolumeClaim",
        &["/spec/storageClassName", "/spec/accessModes", "/spec/volumeMode"],
    ),
    (
        "storage.k8s.io",
        "StorageClass",
        &["/provisioner", "/parameters", "/reclaimPolicy", "/volumeBindingMode"],
    ),
    (
        "storage.k8s.io",
        "CSIDriver",
        &["/spec/attachRequired", "/spec/volumeLifecycleModes"],
    ),
    ("scheduling.k8s.io", "PriorityClass", &["/value"]),
    ("node.k8s.io", "RuntimeClass", &["/handler"]),
    ("rbac.authorization.k8s.io", "RoleBinding", &["/roleRef"]),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", &["/roleRef"]),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"],
    ),
];

/// What the new objects have other than the old ones.
///
/// # Errors
/// When one of them is not an object.
pub fn compare(old: &[Value], new: &[Value]) -> Result<Comparison, DocumentError> {
    let (old, new) = (by_id(old)?, by_id(new)?);
    let mut comparison = Comparison {
        added: new.keys().filter(|id| !old.contains_key(*id)).cloned().collect(),
        removed: old.keys().filter(|id| !new.contains_key(*id)).cloned().collect(),
        ..Comparison::default()
    };
    for id in &comparison.removed {
        if id.kind() == definitions::KIND {
            comparison
                .breaking
                .push(format!("{id} is removed: the objects that it defines are deleted with it"));
        }
    }
    for (id, object) in &new {
        let Some(before) = old.get(id).filter(|before| before != &object) else {
            continue;
        };
        comparison.changed.push(id.clone());
        fixed_fields(id, before, object, &mut comparison);
        if id.kind() == definitions::KIND {
            let lost = definitions::lost(before, object);
            comparison.breaking.extend(lost.into_iter().map(|what| format!("{id}: {what}")));
        }
    }
    Ok(comparison)
}

fn fixed_fields(id: &ObjectId, before: &Value, after: &Value, comparison: &mut Comparison) {
    let listed = IMMUTABLE.iter().find(|(group, kind, _)| (*group, *kind) == (id.group(), id.kind()));
    let mut fields = listed.map_or(&[][..], |(_, _, fields)| fields).to_vec();
    if before["immutable"] == Value::Bool(true) {
        fields.extend(["/data", "/binaryData", "/stringData"]);
    }
    let differs = |field: &&&str| before.pointer(field) != after.pointer(field);
    let Some(field) = fields.iter().find(differs) else {
        return;
    };
    let path = field.trim_start_matches('/').replace('/', ".");
    if !replaceable(id) {
        comparison.breaking.push(format!(
            "{id}: {path} differs; this field cannot be changed, and the object cannot be recreated"
        ));
    } else if *field == "/spec/selector" {
        comparison.breaking.push(format!(
            "{id}: {path} differs, so all old pods are deleted before the first new pod starts"
        ));
    }
    if replaceable(id) {
        comparison.recreated.push(id.clone());
    }
}

fn by_id(objects: &[Value]) -> Result<BTreeMap<ObjectId, &Value>, DocumentError> {
    objects.iter().map(|object| Ok((object_id(object)?, object))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(api: &str, kind: &str, fields: Value) -> Value {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "n"}});
        for (key, value) in fields.as_object().expect("fields") {
            object[key] = value.clone();
        }
        object
    }

    #[test]
    fn publish_comparison_names_what_an_upgrade_cannot_do() {
        let selector = |app: &str| json!({"spec": {"selector": {"matchLabels": {"app": app}}}});
        let cases = [
            (
                "apps/v1",
                "Deployment",
                selector("a"),
                selector("b"),
                Some("spec.selector differs, so all old pods"),
                true,
            ),
            (
                "apps/v1",
                "StatefulSet",
                selector("a"),
                selector("b"),
                Some("cannot be recreated"),
                false,
            ),
            ("apps/v1", "Deployment", selector("a"), selector("a"), None, false),
            (
                "v1",
                "ConfigMap",
                json!({"data": {"a": "1"}}),
                json!({"data": {"a": "2"}}),
                None,
                false,
            ),
            (
                "v1",
                "ConfigMap",
                json!({"immutable": true, "data": {"a": "1"}}),
                json!({"immutable": true, "data": {"a": "2"}}),
                None,
                true,
            ),
            (
                "storage.k8s.io/v1",
                "CSIDriver",
                json!({"spec": {"attachRequired": true}}),
                json!({"spec": {"attachRequired": false}}),
                None,
                true,
            ),
            (
                "storage.k8s.io/v1",
                "StorageClass",
                json!({"provisioner": "a"}),
                json!({"provisioner": "b"}),
                Some("provisioner differs; this field cannot be changed"),
                false,
            ),
            (
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                json!({"roleRef": {"name": "a"}}),
                json!({"roleRef": {"name": "b"}}),
                Some("roleRef differs"),
                false,
            ),
        ];
        for (api, kind, old, new, breaking, recreated) in cases {
            let found = compare(&[object(api, kind, old)], &[object(api, kind, new)]).expect("objects");
            match breaking {
                Some(words) => assert!(found.breaking.len() == 1 && found.breaking[0].contains(words), "{kind}: {found:?}"),
                None => assert_eq!(found.breaking, [""; 0], "{kind}"),
            }
            assert_eq!(!found.recreated.is_empty(), recreated, "{kind}: {found:?}");
        }
    }

    #[test]
    fn publish_comparison_lists_objects_that_come_and_go() {
        let config = object("v1", "ConfigMap", json!({}));
        let definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}));
        let found = compare(std::slice::from_ref(&definition), std::slice::from_ref(&config)).expect("objects");
        assert_eq!((found.added.len(), found.removed.len(), found.changed.len()), (1, 1, 0));
        assert!(
            found.breaking[0].contains("the objects that it defines are deleted with it"),
            "{found:?}"
        );
        let same = compare(std::slice::from_ref(&config), std::slice::from_ref(&config)).expect("objects");
        assert_eq!(same, Comparison::default());
    }
}
