//! StorageClasses of a specification: refused when they contradict themselves, created when they are asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, PATIENCE};
use crate::fixture::INSTALLED;
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
                "a file share has no file system of ours",
            ),
            (
                json!([{"name": "a", "fileShare": true, "allowExpansion": true}]),
                "file shares cannot grow",
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
