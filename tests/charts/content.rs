// SPDX-License-Identifier: Apache-2.0
//! The content that the operator may write is what the charts have, for every version and with the values of users.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it fails")]

use crate::contents::{attacks, attacks_on_antrea, of_version};
use crate::generate::rbac;
use serde_json::{Value, json};
use std::sync::LazyLock;
use vdo::reconcile::{Account, Rights, Versions, rights_without_policy};
use vdo_api::api::OPERATOR_NAMESPACE;
use vdo_core::admission::Allowed;
use vdo_core::chart::{self, Context};
use vdo_core::installed::has_node_port;
use vdo_core::manifest::Object;
use vdo_source::fetch::embedded;

/// Learnt once from all embedded charts.
pub static RIGHTS: LazyLock<Rights> = LazyLock::new(|| rbac::usual().unwrap());

fn refusal(allowed: &Allowed, object: &Value) -> Option<String> {
    allowed
        .check(&Object::new(object.clone()).unwrap())
        .err()
        .map(|error| error.to_string())
}

#[test]
fn content_that_no_chart_has_is_refused_with_its_place() {
    let accepted: Vec<String> = attacks()
        .into_iter()
        .chain(attacks_on_antrea())
        .filter(|(_, object)| refusal(&RIGHTS.content, object).is_none())
        .map(|(what, _)| what)
        .collect();
    assert!(accepted.is_empty(), "{accepted:#?}");
    let (_, aliases) = attacks()
        .into_iter()
        .find(|(what, _)| what.contains("controller: /spec/template/spec/hostAliases"))
        .unwrap();
    assert_eq!(
        refusal(&RIGHTS.content, &aliases).unwrap(),
        "Deployment vmware-system-csi/vsphere-csi-controller has content that its chart does not allow: spec.template.spec.hostAliases: no \
         chart has this field"
    );
}

#[test]
fn content_of_every_version_is_accepted() {
    let mut count = 0;
    for (driver, source) in embedded::sources() {
        for version in source.versions() {
            for object in of_version(&driver, &version) {
                count += 1;
                assert_eq!(refusal(&RIGHTS.content, &object), None, "{driver} {version}");
            }
        }
    }
    assert!(count > 300, "only {count} objects");
}

