// SPDX-License-Identifier: Apache-2.0
//! Classes of volumes and of snapshots, as values of the CSI chart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use crate::fixture::render;
use crate::values::{CSI, refused};
use serde_json::{Value, json};
use vdo_api::api::{BindingMode, FsType, ReclaimPolicy, StorageClass, VDOConfigSpec};
use vdo_core::drivers::with_default_class;

#[test]
fn storage_classes_value_renders_each_class() {
    let classes = |objects: &[Value]| objects.iter().filter(|o| o["kind"] == "StorageClass").cloned().collect::<Vec<_>>();
    assert_eq!(classes(&render(&CSI, json!({}))), Vec::<Value>::new());
    let everything = StorageClass {
        name: "gold".into(),
        storage_policy: Some("Gold: \"fast\"".into()),
        datastore_url: Some("ds:///vmfs/volumes/1/".into()),
        fs_type: Some(FsType::Xfs),
        file_share: Some(false),
        reclaim_policy: Some(ReclaimPolicy::Retain),
        allow_expansion: Some(false),
        binding_mode: Some(BindingMode::WaitForFirstConsumer),
        default: Some(true),
    };
    let plain = StorageClass {
        name: "plain".into(),
        ..StorageClass::default()
    };
    let files = StorageClass {
        name: "files".into(),
        file_share: Some(true),
        ..StorageClass::default()
    };
    let asked = json!([everything, plain, files]);
    let objects = render(&CSI, json!({"storageClasses": asked}));
    let expected = json!([
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "gold", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "csi.vsphere.vmware.com",
            "parameters": {"storagepolicyname": "Gold: \"fast\"", "datastoreurl": "ds:///vmfs/volumes/1/", "csi.storage.k8s.io/fstype": "xfs"},
            "reclaimPolicy": "Retain", "allowVolumeExpansion": false, "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "plain"},
            "provisioner": "csi.vsphere.vmware.com",
            "reclaimPolicy": "Delete", "allowVolumeExpansion": true, "volumeBindingMode": "Immediate",
        },
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "files"},
            "provisioner": "csi.vsphere.vmware.com", "parameters": {"csi.storage.k8s.io/fstype": "nfs4"},
            "reclaimPolicy": "Delete", "allowVolumeExpansion": false, "volumeBindingMode": "Immediate",
        },
    ]);
    assert_eq!(Value::from(classes(&objects)), expected);
}

#[test]
fn storage_classes_value_with_topology_waits_for_first_consumer() {
    let classes = |objects: &[Value]| objects.iter().filter(|o| o["kind"] == "StorageClass").cloned().collect::<Vec<_>>();
    let topology = render(&CSI, json!({"storageClasses": [{"name": "plain"}], "topology": {"enabled": true}}));
    assert_eq!(classes(&topology)[0]["volumeBindingMode"], "WaitForFirstConsumer");
}

/// Each field of the default class reaches the StorageClass, with and without topology.
#[test]
fn default_storage_class_is_rendered_with_each_of_its_fields() {
    let waits = "WaitForFirstConsumer";
    for (field, topology, pointer, expected) in [
        (json!({}), false, "/parameters", json!(null)),
        (json!({}), false, "/reclaimPolicy", json!("Delete")),
        (json!({}), false, "/volumeBindingMode", json!("Immediate")),
        (json!({}), true, "/volumeBindingMode", json!(waits)),
        (
            json!({"fsType": "xfs"}),
            false,
            "/parameters",
            json!({"csi.storage.k8s.io/fstype": "xfs"}),
        ),
        (
            json!({"storagePolicy": "Gold"}),
            false,
            "/parameters",
            json!({"storagepolicyname": "Gold"}),
        ),
        (
            json!({"datastoreUrl": "ds:///vmfs/volumes/1/"}),
            false,
            "/parameters",
            json!({"datastoreurl": "ds:///vmfs/volumes/1/"}),
        ),
        (json!({"reclaimPolicy": "Retain"}), false, "/reclaimPolicy", json!("Retain")),
        (json!({"bindingMode": waits}), false, "/volumeBindingMode", json!(waits)),
        (json!({"bindingMode": "Immediate"}), true, "/volumeBindingMode", json!("Immediate")),
    ] {
        let storage = json!({"defaultStorageClass": field, "topologyCategories": if topology { json!(["zone"]) } else { json!([]) }});
        let spec: VDOConfigSpec = serde_json::from_value(json!({"storageProvider": storage})).unwrap();
        let csi = with_default_class(&spec, &[], |_| false).storage_provider.unwrap();
        let values = json!({"storageClasses": csi.storage_classes, "topology": {"enabled": !csi.topology_categories.is_empty()}});
        let found: Vec<Value> = render(&CSI, values)
            .into_iter()
            .filter(|object| object["kind"] == "StorageClass")
            .collect();
        assert_eq!(found.len(), 1, "{storage}");
        assert_eq!(found[0]["metadata"]["name"], "vsphere", "{storage}");
        let is_default = &found[0]["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"];
        assert_eq!(is_default, "true", "{storage}");
        assert_eq!(found[0].pointer(pointer).cloned().unwrap_or_default(), expected, "{storage}");
    }
}

#[test]
fn volume_snapshot_classes_value_is_rendered_and_has_one_default() {
    let objects = render(
        &CSI,
        json!({"volumeSnapshotClasses": [{"name": "daily", "default": true}, {"name": "kept", "deletionPolicy": "Retain"}]}),
    );
    let found: Vec<Value> = objects
        .into_iter()
        .filter(|object| object["kind"] == "VolumeSnapshotClass")
        .collect();
    let class = |metadata: Value, policy: &str| {
        json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": metadata,
            "driver": "csi.vsphere.vmware.com", "deletionPolicy": policy})
    };
    let default = json!({"snapshot.storage.kubernetes.io/is-default-class": "true"});
    assert_eq!(
        found,
        [
            class(json!({"name": "daily", "annotations": default}), "Delete"),
            class(json!({"name": "kept"}), "Retain")
        ]
    );
    for (classes, says) in [
        (json!([{"name": "a", "default": true}, {"name": "b", "default": true}]), "a, b"),
        (
            json!([{"name": "a", "deletionPolicy": "Keep"}]),
            "volumeSnapshotClasses.0.deletionPolicy",
        ),
        (json!([{"default": true}]), "name"),
    ] {
        let error = refused(&CSI, json!({"volumeSnapshotClasses": classes}));
        assert!(error.contains(says), "{classes}: {error}");
    }
}

#[test]
fn storage_classes_value_invalid_is_rejected() {
    for (classes, says) in [
        (
            json!([{"name": "a", "default": true}, {"name": "b"}, {"name": "c", "default": true}]),
            "a, c",
        ),
        (json!([{"name": "a", "fileShare": true, "allowExpansion": true}]), "cannot do that"),
        (json!([{"name": "a", "fileShare": true, "fsType": "xfs"}]), "storageClasses"),
        (json!([{"name": "a"}, {"name": "a"}]), "StorageClass a"),
        (json!([{"name": "A"}]), "storageClasses.0.name"),
        (json!([{"storagePolicy": "x"}]), "name"),
    ] {
        let error = refused(&CSI, json!({"storageClasses": classes}));
        assert!(error.contains(says), "{classes}: {error}");
    }
}
