// SPDX-License-Identifier: Apache-2.0
//! Reads the objects, events, container logs and operator metrics of the cluster for a support bundle.

use super::super::context::Context;
use super::super::error::sentence;
use super::super::vdo_namespaces::{is_ours, namespaces};
use super::archive::Archive;
use super::fields::{self, Withheld};
use super::mask::Mask;
use super::missing::LOG;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vdo::cluster::{ClusterError, Select, Watch, list, metrics_of, pod_log_tail};
use vdo_api::api::{API_VERSION, STATE_TYPE};
use vdo_core::install::OPERATOR;
use vdo_core::manifest::Object;

/// The most objects of a kind.
const OF_A_KIND: usize = 500;

/// The most of a log, in lines and bytes.
const LINES: i64 = 5_000;
const BYTES: i64 = 1 << 20;

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

/// The types of Secrets whose values are not looked for: certificates, which are public, and the operator's state, which has no secrets and is
/// full of words that are in everything else.
const PUBLIC: [&str; 2] = ["kubernetes.io/tls", STATE_TYPE];

/// What was read of the cluster, as far as it may be shown.
pub(super) struct Collected {
    /// The paths of files, with the objects in each.
    lists: Vec<(String, Value)>,
    pods: Vec<Object>,
    /// What could not be read, and why.
    missing: Vec<String>,
}

/// Reads the objects, and everything that must not be shown of them: the values of Secrets, as far as these may be read, and the fields that
/// are in no list.
pub(super) async fn collect(context: &Context) -> (Collected, Mask) {
    let mut found = Collected {
        lists: Vec::new(),
        pods: Vec::new(),
        missing: Vec::new(),
    };
    let mut withheld = Withheld::default();
    let mut secrets = Vec::new();
    let client = &context.ports.client;
    for (api_version, kind) in OF_THE_CLUSTER {
        match list(client, &Watch::new(api_version, kind, "", Select::All)).await {
            Ok(objects) => found.take(&objects, kind, "", &mut withheld),
            Err(ClusterError::NotServed { .. }) => {}
            Err(error) => found.missing.push(format!("{kind}: {}", sentence(&error))),
        }
    }
    for namespace in namespaces(context) {
        for (api_version, kind) in OF_A_NAMESPACE {
            match list(client, &Watch::new(api_version, kind, &namespace, Select::All)).await {
                Ok(mut objects) => {
                    if kind == "Secret" {
                        secrets.extend(objects.iter().flat_map(values));
                    }
                    objects.retain(|object| is_ours(&namespace, object));
                    found.take(&objects, kind, &namespace, &mut withheld);
                    if kind == "Pod" {
                        found.pods.extend(objects);
                    }
                }
                Err(error) => found.missing.push(format!("{kind} objects in {namespace}: {}", sentence(&error))),
            }
        }
    }
    (found, Mask::new(&secrets, withheld.values()))
}

/// The values of a Secret that must not be shown.
fn values(secret: &Object) -> Vec<String> {
    if PUBLIC.contains(&secret.text("/type")) {
        return Vec::new();
    }
    let data = secret.value()["data"].as_object().cloned().unwrap_or_default();
    // The user is not a secret, and needed to understand a login.
    let hidden = data
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "username" | "ca.crt" | "namespace"));
    let decoded = hidden.filter_map(|(_, value)| STANDARD.decode(value.as_str()?).ok());
    decoded.filter_map(|bytes| String::from_utf8(bytes).ok()).collect()
}

impl Collected {
    /// One file for a kind in a namespace.
    fn take(&mut self, objects: &[Object], kind: &str, namespace: &str, withheld: &mut Withheld) {
        let included: Vec<&Object> = objects.iter().filter(|object| fields::is_included(object)).collect();
        if objects.is_empty() {
            return;
        }
        let items: Vec<Value> = included
            .iter()
            .take(OF_A_KIND)
            .map(|object| fields::shown(object, withheld))
            .collect();
        let place = if namespace.is_empty() { "cluster" } else { namespace };
        let list = json!({"apiVersion": "v1", "kind": "List", "found": objects.len(), "items": items});
        self.lists.push((format!("objects/{place}/{}.json", kind.to_lowercase()), list));
    }

    /// Writes the objects, and the logs of the pods. What could not be read, and why.
    pub(super) async fn write(self, context: &Context, archive: &mut Archive, mask: &Mask) -> Vec<String> {
        let mut missing = self.missing;
        for (path, list) in self.lists {
            archive.add(&path, mask.objects(list).as_bytes());
        }
        for pod in &self.pods {
            missing.extend(logs(context, pod, archive, mask).await);
        }
        missing
    }
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
                Err(error) => missing.push(format!("{LOG}{} container {name}{end}: {}", pod.id(), sentence(&error))),
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
