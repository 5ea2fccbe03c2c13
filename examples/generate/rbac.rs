//! The rights of the operator, from what the charts of all versions contain: it may write exactly the objects that a chart
//! or the driver configuration can bring, by name, and it holds the rights that the charts grant, because Kubernetes lets
//! nobody grant what he does not have.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use vdo::chart::{self, Context};

const HEADER: &str = "# Generated from charts/ by `make manifests`. Do not edit.\n";
const NAMESPACE: &str = "vmware-system-vdo";

type Failure = Box<dyn Error>;

/// Group, resource, names, verbs of one place.
#[derive(Default)]
struct Rules(BTreeMap<(String, String, BTreeSet<String>), BTreeSet<String>>);

impl Rules {
    fn add(&mut self, group: &str, resource: &str, names: &[&str], verbs: &[&str]) {
        let names = names.iter().map(|n| (*n).to_owned()).collect();
        self.0
            .entry((group.into(), resource.into(), names))
            .or_default()
            .extend(verbs.iter().map(|v| (*v).to_owned()));
    }

    /// One rule for each group and set of verbs and names.
    fn json(&self) -> Vec<Value> {
        let mut merged: BTreeMap<(String, BTreeSet<String>, BTreeSet<String>), BTreeSet<String>> = BTreeMap::new();
        for ((group, resource, names), verbs) in &self.0 {
            merged
                .entry((group.clone(), names.clone(), verbs.clone()))
                .or_default()
                .insert(resource.clone());
        }
        merged
            .into_iter()
            .map(|((group, names, verbs), resources)| {
                let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
                if !names.is_empty() {
                    rule["resourceNames"] = json!(names);
                }
                rule
            })
            .collect()
    }
}

/// All rights, by namespace; the empty one is the cluster.
struct Rights {
    written: BTreeMap<String, Rules>,
    granted: BTreeMap<String, Rules>,
}

/// Writes deploy/rbac.yaml.
#[allow(dead_code, reason = "the test that compares the file includes this module and writes nothing")]
pub fn rbac() -> Result<(), Failure> {
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/rbac.yaml"), text()?)?;
    Ok(())
}

/// The content of deploy/rbac.yaml.
pub fn text() -> Result<String, Failure> {
    let rights = collect()?;
    let mut documents = vec![json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "vdo-operator", "namespace": NAMESPACE},
    })];
    for (namespace, rules) in &rights.written {
        role(&mut documents, "vdo-operator", namespace, rules);
    }
    for (namespace, rules) in &rights.granted {
        role(&mut documents, "vdo-operator-drivers", namespace, rules);
    }
    Ok(format!("{HEADER}{}", vdo::yaml::dump_all(&documents)))
}

fn role(documents: &mut Vec<Value>, name: &str, namespace: &str, rules: &Rules) {
    let (kind, metadata) = if namespace.is_empty() {
        ("ClusterRole", json!({"name": name}))
    } else {
        ("Role", json!({"name": name, "namespace": namespace}))
    };
    documents.push(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules.json()}));
    documents.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "vdo-operator", "namespace": NAMESPACE}],
    }));
}

fn collect() -> Result<Rights, Failure> {
    let mut rights = Rights {
        written: BTreeMap::new(),
        granted: BTreeMap::new(),
    };
    own(&mut rights);
    for (_, source) in vdo::fetch::embedded::sources() {
        for version in source.versions() {
            let opened = chart::open(&chart::package(&source, &version)?)?;
            // Objects that a chart renders only when it is asked to.
            let values = match opened.values.get("webhook") {
                Some(_) => json!({"webhook": {"enabled": true, "caBundle": "Q0E="}}),
                None => Value::Null,
            };
            for object in chart::render(&opened, &values, &Context::default())? {
                object_rights(&mut rights, &object);
            }
        }
    }
    // The driver configuration, which is in no chart.
    for (kind, namespace, name) in [
        ("secrets", "kube-system", "vsphere-cloud-secret"),
        ("configmaps", "kube-system", "vsphere-cloud-config"),
        ("secrets", "", "vsphere-config-secret"),
        ("secrets", "", "vsphere-webhook-certs"),
    ] {
        let place = rights.written.entry(namespace.to_owned()).or_default();
        place.add("", kind, &[name], &["create", "delete", "patch"]);
        if kind == "secrets" {
            place.add("", kind, &[name], &["list", "watch"]);
        }
    }
    Ok(rights)
}

