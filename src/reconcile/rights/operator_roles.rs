// SPDX-License-Identifier: Apache-2.0
//! The rules of the operator's own ClusterRole, Roles and bindings (pure).

use super::{Account, Versions};
use crate::cluster::{Select, Watch};
use crate::reconcile::driver_rights_missing;
use crate::reconcile::observe::{definitions, openshift};
use crate::reconcile::preconditions::{foreign_drivers, snapshot_controller};
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::api::STATE;
use vdo_core::certificate;
use vdo_core::drivers;
use vdo_core::manifest::{Object, TRIAL_POD};
use vdo_core::openshift::WORKLOADS;
use vdo_core::openshift::constraint;
use vdo_core::plan::Desired;
use vdo_core::rbac::{self, Rules, is_prerequisite};

/// The operator's roles and their bindings.
const ROLE: &str = "vdo-operator";
const KUBE_SYSTEM: &str = "kube-system";

/// Rules by namespace; the empty one is the cluster.
pub(super) type Places = BTreeMap<String, Rules>;

/// What the operator may do in a namespace of its own: read what it decides by, and write the objects of these charts, by name.
pub(super) fn places(all: &[Desired], home: &str) -> Places {
    let mut places = Places::new();
    own(&mut places, home);
    manage(&mut places, all);
    try_pods(&mut places, all);
    configuration(&mut places);
    places
}

/// What the operator may do for these charts alone.
fn places_of(all: &[Desired]) -> Places {
    let mut places = Places::new();
    if !all.is_empty() {
        manage(&mut places, all);
        try_pods(&mut places, all);
    }
    places
}

/// The account of the operator with its roles. A driver for which the operator's rights come on request has roles of its own beside them, so
/// that an upgrade of the operator takes none of these away.
pub(super) fn of_operator(all: &[Desired], account: Account<'_>, versions: Versions<'_>) -> Vec<Value> {
    let of = |is: &dyn Fn(&str) -> bool| all.iter().filter(|d| is(&d.driver)).cloned().collect::<Vec<_>>();
    let mut documents = Vec::new();
    if versions.has_usual_roles() {
        documents.push(json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace},
        }));
        let usual = of(&|driver| !drivers::has_rights_on_request(driver));
        documents.extend(roles(ROLE, &places(&usual, account.namespace), account));
    }
    for name in drivers::RIGHTS_ON_REQUEST.into_iter().filter(|name| versions.grants(name)) {
        documents.extend(roles(&format!("{ROLE}-{name}"), &places_of(&of(&|driver| driver == name)), account));
    }
    documents
}

/// Roles of this name and their bindings, one of each for every place.
fn roles(name: &str, places: &Places, account: Account<'_>) -> Vec<Value> {
    let mut documents = Vec::new();
    for (namespace, rules) in places {
        let (kind, metadata) = if namespace.is_empty() {
            ("ClusterRole", json!({"name": name}))
        } else {
            ("Role", json!({"name": name, "namespace": namespace}))
        };
        let version = format!("{}/v1", rbac::GROUP);
        documents.push(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules.json()}));
        documents.push(json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": rbac::GROUP, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
        }));
    }
    documents
}

/// What is granted on OpenShift alone.
pub(super) fn on_openshift(all: &[Desired], account: Account<'_>, versions: Versions<'_>) -> Vec<Value> {
    let of = |some: &mut dyn Iterator<Item = &Desired>| constraint::bindings(&some.map(|d| d.object.value().clone()).collect::<Vec<_>>());
    let bindings = of(&mut all.iter().filter(|d| versions.grants(&d.driver)));
    let brought = of(&mut all.iter().filter(|d| versions.brings(&d.driver)));
    let mut places = Places::new();
    let cluster = place(&mut places, "");
    for (group, resource, names) in openshift::OBJECTS {
        cluster.add(group, resource, names, &["list", "watch"]);
    }
    for (kind, name) in WORKLOADS {
        cluster.add("apps", &plural(kind), &[name], &["list", "watch"]);
    }
    for binding in &bindings {
        let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let place = place(&mut places, text("/metadata/namespace"));
        place.add(rbac::GROUP, "rolebindings", &[text("/metadata/name")], &["list", "watch"]);
    }
    [brought, roles(&format!("{ROLE}-openshift"), &places, account)].concat()
}

fn place<'a>(places: &'a mut Places, namespace: &str) -> &'a mut Rules {
    places.entry(namespace.to_owned()).or_default()
}

/// What the operator needs to manage the objects of charts.
pub(super) fn manage(places: &mut Places, all: &[Desired]) {
    for watch in foreign_drivers::watches(all).iter().chain(&driver_rights_missing::watches(all)) {
        see(places, watch);
    }
    for d in all.iter().filter(|d| !is_prerequisite(d.object.identity())) {
        write(places, &d.object);
    }
}

/// What it takes to try a pod of each workload: a dry run asks for the same rights as the write. The policy of the operator lets no other through.
fn try_pods(places: &mut Places, all: &[Desired]) {
    for d in all.iter().filter(|d| d.object.pod_spec().is_some()) {
        place(places, d.object.namespace()).add("", "pods", &[TRIAL_POD], &["create", "patch"]);
    }
}

