// SPDX-License-Identifier: Apache-2.0
//! Decides whether the operator creates the default StorageClass and VolumeSnapshotClass, and whether they are marked as default (pure).

use super::CSI_DRIVER;
use crate::manifest::Object;
use serde_json::Value;
use vdo_api::api::{DefaultClassMode, DefaultStorageClass, DefaultVolumeSnapshotClass, VDOConfigSpec};

/// The annotations that mark a StorageClass as the default. Kubernetes reads the second one, of its betas, too.
pub const DEFAULT_ANNOTATIONS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// The annotation that marks a VolumeSnapshotClass as the default of its driver.
pub const DEFAULT_SNAPSHOT_ANNOTATION: &str = "snapshot.storage.kubernetes.io/is-default-class";

/// Whether claims that name no class may get this one.
#[must_use]
pub fn is_default(class: &Object) -> bool {
    DEFAULT_ANNOTATIONS.iter().any(|name| class.annotation(name) == Some("true"))
}

/// What the specification asks for, where that depends on the StorageClasses of the cluster.
#[must_use]
pub fn default_class(spec: &VDOConfigSpec) -> Option<&DefaultStorageClass> {
    let asked = spec.storage_provider.as_ref()?.default_storage_class.as_ref()?;
    (asked.mode == DefaultClassMode::Auto).then_some(asked)
}

/// What the specification asks for, where that depends on the VolumeSnapshotClasses of the cluster.
#[must_use]
pub fn default_snapshot_class(spec: &VDOConfigSpec) -> Option<&DefaultVolumeSnapshotClass> {
    let asked = spec.storage_provider.as_ref()?.default_volume_snapshot_class.as_ref()?;
    (asked.mode == DefaultClassMode::Auto).then_some(asked)
}

/// The specification in which the default StorageClass is one of `storageClasses`, or is not there.
#[must_use]
pub fn with_default_class(spec: &VDOConfigSpec, classes: &[Object], is_ours: impl Fn(&Object) -> bool) -> VDOConfigSpec {
    let mut spec = spec.clone();
    let Some(asked) = default_class(&spec).cloned() else { return spec };
    let Some(csi) = &mut spec.storage_provider else { return spec };
    let is_listed = csi.storage_classes.iter().any(|class| class.default == Some(true));
    if let Some(is_default) = made(asked.name(), is_listed, classes, is_default, is_ours) {
        csi.storage_classes.push(asked.class(is_default));
    }
    spec
}

/// The specification in which the default VolumeSnapshotClass is one of the chart's value `volumeSnapshotClasses`, or is not there. Each
/// driver has a default class of its own.
#[must_use]
pub fn with_default_snapshot_class(spec: &VDOConfigSpec, classes: &[Object], is_ours: impl Fn(&Object) -> bool) -> VDOConfigSpec {
    let mut spec = spec.clone();
    let Some(asked) = default_snapshot_class(&spec).cloned() else {
        return spec;
    };
    let Some(csi) = &mut spec.storage_provider else { return spec };
    let is_default = |class: &Object| class.text("/driver") == CSI_DRIVER && class.annotation(DEFAULT_SNAPSHOT_ANNOTATION) == Some("true");
    let listed = csi
        .values
        .entry("volumeSnapshotClasses")
        .or_insert_with(|| Value::Array(Vec::new()));
    // The schema of the chart names what else the value is.
    let Some(listed) = listed.as_array_mut() else { return spec };
    let is_listed = listed.iter().any(|class| class["default"] == true);
    if let Some(is_default) = made(asked.name(), is_listed, classes, is_default, is_ours) {
        listed.push(asked.value(is_default));
    }
    spec
}

