// SPDX-License-Identifier: Apache-2.0
//! Makes the objects for a dry run: a pod of a workload, and a recreated object in a form that the API server accepts over the live one.

use super::Object;
use serde_json::{Value, json};

/// The name of every pod that is tried. The rights of the operator name it, and nothing else has it.
pub const TRIAL_POD: &str = "vdo-dry-run";

/// The account that every namespace has.
pub const DEFAULT_ACCOUNT: &str = "default";

/// A pod of a workload, as its controller would create it but for the name. With `account` it runs under another ServiceAccount, without a token.
#[must_use]
pub fn trial_pod(workload: &Object, account: Option<&str>) -> Option<Object> {
    if !matches!(workload.kind(), "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") {
        return None;
    }
    let template = workload.value().pointer("/spec/template")?;
    let mut metadata = json!({"name": TRIAL_POD, "namespace": workload.namespace()});
    for field in ["labels", "annotations"] {
        if let Some(known) = template.pointer(&format!("/metadata/{field}")).filter(|known| known.is_object()) {
            metadata[field] = known.clone();
        }
    }
    let mut spec = template.get("spec")?.clone();
    if let (Some(account), Some(fields)) = (account, spec.as_object_mut()) {
        fields.shift_remove("serviceAccount");
        fields.insert("serviceAccountName".into(), account.into());
        fields.insert("automountServiceAccountToken".into(), false.into());
    }
    Object::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})).ok()
}

/// Whether the pods of a workload would be others than those of the live one.
#[must_use]
pub fn changes_pods(live: Option<&Object>, next: &Object) -> bool {
    let template = |object: &Object| object.value().pointer("/spec/template").cloned();
    live.is_none_or(|live| template(live) != template(next))
}

/// The fields, as paths, that cannot be changed and are no matter of a policy, by kind.
const FIXED: [(&str, &[&str]); 8] = [
    ("DaemonSet", &["/spec/selector"]),
    ("Deployment", &["/spec/selector"]),
    (
        "StatefulSet",
        &[
            "/spec/selector",
            "/spec/serviceName",
            "/spec/podManagementPolicy",
            "/spec/volumeClaimTemplates",
        ],
    ),
    ("ReplicaSet", &["/spec/selector"]),
    ("RoleBinding", &["/roleRef"]),
    ("ClusterRoleBinding", &["/roleRef"]),
    ("CSIDriver", &["/spec"]),
    (
        "StorageClass",
        &["/parameters", "/provisioner", "/reclaimPolicy", "/volumeBindingMode"],
    ),
];

/// An object that is recreated, in the form in which the server accepts it over its predecessor: what cannot be changed is as it was. `None`
/// for a kind of which that is not known.
#[must_use]
pub fn successor(desired: &Object, live: &Object) -> Option<Object> {
    let (_, fixed) = FIXED.iter().find(|(kind, _)| *kind == desired.kind())?;
    let mut value = desired.value().clone();
    for path in *fixed {
        let (parent, field) = path.rsplit_once('/')?;
        let parent = value.pointer_mut(parent)?.as_object_mut()?;
        match live.value().pointer(path) {
            Some(before) => drop(parent.insert(field.to_owned(), before.clone())),
            None => drop(parent.shift_remove(field)),
        }
    }
    // The pods must have the labels that the selector asks for.
    let selected = live.value().pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    if let (Some(selected), Some(labels)) = (
        selected,
        value.pointer_mut("/spec/template/metadata/labels").and_then(Value::as_object_mut),
    ) {
        labels.extend(selected.clone());
    }
    Object::new(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(kind: &str, image: &str, status: Value) -> Object {
        let template = json!({
            "metadata": {"creationTimestamp": null, "labels": {"app": "a"}, "annotations": {"sum": "1"}},
            "spec": {"serviceAccountName": "own", "serviceAccount": "own", "containers": [{"name": "c", "image": image}]},
        });
        let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
        let value =
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": "n"}, "spec": spec, "status": status});
        Object::new(value).expect("an object")
    }

    #[test]
    fn trial_pod_has_labels_annotations_and_account_of_the_template() {
        let set = workload("DaemonSet", "i:1", json!({}));
        let pod = trial_pod(&set, None).expect("a pod");
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "vdo-dry-run", "namespace": "n", "labels": {"app": "a"}, "annotations": {"sum": "1"}},
            "spec": {"serviceAccountName": "own", "serviceAccount": "own", "containers": [{"name": "c", "image": "i:1"}]},
        });
        assert_eq!(pod.value(), &expected);
        let other = trial_pod(&set, Some(DEFAULT_ACCOUNT)).expect("a pod");
        assert_eq!(
            other.value()["spec"],
            json!({"serviceAccountName": "default", "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i:1"}]})
        );
        assert!(trial_pod(&workload("Job", "i:1", json!({})), None).is_none());
    }

    #[test]
    fn pods_are_tried_where_the_template_is_another_one() {
        let (one, same) = (
            workload("DaemonSet", "i:1", json!({})),
            workload("DaemonSet", "i:1", json!({"x": 1})),
        );
        let other = workload("DaemonSet", "i:2", json!({}));
        assert!(changes_pods(None, &one) && changes_pods(Some(&one), &other));
        assert!(!changes_pods(Some(&one), &same));
    }

    #[test]
    fn successor_keeps_what_cannot_be_changed() {
        let mut live = workload("Deployment", "i:1", json!({})).into_value();
        live["spec"]["selector"] = json!({"matchLabels": {"old": "b"}});
        let live = Object::new(live).expect("an object");
        let next = successor(&workload("Deployment", "i:2", json!({})), &live).expect("a successor");
        assert_eq!(next.value()["spec"]["selector"], live.value()["spec"]["selector"]);
        assert_eq!(
            next.value()["spec"]["template"]["metadata"]["labels"],
            json!({"app": "a", "old": "b"})
        );
        assert_eq!(next.value()["spec"]["template"]["spec"]["containers"][0]["image"], "i:2");
        let class = |parameters: Value| {
            let value =
                json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "parameters": parameters});
            Object::new(value).expect("an object")
        };
        let next = successor(&class(json!({"a": "2"})), &class(json!({"a": "1"}))).expect("a successor");
        assert_eq!(next.value()["parameters"], json!({"a": "1"}));
        let map = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})).expect("an object");
        assert!(successor(&map, &map).is_none());
    }
}
