//! What is in the cluster: objects, events, logs, and what the operator counts.

use super::super::context::Context;
use super::super::error::sentence;
use super::archive::Archive;
use super::mask::Mask;
use crate::api::API_VERSION;
use crate::cluster::{ClusterError, Select, Watch, list, metrics_of, pod_log_tail};
use crate::drivers::KNOWN;
use crate::install::OPERATOR;
use crate::manifest::Object;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The most objects of a kind.
const OF_A_KIND: usize = 500;

/// The most of a log, in lines and bytes.
const LINES: i64 = 5_000;
const BYTES: i64 = 1 << 20;

/// A namespace of others as well: of it only what is called like the drivers.
const SHARED: &str = "kube-system";

/// Kinds without a namespace, or of all namespaces.
const OF_THE_CLUSTER: [(&str, &str); 9] = [
    (API_VERSION, "VDOConfig"),
    (API_VERSION, "VsphereCloudConfig"),
    (API_VERSION, "CompatibilityConfig"),
    ("v1", "Node"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("v1", "PersistentVolume"),
];

/// Kinds of the namespaces of the operator and the drivers.
const OF_A_NAMESPACE: [(&str, &str); 9] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Event"),
    ("coordination.k8s.io/v1", "Lease"),
];

/// The namespaces of the operator and of the drivers.
fn namespaces(context: &Context) -> BTreeSet<String> {
    let drivers = KNOWN.iter().map(|driver| driver.namespace.to_owned());
    drivers.chain([context.namespace().to_owned(), SHARED.to_owned()]).collect()
}

/// The values of the Secrets there, as far as they may be read: they are looked for in everything that goes into the bundle.
pub(super) async fn secrets(context: &Context) -> Vec<String> {
    let mut values = Vec::new();
    for namespace in namespaces(context) {
        let found = list(&context.ports.client, &Watch::new("v1", "Secret", &namespace, Select::All))
            .await
            .unwrap_or_default();
        for secret in found.iter().filter(|secret| secret.text("/type") != "kubernetes.io/tls") {
            let data = secret.value()["data"].as_object().into_iter().flatten();
            // The user is no secret, and needed to understand a login.
            let hidden = data.filter(|(key, _)| !matches!(key.as_str(), "username" | "ca.crt" | "namespace"));
            let decoded = hidden.filter_map(|(_, value)| STANDARD.decode(value.as_str()?).ok());
            values.extend(decoded.filter_map(|bytes| String::from_utf8(bytes).ok()));
        }
    }
    values
}

/// Writes everything. What could not be read, and why.
pub(super) async fn write(context: &Context, archive: &mut Archive, mask: &Mask) -> Vec<String> {
    let mut missing = Vec::new();
    let client = &context.ports.client;
    for (api_version, kind) in OF_THE_CLUSTER {
        match list(client, &Watch::new(api_version, kind, "", Select::All)).await {
            Ok(found) => objects(&found, kind, "", archive, mask),
            Err(ClusterError::NotServed { .. }) => {}
            Err(error) => missing.push(format!("{kind}: {}", sentence(&error))),
        }
    }
    for namespace in namespaces(context) {
        for (api_version, kind) in OF_A_NAMESPACE {
            match list(client, &Watch::new(api_version, kind, &namespace, Select::All)).await {
                Ok(mut found) => {
                    found.retain(|object| namespace != SHARED || is_ours(object));
                    if kind == "Pod" {
                        for pod in &found {
                            missing.extend(logs(context, pod, archive, mask).await);
                        }
                    }
                    objects(&found, kind, &namespace, archive, mask);
                }
                Err(error) => missing.push(format!("{kind} objects in {namespace}: {}", sentence(&error))),
            }
        }
    }
    missing
}

/// Whether an object of a shared namespace is of the operator or a driver.
fn is_ours(object: &Object) -> bool {
    let text = format!("{} {}", object.name(), object.text("/involvedObject/name"));
    text.contains("vsphere") || text.contains("vdo-")
}

/// One file for a kind in a namespace.
fn objects(found: &[Object], kind: &str, namespace: &str, archive: &mut Archive, mask: &Mask) {
    if found.is_empty() {
        return;
    }
    let items: Vec<Value> = found.iter().take(OF_A_KIND).map(shown).collect();
    let place = if namespace.is_empty() { "cluster" } else { namespace };
    let list = json!({"apiVersion": "v1", "kind": "List", "found": found.len(), "items": items});
    archive.add(&format!("objects/{place}/{}.json", kind.to_lowercase()), mask.json(list).as_bytes());
}

/// An object as it may be shown: of a Secret its keys, of binary data its size, and nothing that repeats either.
fn shown(object: &Object) -> Value {
    let mut value = object.masked();
    if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.ends_with("/last-applied-configuration"));
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if let Some(data) = value.get_mut("binaryData").and_then(Value::as_object_mut) {
        for content in data.values_mut() {
            *content = format!("({} characters)", content.as_str().map_or(0, str::len)).into();
        }
    }
    value
}

/// The logs of a pod's containers: of those that run, and of those before them where there were some.
async fn logs(context: &Context, pod: &Object, archive: &mut Archive, mask: &Mask) -> Vec<String> {
    let client = &context.ports.client;
    let statuses = pod
        .value()
        .pointer("/status/containerStatuses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut missing = Vec::new();
    for status in statuses {
        let name = status["name"].as_str().unwrap_or_default();
        let restarted = status["restartCount"].as_i64().unwrap_or(0) > 0;
        for current in [true, false].into_iter().filter(|current| *current || restarted) {
            let end = if current { "" } else { ".previous" };
            match pod_log_tail(client, pod.namespace(), pod.name(), name, current, LINES, BYTES).await {
                Ok(text) if text.is_empty() => {}
                Ok(text) => archive.add(
                    &format!("logs/{}/{}/{name}{end}.log", pod.namespace(), pod.name()),
                    mask.text(&text).as_bytes(),
                ),
                Err(error) => missing.push(format!("log of {} container {name}{end}: {}", pod.id(), sentence(&error))),
            }
        }
    }
    if pod.label("app.kubernetes.io/name") == Some(OPERATOR) {
        match metrics_of(client, pod.namespace(), pod.name()).await {
            Ok(text) => archive.add("metrics.txt", mask.text(&text).as_bytes()),
            Err(error) => missing.push(format!("metrics of {}: {}", pod.id(), sentence(&error))),
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn support_bundle_shows_keys_of_secrets_and_sizes_of_binary_data() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "namespace": "n", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\": \"x\"}", "a": "b"}},
            "data": {"password": "aHVudGVyMg=="},
        });
        let shown_secret = shown(&Object::new(secret).expect("an object"));
        assert_eq!(shown_secret["data"], json!({"password": "******"}));
        assert_eq!(shown_secret["metadata"]["annotations"], json!({"a": "b"}));
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}, "binaryData": {"k": "AAAA"}});
        assert_eq!(shown(&Object::new(map).expect("an object"))["binaryData"]["k"], "(4 characters)");
    }
}
