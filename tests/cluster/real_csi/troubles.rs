// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor volumes` among volumes in trouble: what the real driver, its sidecars and Kubernetes themselves write, each with its cause.

use super::life::attach;
use super::{
    CLAIM, CLASS, SNAPSHOTS, Trust, VOLUME, claim, install_as, storage, text, until_bound, until_deleted, until_is, with_driver_in,
};
use crate::common::{Bed, GUEST, NODES, PATIENCE};
use crate::volumes::{found, through_a_proxy};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use vdo_testbed::soap::{Act, Rule, SoapProxy};
use vdo_testbed::{ClusterOptions, CsiVersion, NodeOptions, Probe, VcenterOptions, start_snapshots, until};

const VERSION: &str = "3.7.0";
const STORAGE: &str = "storage.k8s.io/v1";
const DRIVER: &str = "csi.vsphere.vmware.com";

/// One cluster in which one thing after the other goes wrong; nothing is repaired before the end, so that all are seen beside each other.
#[test]
#[ignore = "long"]
fn real_csi_troubles_are_named_by_doctor_volumes_with_their_causes() -> Result<()> {
    let vcenter = VcenterOptions {
        hosts: 2,
        ..VcenterOptions::with_vms(NODES)
    };
    let version = [CsiVersion::Newer];
    with_driver_in(ClusterOptions::default(), vcenter, &version, Trust::Thumbprint, async |bed| {
        let proxy = through_a_proxy(bed).await?;
        let _controller = start_snapshots(&bed.cluster).await?;
        let mut driver = storage(VERSION);
        driver["snapshots"] = json!({"maxPerVolume": 1});
        install_as(bed, driver).await?;
        let data = healthy_volume(bed).await?;
        let lost = lost_volume(bed).await?;
        let mut lacking = refused_claims(bed).await?;
        lacking.extend(refused_changes(bed).await?);
        lacking.extend(refused_attachments(bed, &proxy, &lost).await?);
        lacking.extend(released_volumes(bed).await?);
        lacking.extend(refused_by_the_vcenter(bed, &proxy).await?);
        // After a while it is sure that the vCenter does not have the volume.
        let missed = format!("NotInVcenter PersistentVolume {lost}");
        lacking.extend(named(bed, &["VolumeNotFound VolumeSnapshot default/of-lost", &missed]).await);
        let attached = bed.get("v1", VOLUME, "", &data).await?;
        ensure!(attached["status"]["phase"] == "Bound", "{attached}");
        ensure!(lacking.is_empty(), "{}", lacking.join("\n"));
        Ok(())
    })
}

/// How long a cause may take to be shown. The driver and its sidecars try again after seconds.
const LONGEST: Duration = Duration::from_secs(120);

