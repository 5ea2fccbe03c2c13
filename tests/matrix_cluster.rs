//! What the choice of versions and the objects of a specification depend on in a cluster, on a real control plane: definitions and
//! controller of snapshots, features that the vCenter lacks, preconditions of upgrades, StorageClasses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bed;

use anyhow::{Context, Result};
use bed::{Bed, PATIENCE};
use serde_json::{Value, json};
use std::path::Path;
use vdo_testbed::{Probe, until};

const CSI: &str = "csi.vsphere.vmware.com";
const UUID: &str = "4201f8cd-1b9d-0f4c-8a3e-52f6a2c1d9aa";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_specification_needs_is_seen_in_the_cluster() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.start_operator().await?;
    bed.apply_samples().await?;
    storage_classes_that_contradict_themselves_are_refused(&bed).await?;
    an_older_csi_runs(&bed).await?;
    snapshots_need_definitions_and_a_controller(&bed).await?;
    a_feature_that_the_vcenter_lacks_is_named(&bed).await?;
    storage_classes_are_made_when_asked_for(&bed).await?;
    an_upgrade_waits_for_its_preconditions(&bed).await?;
    the_next_kubernetes_is_known_to_fit(&bed).await?;
    another_matrix_is_followed_and_a_broken_one_takes_no_place(&mut bed).await?;
    bed.uninstall().await
}

