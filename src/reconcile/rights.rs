//! What has to be granted before the operator starts: to the drivers, which the administrator brings, and to the operator itself.

use super::{foreign, prerequisites, snapshots};
use crate::certificate;
use crate::chart::{self, Context, RenderError};
use crate::cluster::{Select, Watch};
use crate::fetch::{Library, LibraryError};
use crate::manifest::{ManifestError, Object};
use crate::matrix::{Index, IndexError};
use crate::plan::Desired;
use crate::rbac::{self, Mismatch, Rules, is_prerequisite};
use crate::types::DriverVersion;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The namespace that the operator is installed in.
const NAMESPACE: &str = "vmware-system-vdo";
const ACCOUNT: &str = "vdo-operator";
const KUBE_SYSTEM: &str = "kube-system";

/// What cannot be granted, because it cannot be known.
#[derive(Debug, thiserror::Error)]
pub enum RightsError {
    /// The matrix.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A chart that cannot be fetched or opened.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A chart that cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A chart that renders something else than objects.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Versions that contradict each other.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Objects for the administrator to apply.
pub struct Rights {
    /// Namespaces, roles and bindings of the drivers: enough for every version.
    pub drivers: Vec<Value>,
    /// The account of the operator with its roles.
    pub operator: Vec<Value>,
    /// What keeps that account to the drivers' workloads.
    pub policy: Vec<Value>,
}

/// What the drivers of an index, in the versions that are taken, and the operator that installs them need.
///
/// # Errors
/// When a chart cannot be had, or no role serves all versions.
pub async fn rights(library: &Library, index: &Index, takes: impl Fn(&str, &DriverVersion) -> bool) -> Result<Rights, RightsError> {
    let mut all = Vec::new();
    for (driver, versions) in &index.drivers {
        let driver: Arc<str> = driver.as_str().into();
        for entry in versions.versions.iter().filter(|entry| takes(&driver, &entry.version)) {
            let chart = library.chart(&entry.chart).await?;
            let rendered = chart::render(&chart, &chart::everything(&chart), &Context::default())?;
            for object in rendered {
                all.push(Desired {
                    object: Object::new(object)?,
                    driver: driver.clone(),
                    wave: 0,
                });
            }
        }
    }
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let objects = || all.iter().map(|d| &d.object);
    Ok(Rights {
        drivers: rbac::union(objects())?,
        operator: account(&all),
        policy: rbac::policy(&user, objects()).into(),
    })
}

/// Rules by namespace; the empty one is the cluster.
type Places = BTreeMap<String, Rules>;

/// The account of the operator and what it may do: read what it decides by, and write the objects of these charts, by name.
fn account(all: &[Desired]) -> Vec<Value> {
    let mut places = Places::new();
    own(&mut places);
    for watch in foreign::watches(all).iter().chain(&prerequisites::watches(all)) {
        see(&mut places, watch);
    }
    for d in all.iter().filter(|d| !is_prerequisite(d.object.identity())) {
        write(&mut places, &d.object);
    }
    configuration(&mut places);
    let mut documents = vec![json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
    })];
    for (namespace, rules) in &places {
        let (kind, metadata) = if namespace.is_empty() {
            ("ClusterRole", json!({"name": ACCOUNT}))
        } else {
            ("Role", json!({"name": ACCOUNT, "namespace": namespace}))
        };
        let version = format!("{}/v1", rbac::GROUP);
        documents.push(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules.json()}));
        documents.push(json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": rbac::GROUP, "kind": kind, "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }));
    }
    documents
}

fn place<'a>(places: &'a mut Places, namespace: &str) -> &'a mut Rules {
    places.entry(namespace.to_owned()).or_default()
}

/// What the operator needs for itself, whatever the charts contain.
fn own(places: &mut Places) {
    let cluster = place(places, "");
    cluster.add("", "nodes", &[], &["list", "watch"]);
    cluster.add("storage.k8s.io", "csinodes", &[], &["list", "watch"]);
    cluster.add("", "namespaces", &[KUBE_SYSTEM], &["list", "watch"]);
    cluster.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &snapshots::DEFINITIONS,
        &["list", "watch"],
    );
    // Those of the snapshot controller may be anywhere.
    cluster.add("", "pods", &[], &["list", "watch"]);
    // Asked before the storage driver or a storage class is removed: are there volumes or snapshots?
    cluster.add("", "persistentvolumes", &[], &["list", "watch"]);
    cluster.add("", "persistentvolumeclaims", &[], &["list"]);
    cluster.add("storage.k8s.io", "volumeattachments", &[], &["list", "watch"]);
    cluster.add("snapshot.storage.k8s.io", "volumesnapshotcontents", &[], &["list", "watch"]);
    // StorageClasses have the names that the VDOConfig gives them.
    cluster.add(
        "storage.k8s.io",
        "storageclasses",
        &[],
        &["list", "watch", "create", "delete", "patch"],
    );
    let home = place(places, NAMESPACE);
    home.add("vdo.vmware.com", "vdoconfigs", &[], &["list", "watch", "patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs", &[], &["list", "watch"]);
    home.add("vdo.vmware.com", "vdoconfigs/status", &[], &["patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs/status", &[], &["patch"]);
    home.add("", "secrets", &[], &["list", "watch"]);
    // The state of the webhook's certificate.
    home.add("", "secrets", &[certificate::SECRET], &["create", "patch"]);
    home.add("", "configmaps", &[], &["list", "watch", "create", "patch", "delete"]);
    home.add("events.k8s.io", "events", &[], &["create", "patch"]);
    let kube_system = place(places, KUBE_SYSTEM);
    // One operator of several acts.
    kube_system.add("coordination.k8s.io", "leases", &[], &["create"]);
    kube_system.add("coordination.k8s.io", "leases", &["vdo-operator"], &["get", "update"]);
}

fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

/// What is watched by name.
fn see(places: &mut Places, watch: &Watch) {
    let group = watch.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let names: &[&str] = match &watch.select {
        Select::Name(name) => &[name],
        _ => &[],
    };
    place(places, &watch.namespace).add(group, &plural(&watch.kind), names, &["list", "watch"]);
}

/// What the operator writes.
fn write(places: &mut Places, object: &Object) {
    let (group, resource) = (object.identity().group(), plural(object.kind()));
    let home = place(places, object.namespace());
    home.add(group, &resource, &[object.name()], &["create", "delete", "patch"]);
    home.add(group, &resource, &[], &["list", "watch"]);
    // The last words of a container that fails, and whether a webhook is served.
    if object.pod_spec().is_some() {
        home.add("", "pods/log", &[], &["get"]);
    } else if object.kind() == "Service" {
        home.add("discovery.k8s.io", "endpointslices", &[], &["list", "watch"]);
    }
}

/// The driver configuration, which is in no chart.
fn configuration(places: &mut Places) {
    for (kind, namespace, name) in [
        ("secrets", KUBE_SYSTEM, "vsphere-cloud-secret"),
        ("configmaps", KUBE_SYSTEM, "vsphere-cloud-config"),
        ("secrets", "vmware-system-csi", "vsphere-config-secret"),
        ("secrets", "vmware-system-csi", "vsphere-webhook-certs"),
    ] {
        let home = place(places, namespace);
        home.add("", kind, &[name], &["create", "delete", "patch"]);
        let names: &[&str] = if kind == "secrets" { &[name] } else { &[] };
        home.add("", kind, names, &["list", "watch"]);
    }
}