/// Waits until these are among the findings; gives what was shown instead, so that one that lacks does not hide the next.
async fn named(bed: &Bed, expected: &[&str]) -> Vec<String> {
    let outcome = until(&format!("the findings {expected:?}"), LONGEST, async || {
        let (code, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        let document: Value = serde_json::from_str(&out).with_context(|| format!("{code}\n{out}{err}"))?;
        let shown: BTreeSet<String> = found(&document);
        let lacking: Vec<_> = expected.iter().filter(|line| !shown.contains(**line)).collect();
        Ok(Probe::when(
            lacking.is_empty(),
            format!("{lacking:?} are not in {:#}", document["findings"]),
        ))
    })
    .await;
    outcome.err().map(|error| format!("{error:#}")).into_iter().collect()
}

fn class(name: &str, parameters: Value) -> Value {
    json!({"apiVersion": STORAGE, "kind": "StorageClass", "metadata": {"name": name}, "provisioner": DRIVER, "parameters": parameters})
}

fn of_class(name: &str, class: &str) -> Value {
    let mut claim = claim(name);
    claim["spec"]["storageClassName"] = class.into();
    claim
}

fn snapshot(name: &str, source: &str, class: &str) -> Value {
    json!({"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshot", "metadata": {"name": name, "namespace": "default"},
        "spec": {"volumeSnapshotClassName": class, "source": {"persistentVolumeClaimName": source}}})
}

fn attachment(name: &str, volume: &str, node: &str) -> Value {
    json!({"apiVersion": STORAGE, "kind": "VolumeAttachment", "metadata": {"name": name},
        "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}}})
}

/// A volume in use that has a snapshot, which is as many as it may have; gives its name.
async fn healthy_volume(bed: &Bed) -> Result<String> {
    bed.apply(
        &json!({"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshotClass", "metadata": {"name": CLASS},
        "driver": DRIVER, "deletionPolicy": "Delete"}),
    )
    .await?;
    bed.apply(&claim("data")).await?;
    let volume = until_bound(bed, "data").await?;
    attach(bed, &volume).await?;
    bed.apply(&snapshot("yesterday", "data", CLASS)).await?;
    until_is(bed, "ready", (SNAPSHOTS, "VolumeSnapshot", "default", "yesterday"), |snapshot| {
        (snapshot["status"]["readyToUse"] == true).then_some(())
    })
    .await?;
    let (code, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
    ensure!(code == 0 && found(&serde_json::from_str(&out)?).is_empty(), "{code}\n{out}{err}");
    Ok(volume)
}

/// A volume whose disk an administrator deletes in the vCenter; gives its name.
async fn lost_volume(bed: &Bed) -> Result<String> {
    bed.apply(&claim("lost")).await?;
    let volume = until_bound(bed, "lost").await?;
    let handle = text(&bed.get("v1", VOLUME, "", &volume).await?, "/spec/csi/volumeHandle")?;
    bed.vcenter.delete_volume(&handle).await?;
    bed.apply(&snapshot("of-lost", "lost", CLASS)).await?;
    Ok(volume)
}

/// Claims for which no volume is made.
async fn refused_claims(bed: &Bed) -> Result<Vec<String>> {
    bed.vcenter.set("VirtualMachine", "w-2", &[("host", "DC0_C0_H1")]).await?;
    let local = bed.vcenter.add_datastore("DC0_C0_H0", "of-one-host").await?;
    for class in [
        class("gone-datastore", json!({"datastoreurl": "ds:///vmfs/volumes/gone/"})),
        class("one-host", json!({"datastoreurl": local})),
        class("gone-policy", json!({"storagepolicyname": "gone"})),
        class("misspelt", json!({"datastoreuri": "ds:///vmfs/volumes/gone/"})),
    ] {
        bed.apply(&class).await?;
    }
    let from = |name: &str, snapshot: &str| {
        let mut claim = claim(name);
        claim["spec"]["dataSource"] = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": snapshot});
        claim["spec"]["resources"]["requests"]["storage"] = "3Gi".into();
        claim
    };
    let mut shared = claim("shared");
    shared["spec"]["accessModes"] = json!(["ReadWriteMany"]);
    for claim in [
        of_class("gone-datastore", "gone-datastore"),
        of_class("one-host", "one-host"),
        of_class("gone-policy", "gone-policy"),
        of_class("misspelt", "misspelt"),
        from("of-no-snapshot", "gone"),
        from("of-smaller-snapshot", "yesterday"),
        shared,
    ] {
        bed.apply(&claim).await?;
    }
    let lacking = named(
        bed,
        &[
            "DatastoreNotShared PersistentVolumeClaim default/gone-datastore",
            "DatastoreNotShared PersistentVolumeClaim default/one-host",
            "PolicyNotFound PersistentVolumeClaim default/gone-policy",
            "InvalidRequest PersistentVolumeClaim default/misspelt",
            "SourceUnusable PersistentVolumeClaim default/of-no-snapshot",
            "SourceUnusable PersistentVolumeClaim default/of-smaller-snapshot",
            "FileServiceMissing PersistentVolumeClaim default/shared",
        ],
    )
    .await;
    Ok(lacking)
}

/// A volume that has a snapshot gets no second one, and does not grow.
async fn refused_changes(bed: &Bed) -> Result<Vec<String>> {
    bed.apply(&snapshot("today", "data", CLASS)).await?;
    bed.apply(&snapshot("no-class", "data", "gone")).await?;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    bed.merge("v1", CLAIM, "default", "data", larger).await?;
    let lacking = named(
        bed,
        &[
            "SnapshotLimit VolumeSnapshot default/today",
            "SnapshotClassMissing VolumeSnapshot default/no-class",
            "ResizeBlockedBySnapshot PersistentVolumeClaim default/data",
        ],
    )
    .await;
    Ok(lacking)
}

/// Volumes that come to no node: the node has no machine in the vCenter, its machine is off, or another node has the volume.
async fn refused_attachments(bed: &Bed, proxy: &SoapProxy, volume: &str) -> Result<Vec<String>> {
    let (node, _) = GUEST;
    bed.cluster.add_node(NodeOptions::worker(node)).await?;
    until("the driver to be registered for the new node", PATIENCE, async || {
        let found = bed.get(STORAGE, "CSINode", "", node).await?;
        Ok(Probe::when(found["spec"]["drivers"][0]["name"] == DRIVER, found))
    })
    .await?;
    bed.apply(&attachment("no-machine", volume, node)).await?;
    let managed = json!({"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}});
    bed.merge("v1", "Node", "", "w-3", managed).await?;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "elsewhere", "namespace": "default"}, "spec": {
        "nodeName": "w-3", "restartPolicy": "Never",
        "containers": [{"name": "shop", "image": "registry.test/shop", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    bed.apply(&pod).await?;
    let mut lacking = named(
        bed,
        &["VmNotFound VolumeAttachment no-machine", "AttachedElsewhere Pod default/elsewhere"],
    )
    .await;
    let words = "The attempted operation cannot be performed in the current state (Powered off).";
    proxy.rule(Rule::on("CnsAttachVolume", Act::Fault("InvalidPowerState", words, "")));
    bed.apply(&attachment("powered-off", volume, "w-2")).await?;
    lacking.extend(named(bed, &["VmPoweredOff VolumeAttachment powered-off"]).await);
    proxy.no_more_rules();
    Ok(lacking)
}

/// What is left: a PersistentVolume after its claim, and a volume in the vCenter without a PersistentVolume. The driver itself leaves no such
/// volume: its syncer removes the registration with the PersistentVolume, whatever its reclaim policy.
async fn released_volumes(bed: &Bed) -> Result<Vec<String>> {
    let mut keeps = class("keeps", json!({}));
    keeps["reclaimPolicy"] = "Retain".into();
    bed.apply(&keeps).await?;
    bed.apply(&of_class("kept", "keeps")).await?;
    let volume = until_bound(bed, "kept").await?;
    bed.delete("v1", CLAIM, "default", "kept").await?;
    let mut lacking = named(bed, &[&format!("VolumeReleased PersistentVolume {volume}")]).await;
    bed.delete("v1", VOLUME, "", &volume).await?;
    until_deleted(bed, "v1", VOLUME, "", &volume).await?;
    let id = text(&bed.status().await?, "/clusterId")?;
    let restored = bed.vcenter.register_volume(&id, "pvc-of-a-backup").await?;
    let expected = format!("NotInCluster Volume in vCenter {restored}");
    let left = until("the restored volume alone to be left in the vCenter", LONGEST, async || {
        let (_, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        let document: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
        let shown = found(&document);
        let left: Vec<&String> = shown.iter().filter(|line| line.starts_with("NotInCluster ")).collect();
        Ok(Probe::when(left == [&expected], format!("{left:?} instead of {expected}\n{out}")))
    })
    .await;
    lacking.extend(left.err().map(|error| format!("{error:#}")));
    Ok(lacking)
}

/// What a vCenter refuses: a privilege that is taken away, by the simulator; the rest by the proxy in its place.
async fn refused_by_the_vcenter(bed: &Bed, proxy: &SoapProxy) -> Result<Vec<String>> {
    bed.vcenter.enforce(true).await?;
    bed.vcenter.deny(bed.vcenter.user(), &["Datastore.FileManagement"]).await?;
    bed.apply(&claim("forbidden")).await?;
    let mut lacking = named(bed, &["PermissionDenied PersistentVolumeClaim default/forbidden"]).await;
    bed.vcenter.deny(bed.vcenter.user(), &[]).await?;
    bed.vcenter.enforce(false).await?;
    for (name, kind, words, cause) in [
        (
            "full",
            "NoDiskSpace",
            "Insufficient disk space on datastore 'LocalDS_0'.",
            "DatastoreFull",
        ),
        ("ended", "NotAuthenticated", "The session is not authenticated.", "SessionEnded"),
    ] {
        proxy.rule(Rule::on("CnsCreateVolume", Act::Fault(kind, words, "")));
        bed.apply(&claim(name)).await?;
        lacking.extend(named(bed, &[&format!("{cause} {CLAIM} default/{name}")]).await);
        proxy.no_more_rules();
    }
    Ok(lacking)
}