/// What the operator needs for itself, whatever the charts contain.
fn own(rights: &mut Rights) {
    let cluster = rights.written.entry(String::new()).or_default();
    cluster.add("", "nodes", &[], &["list", "watch"]);
    cluster.add("storage.k8s.io", "csinodes", &[], &["list", "watch"]);
    cluster.add("", "namespaces", &["kube-system"], &["list", "watch"]);
    cluster.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &vdo::reconcile::snapshots::DEFINITIONS,
        &["list", "watch"],
    );
    cluster.add("events.k8s.io", "events", &[], &["create", "patch"]);
    // The last words of a container that fails, and whether a webhook is served.
    cluster.add("", "pods/log", &[], &["get"]);
    cluster.add("discovery.k8s.io", "endpointslices", &[], &["list", "watch"]);
    // Asked before a namespace of a driver is deleted: does it hold anything of somebody else?
    for (group, kinds) in [
        (
            "",
            &["pods", "persistentvolumeclaims", "configmaps", "services", "serviceaccounts"][..],
        ),
        ("apps", &["deployments", "daemonsets", "statefulsets"]),
        ("batch", &["cronjobs", "jobs"]),
        ("networking.k8s.io", &["networkpolicies"]),
        ("policy", &["poddisruptionbudgets"]),
        ("rbac.authorization.k8s.io", &["rolebindings", "roles"]),
    ] {
        for kind in kinds {
            cluster.add(group, kind, &[], &["list"]);
        }
    }
    // Asked before the storage driver or a storage class is removed: are there volumes or snapshots?
    cluster.add("", "persistentvolumes", &[], &["list", "watch"]);
    cluster.add("storage.k8s.io", "volumeattachments", &[], &["list", "watch"]);
    cluster.add("snapshot.storage.k8s.io", "volumesnapshotcontents", &[], &["list", "watch"]);
    // StorageClasses have the names that the VDOConfig gives them.
    cluster.add(
        "storage.k8s.io",
        "storageclasses",
        &[],
        &["list", "watch", "create", "delete", "patch"],
    );
    let home = rights.written.entry(NAMESPACE.to_owned()).or_default();
    home.add("vdo.vmware.com", "vdoconfigs", &[], &["list", "watch", "patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs", &[], &["list", "watch"]);
    home.add("vdo.vmware.com", "vdoconfigs/status", &[], &["patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs/status", &[], &["patch"]);
    home.add("", "secrets", &[], &["list", "watch"]);
    // The state of the webhook's certificate.
    home.add("", "secrets", &[vdo::reconcile::webhook::SECRET], &["create", "patch"]);
    home.add("", "configmaps", &[], &["list", "watch", "create", "patch", "delete"]);
    let kube_system = rights.written.entry("kube-system".to_owned()).or_default();
    kube_system.add("", "pods", &[], &["list", "watch"]);
    // One operator of several acts.
    kube_system.add("coordination.k8s.io", "leases", &[], &["create"]);
    kube_system.add("coordination.k8s.io", "leases", &["vdo-operator"], &["get", "update"]);
}

/// The right to write an object, and, if it is a role, the rights that it grants.
fn object_rights(rights: &mut Rights, object: &Value) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let resource = format!("{}s", kind.to_lowercase());
    // A role can be bound only to a namespace that exists; that of the CSI driver comes with the driver.
    let place = match text("/metadata/namespace") {
        "kube-system" => "kube-system",
        _ => "",
    };
    let written = rights.written.entry(place.to_owned()).or_default();
    written.add(group, &resource, &[name], &["create", "delete", "patch"]);
    if kind == "Namespace" {
        written.add(group, &resource, &[name], &["list", "watch"]);
    } else {
        written.add(group, &resource, &[], &["list", "watch"]);
    }
    for rule in object.get("rules").and_then(Value::as_array).into_iter().flatten() {
        let list = |key: &str| {
            rule.get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
        };
        let granted = rights.granted.entry(place.to_owned()).or_default();
        for group in list("apiGroups") {
            for resource in list("resources") {
                granted.add(group, resource, &list("resourceNames"), &list("verbs"));
            }
        }
    }
}