/// Whether the class of this name is made, and whether it is the default then.
///
/// A class of the operator stays where another one is marked as the default later, and is not the default any more: claims use it. One
/// that does not exist yet is not created then, and never in the place of a class of another manager.
fn made(
    name: &str,
    is_listed: bool,
    classes: &[Object],
    is_default: impl Fn(&Object) -> bool,
    is_ours: impl Fn(&Object) -> bool,
) -> Option<bool> {
    let other = classes
        .iter()
        .any(|class| class.name() != name && is_default(class) && !is_ours(class));
    let is_free = !is_listed && !other;
    let is_made = match classes.iter().find(|class| class.name() == name) {
        Some(class) => is_ours(class),
        None => is_free,
    };
    is_made.then_some(is_free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn class(name: &str, default: bool, ours: bool) -> Object {
        let annotations = if default {
            json!({DEFAULT_ANNOTATIONS[0]: "true"})
        } else {
            json!({})
        };
        let value = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name, "annotations": annotations, "labels": {"ours": ours.to_string()}}});
        Object::new(value).expect("an object")
    }

    fn made(storage: Value, classes: &[Object]) -> String {
        let spec: VDOConfigSpec = serde_json::from_value(json!({"storageProvider": storage})).expect("a specification");
        let ours = |class: &Object| class.text("/metadata/labels/ours") == "true";
        let csi = with_default_class(&spec, classes, ours).storage_provider.expect("CSI");
        let shown = csi
            .storage_classes
            .iter()
            .map(|class| format!("{}{}", class.name, if class.default == Some(true) { "*" } else { "" }));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn default_class_is_created_only_where_no_other_class_is_the_default() {
        let auto = || json!({"defaultStorageClass": {}});
        let (ours, other) = (class("vsphere", true, true), class("nfs", true, false));
        for (storage, classes, expected) in [
            (json!({}), vec![], ""),
            (json!({"defaultStorageClass": {"mode": "Off"}}), vec![], ""),
            (auto(), vec![], "vsphere*"),
            (auto(), vec![class("nfs", false, false)], "vsphere*"),
            (auto(), vec![other.clone()], ""),
            (auto(), vec![ours.clone()], "vsphere*"),
            // A default that came later has precedence, and the class stays for the claims that use it.
            (auto(), vec![ours.clone(), other], "vsphere"),
            // A class of another manager is never touched.
            (auto(), vec![class("vsphere", false, false)], ""),
            (auto(), vec![class("vsphere", true, false)], ""),
            (json!({"defaultStorageClass": {"name": "gold"}}), vec![], "gold*"),
            (
                json!({"defaultStorageClass": {}, "storageClasses": [{"name": "a", "default": true}]}),
                vec![],
                "a*",
            ),
            (
                json!({"defaultStorageClass": {}, "storageClasses": [{"name": "a"}]}),
                vec![],
                "a vsphere*",
            ),
            // It was the default of the list before, and is going to be one no more.
            (auto(), vec![class("a", true, true)], "vsphere*"),
        ] {
            let there: Vec<&str> = classes.iter().map(Object::name).collect();
            assert_eq!(made(storage.clone(), &classes), expected, "{storage} beside {there:?}");
        }
    }

    #[test]
    fn default_snapshot_class_is_created_only_where_the_driver_has_no_other() {
        let class = |name: &str, driver: &str, ours: bool| {
            let value = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "driver": driver,
                "metadata": {"name": name, "annotations": {DEFAULT_SNAPSHOT_ANNOTATION: "true"}, "labels": {"ours": ours.to_string()}}});
            Object::new(value).expect("an object")
        };
        let auto = json!({"defaultVolumeSnapshotClass": {}});
        let vsphere = |default: bool| json!([{"name": "vsphere", "default": default}]);
        for (storage, classes, expected) in [
            (json!({}), vec![], json!(null)),
            (json!({"defaultVolumeSnapshotClass": {"mode": "Off"}}), vec![], json!(null)),
            (auto.clone(), vec![], vsphere(true)),
            (auto.clone(), vec![class("daily", "ebs.csi.aws.com", false)], vsphere(true)),
            (auto.clone(), vec![class("daily", CSI_DRIVER, false)], json!([])),
            (auto.clone(), vec![class("vsphere", CSI_DRIVER, true)], vsphere(true)),
            (
                auto.clone(),
                vec![class("vsphere", CSI_DRIVER, true), class("daily", CSI_DRIVER, false)],
                vsphere(false),
            ),
            (auto, vec![class("vsphere", CSI_DRIVER, false)], json!([])),
            (
                json!({"defaultVolumeSnapshotClass": {"name": "gold", "deletionPolicy": "Retain"}}),
                vec![],
                json!([{"name": "gold", "default": true, "deletionPolicy": "Retain"}]),
            ),
            (
                json!({"defaultVolumeSnapshotClass": {}, "values": {"volumeSnapshotClasses": [{"name": "a", "default": true}]}}),
                vec![],
                json!([{"name": "a", "default": true}]),
            ),
            (
                json!({"defaultVolumeSnapshotClass": {}, "values": {"volumeSnapshotClasses": "a"}}),
                vec![],
                json!("a"),
            ),
        ] {
            let spec: VDOConfigSpec = serde_json::from_value(json!({"storageProvider": storage})).expect("a specification");
            let ours = |class: &Object| class.text("/metadata/labels/ours") == "true";
            let csi = with_default_snapshot_class(&spec, &classes, ours).storage_provider.expect("CSI");
            let found = csi.values.get("volumeSnapshotClasses").cloned().unwrap_or_default();
            let there: Vec<&str> = classes.iter().map(Object::name).collect();
            assert_eq!(found, expected, "{storage} beside {there:?}");
        }
    }
}
