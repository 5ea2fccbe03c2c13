use super::{ClusterError, Select, Watch, read, resource};
use crate::manifest::{Object, is_owned};
use crate::types::ObjectId;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;

/// What depends on a namespace, a storage class or a definition, in words that follow the name of the object; `None` when
/// nothing does. Asked only before such an object is deleted.
///
/// # Errors
/// When it cannot be found out: then the object must stay.
pub async fn holder(client: &Client, id: &ObjectId, apply_set: &str) -> Result<Option<String>, ClusterError> {
    match id.kind() {
        "Namespace" => content(client, &id.name, apply_set).await,
        "StorageClass" => user(client, &id.name).await,
        "CustomResourceDefinition" => instance(client, &id.name).await,
        _ => Ok(None),
    }
}

/// An object in a namespace that neither we nor Kubernetes itself put there, because everything in it would go too. Only
/// metadata is read: what is in a Secret is nobody's business here.
async fn content(client: &Client, namespace: &str, apply_set: &str) -> Result<Option<String>, ClusterError> {
    const KINDS: [(&str, &str); 15] = [
        ("v1", "Pod"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("v1", "ServiceAccount"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "CronJob"),
        ("batch/v1", "Job"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("policy/v1", "PodDisruptionBudget"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ];
    for (api_version, kind) in KINDS {
        let found = read::list_metadata(client, &Watch::new(api_version, kind, namespace, Select::All)).await?;
        if let Some(foreign) = found.iter().find(|object| !expected(object, apply_set)) {
            return Ok(Some(format!("it holds {foreign} of somebody else")));
        }
    }
    Ok(None)
}

/// What Kubernetes puts into every namespace, what is ours, and what is on its way out.
fn expected(object: &Object, apply_set: &str) -> bool {
    let standard = matches!(
        (object.kind(), object.name()),
        ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default")
    );
    is_owned(object, apply_set) || standard || follows(object) || object.is_leaving()
}

/// A pod whose workload is looked at itself. Without that workload the garbage collector is on its way to the pod.
fn follows(pod: &Object) -> bool {
    let owners = pod.value().pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    let kind = controller.and_then(|owner| owner["kind"].as_str()).unwrap_or_default();
    pod.kind() == "Pod"
        && match kind {
            "DaemonSet" | "StatefulSet" => true,
            // A Deployment's, and nobody's alone.
            "ReplicaSet" => pod.label("pod-template-hash").is_some(),
            _ => false,
        }
}

/// A claim or a volume of a storage class.
async fn user(client: &Client, class: &str) -> Result<Option<String>, ClusterError> {
    for kind in ["PersistentVolume", "PersistentVolumeClaim"] {
        let found = read::list(client, &Watch::new("v1", kind, "", Select::All)).await?;
        let uses = |o: &&Object| {
            o.text("/spec/storageClassName") == class || o.annotation("volume.beta.kubernetes.io/storage-class") == Some(class)
        };
        if let Some(user) = found.iter().find(uses) {
            return Ok(Some(format!("{user} uses it")));
        }
    }
    Ok(None)
}

/// An instance of a definition.
async fn instance(client: &Client, name: &str) -> Result<Option<String>, ClusterError> {
    let watch = Watch::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        Select::Name(name.to_owned()),
    );
    let Some(definition) = read::list(client, &watch).await?.pop() else {
        return Ok(None);
    };
    let versions = definition.value().pointer("/spec/versions").and_then(Value::as_array);
    let Some(version) = versions.into_iter().flatten().find(|version| version["served"] == true) else {
        return Ok(Some("none of its versions is served, so its objects cannot be counted".into()));
    };
    let api_version = format!(
        "{}/{}",
        definition.text("/spec/group"),
        version["name"].as_str().unwrap_or_default()
    );
    let mut kind = resource(&api_version, definition.text("/spec/names/kind"));
    definition.text("/spec/names/plural").clone_into(&mut kind.plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let id = ObjectId::new(definition.text("/spec/group"), &kind.kind, "", "");
    let found = read::timed("list", &api_version, &id, api.list_metadata(&ListParams::default().limit(1))).await?;
    let first = found.items.first().and_then(|item| item.metadata.name.clone());
    Ok(first.map(|first| format!("it has objects, for example {first}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn namespace_prune_each_object_is_expected_or_foreign() {
        let by = |kind: &str| json!([{"kind": kind, "name": "w", "uid": "u", "apiVersion": "apps/v1", "controller": true}]);
        for (kind, metadata, expects) in [
            ("Pod", json!({}), false),
            ("Pod", json!({"ownerReferences": by("DaemonSet")}), true),
            ("Pod", json!({"ownerReferences": by("Job")}), false),
            ("Pod", json!({"ownerReferences": by("ReplicaSet")}), false),
            (
                "Pod",
                json!({"ownerReferences": by("ReplicaSet"), "labels": {"pod-template-hash": "h"}}),
                true,
            ),
            ("Pod", json!({"ownerReferences": [{"kind": "DaemonSet", "name": "w"}]}), false),
            ("Pod", json!({"deletionTimestamp": "now"}), true),
            ("ConfigMap", json!({"ownerReferences": by("DaemonSet")}), false),
            ("ConfigMap", json!({"name": "kube-root-ca.crt"}), true),
            ("ConfigMap", json!({"labels": {"applyset.kubernetes.io/part-of": "set"}}), false),
            (
                "ConfigMap",
                json!({"labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/part-of": "set"}}),
                true,
            ),
            ("DaemonSet", json!({}), false),
        ] {
            let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}});
            for (key, value) in metadata.as_object().into_iter().flatten() {
                object["metadata"][key] = value.clone();
            }
            let text = object.to_string();
            assert_eq!(expected(&Object::new(object).expect("an object"), "set"), expects, "{text}");
        }
    }
}