async fn another_matrix_is_followed_and_a_broken_one_takes_no_place(bed: &mut Bed) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("index.json");
    let index = vdo::yaml::load_all(std::str::from_utf8(vdo::fetch::embedded::index())?)?.remove(0);
    let write = |version: u32| {
        let mut index = index.clone();
        index["version"] = version.into();
        std::fs::write(&file, index.to_string())
    };
    let look = async |bed: &Bed, token: &str| {
        let change = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": token}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", bed::NS, "vdo", change).await
    };
    let until_version = async |bed: &Bed, version: u32| {
        until("another matrix to be in use", PATIENCE, async || {
            let matrix = &bed.status().await?["matrix"];
            Ok(Probe::when(matrix["version"] == version, matrix))
        })
        .await
    };
    write(7001)?;
    bed.kill_operator();
    // A flag lives as long as the test.
    let path: &'static str = Box::leak(file.display().to_string().into_boxed_str());
    bed.flags.push(("matrix", path));
    bed.start_operator().await?;
    until_version(bed, 7001).await?;
    assert_eq!(bed.status().await?["matrix"]["source"], path);
    bed.until_reason("MatrixFresh", "Healthy").await?;

    let before = bed.owned().await?;
    std::fs::write(&file, "drivers: [")?;
    look(bed, "broken").await?;
    let told = bed.until_reason("MatrixFresh", "MatrixInvalid").await?;
    let message = told["message"].as_str().unwrap_or_default();
    assert!(message.contains(path) && message.contains("7001"), "{message}");
    assert_eq!(bed.status().await?["matrix"]["version"], 7001, "the last good one is in use");
    assert_eq!(bed.owned().await?, before, "nothing that runs is touched");

    // With an index that cannot be used vdoctl decides nothing, as an operator would that starts with it.
    let (code, _, err) = bed.vdoctl(&["plan", "--matrix", path])?;
    assert!(code == 4 && err.contains(&format!("vdoctl matrix lint {path}")), "{code} {err}");

    // The next operator finds no matrix at all. It keeps what runs, and goes on when there is one.
    bed.kill_operator();
    bed.start_operator().await?;
    let told = until("an operator that keeps what runs", PATIENCE, async || {
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", bed::NS, "vdo").await?;
        let told = bed::condition(&config, "MatrixFresh");
        let kept = told["message"]
            .as_str()
            .is_some_and(|message| message.contains("nothing is chosen"));
        Ok(if kept { Probe::Ready(told) } else { Probe::not_yet(told) })
    })
    .await?;
    assert!(told["status"] == "False" && told["reason"] == "MatrixInvalid", "{told}");
    bed.delete("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
    until("a deleted object to be back", PATIENCE, async || {
        let service = bed.get("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
        Ok(Probe::when(service != Value::Null, "not there"))
    })
    .await?;
    bed.until_ready().await?;
    assert_eq!(bed.status().await?["matrix"]["version"], 7001, "the one that was decided with last");

    write(7002)?;
    look(bed, "mended").await?;
    until_version(bed, 7002).await?;
    bed.until_reason("MatrixFresh", "Healthy").await?;
    vdoctl_decides_as_the_operator_does(bed, &index, &file).await
}

/// With the operator's matrix vdoctl wants what the operator wants. With another one, in which the version that runs has another chart,
/// it wants something else, and says so.
async fn vdoctl_decides_as_the_operator_does(bed: &Bed, index: &Value, file: &Path) -> Result<()> {
    let mut changed = index.clone();
    let versions = changed["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
    let chart = versions.iter().find(|entry| entry["version"] == "3.7.2").context("a version")?["chart"].clone();
    let runs = versions
        .iter_mut()
        .find(|entry| entry["version"] == "3.7.3")
        .context("the version that runs")?;
    runs["chart"] = chart;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("index.yaml"), changed.to_string())?;
    let folder = folder.path().to_str().context("a path")?;
    let operator = file.to_str().context("a path")?;
    for verb in ["plan", "diff"] {
        let wants = |more: &[&str]| -> Result<(i32, String, String)> {
            let (code, out, err) = bed.vdoctl(&[&[verb, "-o", "json"], more].concat())?;
            let plan: Value = serde_json::from_str(&out).with_context(|| err.clone())?;
            Ok((code, plan["objects"].to_string(), err))
        };
        let (code, own, said) = wants(&["--matrix", operator])?;
        assert!(
            code == 0 && !said.contains("another matrix"),
            "{verb} with the operator's: {own} {said}"
        );
        let (code, other, said) = wants(&["--matrix", folder])?;
        assert!(code == 1 && other.contains("driver:v3.7.2"), "{verb} with another: {other}");
        assert!(
            said.contains(&format!(
                "another matrix than this: {operator}, version 7002; give it with --matrix"
            )),
            "{said}"
        );
        let (_, _, said) = wants(&[])?;
        assert!(said.contains("another matrix"), "{said}");
    }
    let (code, objects, _) = bed.vdoctl(&["render", "--matrix", folder])?;
    assert!(
        code == 0 && objects.contains("driver:v3.7.2") && !objects.contains("driver:v3.7.3"),
        "{objects}"
    );
    Ok(())
}

async fn an_older_csi_runs(bed: &Bed) -> Result<()> {
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
        .await?;
    let config = bed.until_ready().await?;
    let driver = &config["status"]["drivers"][1];
    assert_eq!(
        (&driver["version"], &driver["running"]),
        (&json!("3.6.3"), &json!("3.6.3")),
        "wanted and running"
    );
    let (_, out, _) = bed.vdoctl(&["status", "-o", "json"])?;
    let told = &serde_json::from_str::<Value>(&out)?["drivers"][1];
    assert_eq!((&told["version"], &told["running"]), (&json!("3.6.3"), &json!("3.6.3")), "{out}");
    // Upgraded, Kubernetes would have a version that the pinned one does not support.
    let found = bed.until_reason("Upgradeable", "IncompatiblePin").await?;
    let message = found["message"].as_str().unwrap_or_default();
    assert_eq!(found["status"], "False", "{found}");
    assert!(
        message.contains("Kubernetes 1.35 does not fit: CSI is pinned to 3.6.3"),
        "{message}"
    );
    Ok(())
}

/// What an upgrade of the platform would do, before it is begun.
async fn the_next_kubernetes_is_known_to_fit(bed: &Bed) -> Result<()> {
    let found = bed.until_reason("Upgradeable", "Healthy").await?;
    let message = found["message"].as_str().unwrap_or_default();
    assert_eq!(found["status"], "True", "{found}");
    assert!(
        message.starts_with("Kubernetes 1.35 fits with CPI 1.35.") && message.contains("CSI 3.7.3"),
        "{message}"
    );
    Ok(())
}

fn definition(kind: &str, namespaced: bool) -> Value {
    let plural = match kind {
        "VolumeSnapshotClass" => "volumesnapshotclasses".to_owned(),
        _ => format!("{}s", kind.to_lowercase()),
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.snapshot.storage.k8s.io"), "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-csi/external-snapshotter/pull/814"}},
        "spec": {"group": "snapshot.storage.k8s.io", "names": {"kind": kind, "plural": plural},
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

async fn snapshots_need_definitions_and_a_controller(bed: &Bed) -> Result<()> {
    // The snapshotter runs as the driver ships it. Nobody asked, so what is missing is told and is no fault.
    let found = bed.until_reason("SnapshotsSupported", "NotRequested").await?;
    assert_eq!(found["status"], "Unknown");
    assert!(
        found["message"].as_str().unwrap_or_default().contains("volumesnapshots."),
        "{found}"
    );
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3", "snapshots": {"maxPerVolume": 4}}})))
        .await?;
    let found = bed.until_reason("SnapshotsSupported", "SnapshotDefinitionsMissing").await?;
    assert_eq!(found["status"], "False");
    let message = found["message"].as_str().unwrap_or_default();
    for name in [
        "volumesnapshots.",
        "volumesnapshotcontents.",
        "volumesnapshotclasses.",
        "external-snapshotter",
    ] {
        assert!(message.contains(name), "{name} is not in {message}");
    }
    for kind in ["VolumeSnapshot", "VolumeSnapshotContent", "VolumeSnapshotClass"] {
        bed.apply(&definition(kind, kind == "VolumeSnapshot")).await?;
    }
    let found = bed.until_reason("SnapshotsSupported", "SnapshotControllerMissing").await?;
    assert_eq!(found["status"], "False", "{found}");

    let labels = json!({"app.kubernetes.io/name": "snapshot-controller"});
    bed.apply(
        &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "snapshot-controller", "namespace": "kube-system"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [{"name": "snapshot-controller", "image": "registry.k8s.io/sig-storage/snapshot-controller:v8.2.0"}]}}}}),
    )
    .await?;
    let found = bed.until_reason("SnapshotsSupported", "Healthy").await?;
    assert_eq!(found["status"], "True");
    assert!(
        found["message"]
            .as_str()
            .unwrap_or_default()
            .contains("kube-system/snapshot-controller-"),
        "{found}"
    );

    bed.delete(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        "volumesnapshots.snapshot.storage.k8s.io",
    )
    .await?;
    let found = bed.until_reason("SnapshotsSupported", "SnapshotDefinitionsMissing").await?;
    assert!(!found["message"].as_str().unwrap_or_default().contains("contents"), "{found}");
    // It informs: what runs is ready all the same.
    bed.until_ready().await?;

    let without = json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3", "values": {"snapshots": {"enabled": false}}}});
    bed.apply(&bed.config(without)).await?;
    let found = bed.until_reason("SnapshotsSupported", "NotRequested").await?;
    assert_eq!(found["status"], "Unknown", "{found}");
    Ok(())
}

