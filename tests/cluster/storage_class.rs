// SPDX-License-Identifier: Apache-2.0
//! StorageClasses of a specification: refused when they contradict themselves, created when they are asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use crate::preconditions::definition;
use anyhow::Result;
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

#[test]
fn storage_class_contradictory_spec_is_rejected() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (classes, expected) in [
            (
                json!([{"name": "a", "default": true}, {"name": "b", "default": true}]),
                "only one StorageClass can be the default",
            ),
            (
                json!([{"name": "a", "fileShare": true, "fsType": "xfs"}]),
                "fsType cannot be set for file shares",
            ),
            (
                json!([{"name": "a", "fileShare": true, "allowExpansion": true}]),
                "file shares cannot be expanded",
            ),
            (json!([{"name": "a"}, {"name": "a"}]), "duplicate entries for key"),
            (json!([{"name": "Capital"}]), "name"),
            (json!([{"name": "a", "datastoreUrl": "nfs://x"}]), "datastoreUrl"),
            (json!([{"name": "a", "reclaimPolicy": "Keep"}]), "Unsupported value"),
            (json!([{"name": "a", "bindingMode": "Sometimes"}]), "Unsupported value"),
        ] {
            let refused = bed
                .apply(&bed.config(json!({"storageProvider": {"storageClasses": classes}})))
                .await;
            let said = format!("{:#}", refused.expect_err("the API server takes it"));
            assert!(said.contains(expected), "{expected:?} is not in {said}");
        }
        Ok(())
    })
}

/// A StorageClass as it is in the cluster.
async fn class(bed: &Bed, name: &str) -> Result<Value> {
    bed.get("storage.k8s.io/v1", "StorageClass", "", name).await
}

/// Wants these StorageClasses, and waits until the VDOConfig is ready.
async fn want(bed: &Bed, classes: Value) -> Result<()> {
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"storageClasses": classes}})))
        .await?;
    bed.until_ready().await?;
    Ok(())
}

fn gold() -> Value {
    json!({"name": "gold", "storagePolicy": "VM Encryption Policy", "default": true, "reclaimPolicy": "Retain", "fsType": "xfs"})
}

#[test]
fn storage_class_requested_is_created_with_its_parameters() -> Result<()> {
    INSTALLED.run(async |bed| {
        want(bed, json!([])).await?;
        assert!(
            bed.list("storage.k8s.io/v1", "StorageClass", "").await?.is_empty(),
            "none unless asked"
        );
        let share = json!({"name": "share", "fileShare": true, "datastoreUrl": "ds:///vmfs/volumes/vsan:1/"});
        let vsan = [("url", "ds:///vmfs/volumes/vsan:1/"), ("type", "vsan")];
        bed.vcenter.set("Datastore", "LocalDS_0", &vsan).await?;
        want(bed, json!([gold(), share])).await?;
        let made = class(bed, "gold").await?;
        assert_eq!(made["provisioner"], "csi.vsphere.vmware.com");
        assert_eq!(
            made["parameters"],
            json!({"storagepolicyname": "VM Encryption Policy", "csi.storage.k8s.io/fstype": "xfs"})
        );
        assert_eq!(made["reclaimPolicy"], "Retain");
        assert_eq!(made["allowVolumeExpansion"], true);
        assert_eq!(made["volumeBindingMode"], "Immediate");
        assert_eq!(made["metadata"]["annotations"][DEFAULT], "true");
        let made = class(bed, "share").await?;
        assert_eq!(
            made["parameters"],
            json!({"datastoreurl": "ds:///vmfs/volumes/vsan:1/", "csi.storage.k8s.io/fstype": "nfs4"})
        );
        assert_eq!(made["allowVolumeExpansion"], false);
        assert_eq!(made["metadata"]["annotations"][DEFAULT], Value::Null);
        // A local datastore again, when it is not asked for any more.
        want(bed, json!([])).await?;
        let local = [("url", "ds:///vmfs/volumes/local:0/"), ("type", "OTHER")];
        bed.vcenter.set("Datastore", "LocalDS_0", &local).await
    })
}