/// What the operator needs for itself, whatever the charts contain.
fn own(places: &mut Places, home: &str) {
    let cluster = place(places, "");
    cluster.add("", "nodes", &[], &["list", "watch"]);
    cluster.add("storage.k8s.io", "csinodes", &[], &["list", "watch"]);
    cluster.add("", "namespaces", &[KUBE_SYSTEM], &["list", "watch"]);
    cluster.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &snapshot_controller::DEFINITIONS,
        &["list", "watch"],
    );
    cluster.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &snapshot_controller::OF_GROUPS,
        &["list", "watch"],
    );
    // Is this OpenShift?
    let definitions = openshift::DEFINITIONS;
    cluster.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &definitions,
        &["list", "watch"],
    );
    // Is this operator older than what is stored?
    let own = &definitions::DEFINITIONS;
    cluster.add("apiextensions.k8s.io", "customresourcedefinitions", own, &["list", "watch"]);
    // Those of the snapshot controller may be anywhere.
    cluster.add("", "pods", &[], &["list", "watch"]);
    // Asked before the storage driver or a storage class is removed: are there volumes or snapshots?
    cluster.add("", "persistentvolumes", &[], &["list", "watch"]);
    // Those that a warning is about; and the warnings.
    cluster.add("", "persistentvolumeclaims", &[], &["list", "watch"]);
    cluster.add("", "events", &[], &["list", "watch"]);
    cluster.add("storage.k8s.io", "volumeattachments", &[], &["list", "watch"]);
    cluster.add("snapshot.storage.k8s.io", "volumesnapshotcontents", &[], &["list", "watch"]);
    // Classes have the names that the VDOConfig gives them.
    let classes = [
        ("storage.k8s.io", "storageclasses"),
        ("snapshot.storage.k8s.io", "volumesnapshotclasses"),
    ];
    for (group, resource) in classes {
        cluster.add(group, resource, &[], &["list", "watch", "create", "delete", "patch"]);
    }
    // Whether a workload of a tenant that has the name of a driver has its rights, too.
    cluster.add("authorization.k8s.io", "subjectaccessreviews", &[], &["create"]);
    let home = place(places, home);
    home.add("vdo.vmware.com", "vdoconfigs", &[], &["list", "watch", "patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs", &[], &["list", "watch"]);
    home.add("vdo.vmware.com", "compatibilityconfigs", &[], &["list", "watch"]);
    home.add("vdo.vmware.com", "vdoconfigs/status", &[], &["patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs/status", &[], &["patch"]);
    home.add("", "secrets", &[], &["list", "watch"]);
    // The state of the webhook's certificate.
    home.add("", "secrets", &[certificate::SECRET], &["create", "patch"]);
    // Its own state.
    home.add("", "secrets", &[STATE], &["create", "patch", "delete"]);
    // Delete: where operators before this one kept it.
    home.add("", "configmaps", &[], &["list", "watch", "delete"]);
    home.add("events.k8s.io", "events", &[], &["create", "patch"]);
    let kube_system = place(places, KUBE_SYSTEM);
    // One operator of several acts.
    kube_system.add("coordination.k8s.io", "leases", &[], &["create"]);
    kube_system.add("coordination.k8s.io", "leases", &["vdo-operator"], &["get", "update"]);
}

/// The resource of a kind, as the API server calls it.
fn plural(kind: &str) -> String {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "", kind)).plural
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
    let home = place(places, object.namespace());
    self::object(home, object.identity().group(), object.kind(), object.name());
    // Asked before a definition is deleted: are there objects of it?
    if object.kind() == "CustomResourceDefinition" {
        let cluster = place(places, "");
        cluster.add(object.text("/spec/group"), object.text("/spec/names/plural"), &[], &["list"]);
        return;
    }
    // The last words of a container that fails, and whether a webhook is served.
    if object.pod_spec().is_some() {
        home.add("", "pods/log", &[], &["get"]);
        // Why pods are not made, and why they do not start.
        home.add("", "events", &[], &["list"]);
    } else if object.kind() == "Service" {
        home.add("discovery.k8s.io", "endpointslices", &[], &["list", "watch"]);
    }
}

/// The configuration of the drivers, which is in no chart.
fn configuration(places: &mut Places) {
    for driver in drivers::KNOWN {
        for (kind, name) in driver.written {
            object(place(places, driver.namespace), "", kind, name);
        }
    }
    // The identity under which an installation of others has registered volumes. ConfigMaps may be listed in these namespaces anyway.
    for (kind, namespace, name) in drivers::cluster_id_places() {
        if kind == "Secret" {
            place(places, namespace).add("", &plural(kind), &[name], &["list"]);
        }
    }
}

/// What it takes to manage an object. Secrets are read by their names only.
fn object(home: &mut Rules, group: &str, kind: &str, name: &str) {
    let resource = plural(kind);
    home.add(group, &resource, &[name], &["create", "delete", "patch"]);
    let names: &[&str] = if kind == "Secret" { &[name] } else { &[] };
    home.add(group, &resource, names, &["list", "watch"]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn rights_resource_of_a_kind_is_called_as_the_api_server_calls_it() {
        let kinds = ["DaemonSet", "StorageClass", "NetworkPolicy", "Endpoints"];
        let expected = ["daemonsets", "storageclasses", "networkpolicies", "endpoints"];
        assert_eq!(kinds.map(super::plural), expected);
    }
}