/// What users set is in its place, and nowhere else.
#[test]
fn content_with_values_of_users_is_accepted() {
    let resources = json!({"requests": {"cpu": "10m", "memory": 64, "ephemeral-storage": "1Gi"}, "limits": {"memory": "1Gi"}});
    let tolerations = json!([{"key": "dedicated", "operator": "Equal", "value": "storage", "effect": "NoSchedule"},
        {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}});
    let proxy = json!({"http": "http://user:word@proxy.example.com:3128", "https": "proxy.example.com:3128", "no": "10.0.0.0/8,.svc"});
    let images = json!({"registry": "registry.example.com:5000/vsphere", "useDigests": true});
    let sets = [
        (
            "vsphere-cpi",
            json!({"images": images, "imagePullSecrets": ["a", "b"], "logLevel": 9, "env": {"GODEBUG": "x=1"}, "proxy": proxy,
                "nodeSelector": {"a": "b"}, "controlPlaneLabels": ["a/b"], "tolerations": tolerations, "resources": resources}),
        ),
        (
            "vsphere-cpi",
            json!({"affinity": affinity, "skipNodeDeletion": true, "resources": {"requests": null}}),
        ),
        (
            "vsphere-csi",
            json!({"images": images, "imagePullSecrets": ["a"], "logLevel": "DEVELOPMENT", "proxy": proxy,
                "kubeletPath": "/var/snap/microk8s/common/var/lib/kubelet", "windows": {"kubeletPath": "C:\\k8s\\var\\kubelet"},
                "controller": {"nodeSelector": {"a": "b"}, "controlPlaneLabels": ["a/b"], "tolerations": tolerations},
                "webhook": {"failurePolicy": "Ignore", "replicas": 3, "resources": resources}}),
        ),
        (
            "vsphere-csi",
            json!({"featureStates": {"list-volumes": false}, "extraFeatureStates": {"my-feature": true}, "snapshots": {"enabled": false},
                "topology": {"enabled": true, "strict": false}, "controller": {"replicas": 7, "spread": "none"}}),
        ),
        (
            "vsphere-csi",
            json!({"controller": {"affinity": affinity, "env": {"driver": {"A": "1"}, "syncer": {"LOGGER_LEVEL": "x"}}, "sidecarLogLevel": 0,
                    "defaultFsType": "xfs", "fullSyncMinutes": 61, "resources": {"driver": resources, "attacher": resources}},
                "node": {"nodeSelector": {"a": "b"}, "tolerations": tolerations, "env": {"A": "1"}, "resources": {"driver": resources}},
                "storageClasses": [{"name": "fast", "storagePolicy": "Gold", "default": true, "fsType": "xfs", "reclaimPolicy": "Retain"},
                    {"name": "shared", "fileShare": true, "bindingMode": "Immediate"},
                    {"name": "there", "datastoreUrl": "ds:///vmfs/volumes/5f/", "allowExpansion": false}],
                "volumeSnapshotClasses": [{"name": "daily", "default": true}, {"name": "kept", "deletionPolicy": "Retain"}]}),
        ),
    ];
    for (driver, values) in sets {
        let source = embedded::sources().remove(driver).unwrap();
        for version in source.versions() {
            let opened = chart::open(&chart::package(&source, &version).unwrap()).unwrap();
            let mut all = chart::everything(&opened);
            match all.is_null() {
                true => all = values.clone(),
                false => chart::values::merge(&mut all, &values),
            }
            for object in chart::render(&opened, &all, &Context::default()).unwrap() {
                let written = object["kind"] != "Namespace" && !object["apiVersion"].as_str().unwrap().starts_with("rbac");
                let answer = if written { refusal(&RIGHTS.content, &object) } else { None };
                assert_eq!(answer, None, "{driver} {version} with {values}");
            }
        }
    }
}

/// A right to write without a judgement of the content would be a right to any content, so the policy refuses it; here it is noticed.
#[test]
fn content_is_known_for_every_right_to_write() {
    // Of every driver, with those that come only where they are named.
    let account = Account::usual(OPERATOR_NAMESPACE);
    let all = rbac::embedded(async |library, index| rights_without_policy(library, index, account, Versions::All).await).unwrap();
    let mut unknown = Vec::new();
    for role in all.operator.iter().filter(|object| object.get("rules").is_some()) {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        for rule in role["rules"].as_array().unwrap() {
            let list = |key: &str| -> Vec<String> {
                let all = rule[key].as_array().into_iter().flatten();
                all.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            if !list("verbs")
                .iter()
                .any(|verb| matches!(verb.as_str(), "create" | "patch" | "update" | "*"))
            {
                continue;
            }
            let names: Vec<Option<String>> = match list("resourceNames") {
                names if names.is_empty() => vec![None],
                names => names.into_iter().map(Some).collect(),
            };
            // A review is a question, of which nothing is stored.
            for resource in list("resources").into_iter().filter(|resource| !resource.ends_with("reviews")) {
                let known = |name: &Option<String>| RIGHTS.content.knows(&resource, namespace, name.as_deref());
                unknown.extend(
                    names
                        .iter()
                        .filter(|name| !known(name))
                        .map(|name| format!("{resource} {namespace}/{name:?}")),
                );
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// On this port a move of a driver relies: it keeps two node plugins from being on one node. Those for Windows are stopped at once.
#[test]
fn node_plugin_of_every_version_has_its_port_on_the_node() {
    let mut count = 0;
    for (driver, source) in embedded::sources() {
        for version in source.versions() {
            let objects = of_version(&driver, &version).into_iter().map(|object| Object::new(object).unwrap());
            for plugin in objects.filter(|object| object.kind() == "DaemonSet" && object.name() == "vsphere-csi-node") {
                count += 1;
                assert!(has_node_port(&plugin), "{driver} {version}: {plugin}");
            }
        }
    }
    assert!(count > 10, "{count}");
}