/// A default class is created where there is none, makes room for another default, and ends with the mode; an existing class of its name
/// is left alone.
#[test]
#[ignore = "long"]
fn storage_class_default_is_created_and_makes_room_for_another() -> Result<()> {
    INSTALLED.run(async |bed| {
        let ask = async |storage: Value| {
            bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": storage})))
                .await
        };
        let is_default = |class: &Value| class["metadata"]["annotations"][DEFAULT] == "true";
        let until_it = async |what: &str, holds: &dyn Fn(&Value) -> bool| {
            until(&format!("StorageClass vsphere to be {what}"), PATIENCE, async || {
                let now = class(bed, "vsphere").await?;
                Ok(Probe::when(holds(&now), &now))
            })
            .await
        };
        let other = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/nfs",
            "metadata": {"name": "nfs", "annotations": {DEFAULT: "true"}}});
        ask(json!({})).await?;
        bed.until_ready().await?;
        let (code, out, err) = bed.vdoctl(&["configure", "drivers", "--storage-policy", "VM Encryption Policy"])?;
        assert_eq!(code, 0, "{out}{err}");
        until_it("the default", &is_default).await?;
        let made = class(bed, "vsphere").await?;
        assert_eq!(made["parameters"], json!({"storagepolicyname": "VM Encryption Policy"}), "{made}");
        bed.apply(&other).await?;
        until_it("one of two, and not the default", &|class| class.is_object() && !is_default(class)).await?;
        bed.delete("storage.k8s.io/v1", "StorageClass", "", "nfs").await?;
        until_it("the default again", &is_default).await?;
        ask(json!({"defaultStorageClass": {"mode": "Off"}})).await?;
        until_it("deleted", &Value::is_null).await?;
        // Where another one is the default, there is none.
        bed.apply(&other).await?;
        ask(json!({"defaultStorageClass": {}})).await?;
        bed.until_ready().await?;
        assert!(class(bed, "vsphere").await?.is_null());
        bed.delete("storage.k8s.io/v1", "StorageClass", "", "nfs").await?;
        until_it("the default", &is_default).await?;
        // vdoctl has set the field, so it takes a merge to remove it.
        let nothing = json!({"spec": {"storageProvider": {"defaultStorageClass": null}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", nothing).await?;
        until_it("deleted with the field", &Value::is_null).await
    })
}

/// A default class of snapshots comes with the definitions, makes room for another default, stays while a snapshot has it, and goes with the
/// definitions without harm.
#[test]
fn storage_class_default_of_snapshots_comes_and_goes_with_the_definitions() -> Result<()> {
    const SNAPSHOTS: &str = "snapshot.storage.k8s.io/v1";
    const KIND: &str = "VolumeSnapshotClass";
    const MARK: &str = "snapshot.storage.kubernetes.io/is-default-class";
    INSTALLED.run(async |bed| {
        let ask = async |mode: &str| {
            let storage = json!({"defaultVolumeSnapshotClass": {"mode": mode, "deletionPolicy": "Retain"}});
            bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": storage})))
                .await
        };
        // Nothing, where the kind is not served.
        let class = async || match bed.get(SNAPSHOTS, KIND, "", "vsphere").await {
            Err(error) if matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404) => Ok(Value::Null),
            found => found,
        };
        let until_it = async |what: &str, holds: &dyn Fn(&Value) -> bool| {
            until(&format!("{KIND} vsphere to be {what}"), PATIENCE, async || {
                let now = class().await?;
                Ok(Probe::when(holds(&now), &now))
            })
            .await
        };
        let is_default = |class: &Value| class["metadata"]["annotations"][MARK] == "true";
        ask("Auto").await?;
        bed.until_ready().await?;
        for kind in ["VolumeSnapshot", "VolumeSnapshotContent", KIND] {
            bed.apply(&definition(kind, kind == "VolumeSnapshot")).await?;
        }
        until_it("the default", &is_default).await?;
        let made = class().await?;
        assert_eq!(
            (&made["driver"], &made["deletionPolicy"]),
            (&json!("csi.vsphere.vmware.com"), &json!("Retain")),
            "{made}"
        );
        let other = json!({"apiVersion": SNAPSHOTS, "kind": KIND, "driver": "csi.vsphere.vmware.com", "deletionPolicy": "Delete",
            "metadata": {"name": "daily", "annotations": {MARK: "true"}}});
        bed.apply(&other).await?;
        until_it("one of two, and not the default", &|class| class.is_object() && !is_default(class)).await?;
        bed.delete(SNAPSHOTS, KIND, "", "daily").await?;
        until_it("the default again", &is_default).await?;
        let content = json!({"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshotContent", "metadata": {"name": "taken"},
            "spec": {"driver": "csi.vsphere.vmware.com", "volumeSnapshotClassName": "vsphere"}});
        bed.apply(&content).await?;
        ask("Off").await?;
        bed.until_ready().await?;
        assert!(class().await?.is_object());
        bed.delete(SNAPSHOTS, "VolumeSnapshotContent", "", "taken").await?;
        ask("Auto").await?;
        until_it("the default", &is_default).await?;
        let crd = "volumesnapshotclasses.snapshot.storage.k8s.io";
        bed.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", crd).await?;
        until_it("gone with its definition", &Value::is_null).await?;
        ask("Off").await?;
        bed.until_ready().await?;
        Ok(())
    })
}

#[test]
fn storage_class_default_with_the_name_of_a_listed_class_is_rejected() -> Result<()> {
    INSTALLED.run(async |bed| {
        let named =
            |name: Value| json!({"storageProvider": {"storageClasses": [{"name": "vsphere"}, {"name": "a"}], "defaultStorageClass": name}});
        for wrong in [json!({}), json!({"name": "a"})] {
            let refused = bed.apply(&bed.config(named(wrong))).await;
            let said = format!("{:#}", refused.expect_err("the API server takes it"));
            assert!(said.contains("has the same name"), "{said}");
        }
        Ok(())
    })
}

/// What Kubernetes lets change, changes in place: expansion, and which one is the default.
#[test]
fn storage_class_mutable_fields_are_changed_in_place() -> Result<()> {
    INSTALLED.run(async |bed| {
        want(bed, json!([gold()])).await?;
        let uid = class(bed, "gold").await?["metadata"]["uid"].clone();
        let mut changed = gold();
        changed["allowExpansion"] = false.into();
        changed["default"] = false.into();
        want(bed, json!([changed])).await?;
        until("StorageClass gold to be changed", PATIENCE, async || {
            let now = class(bed, "gold").await?;
            let default = now["metadata"]["annotations"][DEFAULT] == "true";
            Ok(Probe::when(now["allowVolumeExpansion"] == false && !default, &now))
        })
        .await?;
        assert_eq!(class(bed, "gold").await?["metadata"]["uid"], uid);
        bed.until_ready().await?;
        Ok(())
    })
}
