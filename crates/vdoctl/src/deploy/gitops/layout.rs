// SPDX-License-Identifier: Apache-2.0
//! Assigns each object to a file of the `--gitops` folder; adds Kustomizations, sync waves and prune annotations for Flux and Argo CD.

use super::super::Manifests;
use super::readme;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vdo_api::api::{SERVERS, VsphereCloudConfig};
use vdo_api::yaml::dump_all;
use vdo_core::install::{MATRIX, MATRIX_KEYS};
use vdo_core::manifest::Object;

/// The file with the Secrets that are left out, without their values.
pub(super) const EXAMPLE: &str = "secrets.example.yaml";

/// In which step Argo CD applies an object. It waits until what an earlier step has applied is healthy.
const WAVE: &str = "argocd.argoproj.io/sync-wave";

/// What keeps tools from deleting an object: the deletion of a namespace would end the storage driver under its volumes, that of a definition
/// deletes the configuration.
const KEPT: [(&str, &str); 2] = [
    ("argocd.argoproj.io/sync-options", "Prune=false,Delete=false"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
];

/// The files of a folder.
pub(super) struct Layout {
    /// By their paths below the folder.
    pub(super) files: BTreeMap<String, String>,
    /// The Secrets that are files when they are encrypted.
    pub(super) secrets: BTreeMap<String, Value>,
    /// The Secrets that are in no file.
    pub(super) needed: Vec<Needed>,
}

/// A Secret that has to be in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Needed {
    namespace: String,
    name: String,
    /// Its type.
    form: String,
    keys: BTreeSet<String>,
    /// The servers that it may be sent to, as its annotation has them.
    servers: Option<String>,
}

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        write!(f, "Secret {}/{} with {}", self.namespace, self.name, keys.join(" and "))
    }
}

impl Layout {
    /// All files but those of encrypted Secrets.
    pub(super) fn of(manifests: &Manifests, encrypts: bool) -> Self {
        let mut documents: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let (mut secrets, mut needed) = (BTreeMap::new(), BTreeSet::new());
        for object in manifests.all() {
            let (file, wave) = place(object, &manifests.matrix);
            let value = annotated(object, wave);
            if !object.is_secret() || [MATRIX, MATRIX_KEYS].contains(&object.name()) {
                documents.entry(file).or_default().push(value);
            } else if encrypts {
                secrets.insert(file, value);
            } else {
                needed.insert(Needed::of(object));
            }
        }
        needed.extend(named(manifests));
        let needed: Vec<Needed> = needed.into_iter().collect();
        let paths = documents.keys().chain(secrets.keys()).cloned().collect();
        let mut files = kustomizations(&paths);
        files.extend(documents.iter().map(|(file, all)| (file.clone(), dump_all(all))));
        files.insert("README.md".into(), readme::text(&needed, secrets.keys()));
        if !needed.is_empty() {
            let examples: Vec<Value> = needed.iter().map(Needed::example).collect();
            let head = "# This file is not applied. It shows the Secrets that must exist in the cluster. Never commit them with values.\n";
            files.insert(EXAMPLE.into(), format!("{head}{}", dump_all(&examples)));
        }
        Self { files, secrets, needed }
    }
}

/// The file of an object, and its step.
fn place(object: &Object, of_the_matrix: &[Object]) -> (String, &'static str) {
    let name = object.name();
    let operators = of_the_matrix.iter().any(|other| other.identity() == object.identity());
    let (file, wave) = match object.kind() {
        "Namespace" => ("operator/namespaces.yaml", "0"),
        "CustomResourceDefinition" => ("operator/definitions.yaml", "0"),
        // The operator's pod does not begin before what it mounts is there.
        "Secret" if operators => return (format!("operator/secret-{name}.yaml"), "1"),
        "ConfigMap" if operators => ("operator/matrix.yaml", "1"),
        "ServiceAccount" | "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => ("operator/rights.yaml", "1"),
        "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding" => ("operator/admission.yaml", "1"),
        "Secret" => return (format!("config/secret-{name}.yaml"), "2"),
        "ConfigMap" => ("config/configmaps.yaml", "2"),
        "VsphereCloudConfig" => ("config/connections.yaml", "3"),
        "VDOConfig" => ("config/vdoconfig.yaml", "4"),
        _ => ("operator/operator.yaml", "1"),
    };
    (file.to_owned(), wave)
}

fn annotated(object: &Object, wave: &str) -> Value {
    let mut object = object.clone();
    object.set_annotation(WAVE, wave);
    if ["Namespace", "CustomResourceDefinition"].contains(&object.kind()) {
        KEPT.iter().for_each(|(key, text)| object.set_annotation(key, text));
    }
    object.into_value()
}

/// One for each folder, and one above them.
fn kustomizations(paths: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (folder, file) in paths.iter().filter_map(|path| path.split_once('/')) {
        folders.entry(folder).or_default().push(file);
    }
    let text = |resources: &[&str]| {
        dump_all(&[json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources})])
    };
    let mut all: BTreeMap<String, String> = folders
        .iter()
        .map(|(folder, files)| (format!("{folder}/kustomization.yaml"), text(files)))
        .collect();
    // The operator before its configuration, for those who apply it in the order of the list.
    let mut order: Vec<&str> = folders.keys().copied().collect();
    order.sort_by_key(|folder| *folder != "operator");
    all.insert("kustomization.yaml".into(), text(&order));
    all
}

/// The Secrets that connections name and that are not among the objects.
fn named(manifests: &Manifests) -> Vec<Needed> {
    let has = |namespace: &str, name: &str| {
        let mut secrets = manifests.all().filter(|object| object.is_secret());
        secrets.any(|object| object.name() == name && object.namespace() == namespace)
    };
    let mut all = Vec::new();
    for object in &manifests.configuration {
        let Ok(connection) = serde_json::from_value::<VsphereCloudConfig>(object.value().clone()) else {
            continue;
        };
        let spec = connection.spec;
        let namespace = spec.credentials_namespace.as_deref().unwrap_or(object.namespace());
        if !has(namespace, &spec.credentials) {
            all.push(Needed {
                namespace: namespace.into(),
                name: spec.credentials,
                form: "kubernetes.io/basic-auth".into(),
                keys: ["username", "password"].map(str::to_owned).into(),
                servers: Some(spec.vc_ip),
            });
        }
        let bundle = spec.ca_bundle.and_then(|bundle| Some((bundle.secret?, bundle.key)));
        if let Some((name, key)) = bundle.filter(|(name, _)| !has(object.namespace(), name)) {
            all.push(Needed {
                namespace: object.namespace().into(),
                name,
                form: "Opaque".into(),
                keys: [key].into(),
                servers: None,
            });
        }
    }
    all
}

impl Needed {
    fn of(object: &Object) -> Self {
        let data = object.value().get("data").and_then(Value::as_object);
        let form = object.text("/type");
        Self {
            namespace: object.namespace().into(),
            name: object.name().into(),
            form: if form.is_empty() { "Opaque".into() } else { form.into() },
            keys: data.into_iter().flat_map(|data| data.keys().cloned()).collect(),
            servers: object.annotation(SERVERS).map(str::to_owned),
        }
    }

    fn example(&self) -> Value {
        let keys: serde_json::Map<String, Value> = self.keys.iter().map(|key| (key.clone(), "".into())).collect();
        let mut metadata = json!({"name": self.name, "namespace": self.namespace});
        if let Some(servers) = &self.servers {
            metadata["annotations"] = json!({SERVERS: servers});
        }
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": self.form, "stringData": keys})
    }
}

#[cfg(test)]
mod tests;