/// The vCenter is 8.0.3; transactions need 9.1. What runs goes on.
async fn a_feature_that_the_vcenter_lacks_is_named(bed: &Bed) -> Result<()> {
    let before = bed.owned().await?;
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"features": {"csi-transaction-support": true}}})))
        .await?;
    let found = bed.until_reason("Ready", "NoCompatibleVersion").await?;
    let message = found["message"].as_str().unwrap_or_default();
    for part in [
        "transactions",
        "spec.storageProvider.features[csi-transaction-support]",
        "vCenter 9.1 and newer",
        "vc1 has 8.0.3",
        "without spec",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert_eq!(bed.owned().await?, before, "nothing is changed while there is no choice");
    Ok(())
}

async fn storage_classes_that_contradict_themselves_are_refused(bed: &Bed) -> Result<()> {
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
}

async fn class(bed: &Bed, name: &str) -> Result<Value> {
    bed.get("storage.k8s.io/v1", "StorageClass", "", name).await
}

async fn storage_classes_are_made_when_asked_for(bed: &Bed) -> Result<()> {
    let spec =
        |classes: Value| bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3", "storageClasses": classes}}));
    bed.apply(&spec(json!([]))).await?;
    bed.until_ready().await?;
    assert!(
        bed.list("storage.k8s.io/v1", "StorageClass", "").await?.is_empty(),
        "none unless asked"
    );

    let gold =
        json!({"name": "gold", "storagePolicy": "VM Encryption Policy", "default": true, "reclaimPolicy": "Retain", "fsType": "xfs"});
    let share = json!({"name": "share", "fileShare": true, "datastoreUrl": "ds:///vmfs/volumes/vsan:1/"});
    let vsan = [("url", "ds:///vmfs/volumes/vsan:1/"), ("type", "vsan")];
    bed.vcenter.set("Datastore", "LocalDS_0", &vsan).await?;
    bed.apply(&spec(json!([gold, share]))).await?;
    bed.until_ready().await?;
    let made = class(bed, "gold").await?;
    assert_eq!(made["provisioner"], CSI);
    assert_eq!(
        made["parameters"],
        json!({"storagepolicyname": "VM Encryption Policy", "csi.storage.k8s.io/fstype": "xfs"})
    );
    assert_eq!(made["reclaimPolicy"], "Retain");
    assert_eq!(made["allowVolumeExpansion"], true);
    assert_eq!(made["volumeBindingMode"], "Immediate");
    assert_eq!(
        made["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"],
        "true"
    );
    let made = class(bed, "share").await?;
    assert_eq!(
        made["parameters"],
        json!({"datastoreurl": "ds:///vmfs/volumes/vsan:1/", "csi.storage.k8s.io/fstype": "nfs4"})
    );
    assert_eq!(made["allowVolumeExpansion"], false);
    assert_eq!(
        made["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"],
        Value::Null
    );

    // What Kubernetes lets change, changes in place: expansion, and which one is the default.
    let uid = class(bed, "gold").await?["metadata"]["uid"].clone();
    let mut changed = gold.clone();
    changed["allowExpansion"] = false.into();
    changed["default"] = false.into();
    bed.apply(&spec(json!([changed, share]))).await?;
    until("StorageClass gold to be changed", PATIENCE, async || {
        let now = class(bed, "gold").await?;
        let default = now["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true";
        Ok(Probe::when(now["allowVolumeExpansion"] == false && !default, &now))
    })
    .await?;
    assert_eq!(class(bed, "gold").await?["metadata"]["uid"], uid);
    bed.until_ready().await?;
    Ok(())
}

/// The node of a CSINode is called by its name and not by the UUID of its machine, as with use-csinode-id switched off.
async fn an_upgrade_waits_for_its_preconditions(bed: &Bed) -> Result<()> {
    rename(bed, "w-3", "w-3").await?;
    let latest = |spec: Value| bed.config(json!({"updatePolicy": "Latest", "cloudProvider": {}, "storageProvider": spec}));
    bed.apply(&latest(json!({}))).await?;
    let because = until("the upgrade to wait", PATIENCE, async || {
        let driver = bed.status().await?["drivers"][1].clone();
        let because = driver["because"].as_str().unwrap_or_default().to_owned();
        Ok(if because.contains("cannot be upgraded to yet") {
            Probe::Ready(because)
        } else {
            Probe::not_yet(driver)
        })
    })
    .await?;
    assert!(
        because.contains("3.7.3 cannot be upgraded to yet: CsiNodeIds: CSINode w-3 calls its machine \"w-3\""),
        "{because}"
    );
    assert_eq!(bed.status().await?["drivers"][1]["version"], "3.6.3");
    // A pin does not go round it either.
    bed.apply(&latest(json!({"version": "3.7.3"}))).await?;
    let found = bed.until_reason("Ready", "IncompatiblePin").await?;
    assert!(found["message"].as_str().unwrap_or_default().contains("CsiNodeIds"), "{found}");

    // A volume that pods on several nodes use, another one, and one whose definition is gone.
    for (volume, mode) in [("shared", "ReadWriteMany"), ("own", "ReadWriteOnce")] {
        bed.apply(
            &json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": [mode], "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": CSI, "volumeHandle": volume}}}),
        )
        .await?;
        bed.apply(
            &json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": volume}, "spec": {
            "attacher": CSI, "nodeName": "w-1", "source": {"persistentVolumeName": volume}}}),
        )
        .await?;
    }
    bed.apply(&latest(json!({}))).await?;
    rename(bed, "w-3", UUID).await?;
    let found = bed.until_reason("NoRwxAttachments", "SharedVolumesAttached").await?;
    assert_eq!(found["status"], "False", "{found}");
    let message = found["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("shared on node w-1") && !message.contains("own on node"),
        "{message}"
    );
    let waits = async |why: &str| {
        let driver = bed.status().await?["drivers"][1].clone();
        let because = driver["because"].as_str().unwrap_or_default();
        anyhow::ensure!(driver["version"] == "3.6.3" && driver["running"] == "3.6.3", "{driver}");
        anyhow::ensure!(because.contains("NoRwxAttachments") && because.contains(why), "{because}");
        anyhow::Ok(())
    };
    waits("shared on node w-1").await?;
    // What cannot be told lets nothing go on either, and takes nothing away.
    bed.delete("v1", "PersistentVolume", "", "shared").await?;
    let found = bed.until_reason("NoRwxAttachments", "NotChecked").await?;
    assert_eq!(found["status"], "Unknown", "{found}");
    waits("VolumeAttachment shared is of a volume").await?;
    bed.delete("storage.k8s.io/v1", "VolumeAttachment", "", "shared").await?;
    until("CSI to be upgraded", PATIENCE, async || {
        let driver = bed.status().await?["drivers"][1].clone();
        Ok(Probe::when(driver["version"] == "3.7.3" && driver["running"] == "3.7.3", &driver))
    })
    .await?;
    bed.until_ready().await?;
    let found = bed.until_reason("NoRwxAttachments", "NotRequested").await?;
    assert_eq!(found["status"], "Unknown", "no upgrade is at hand any more: {found}");
    bed.delete("storage.k8s.io/v1", "VolumeAttachment", "", "own").await?;
    bed.delete("v1", "PersistentVolume", "", "own").await
}

/// Registers the driver on a node anew, with this name of its machine. Kubernetes lets nobody change it in place.
async fn rename(bed: &Bed, node: &str, id: &str) -> Result<()> {
    until(&format!("CSINode {node} to call its machine {id}"), PATIENCE, async || {
        let now = bed.get("storage.k8s.io/v1", "CSINode", "", node).await?;
        if now["spec"]["drivers"][0]["nodeID"] == id {
            return Ok(Probe::Ready(()));
        }
        bed.delete("storage.k8s.io/v1", "CSINode", "", node).await?;
        let new = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
            "spec": {"drivers": [{"name": CSI, "nodeID": id}]}});
        let made = bed.apply(&new).await.context("made by somebody else in between");
        Ok(Probe::not_yet(format!("{now}; {made:?}")))
    })
    .await
}
