// SPDX-License-Identifier: Apache-2.0
//! Volumes and snapshots keep the storage driver.

use super::{CSI_NS, DESPITE, VDO, ensure_budget, until_gone, until_uninstalled};
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::ensure_nothing_was_forbidden;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

pub fn volume(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": "shop", "name": "data"},
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": name}}})
}

/// Waits until the VDOConfig says that volumes are in use, with these words.
async fn until_refused(bed: &Bed, words: &[&str]) -> Result<()> {
    until(&format!("a refusal with the words {words:?}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "Ready");
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        let message = ready["message"].as_str().unwrap_or_default();
        let refused = ready["reason"] == "VolumesInUse" && words.iter().all(|word| message.contains(word));
        Ok(Probe::when(current && refused, &ready))
    })
    .await
}

/// The test plays the attacher, which would let go of a volume.
async fn release_volume(bed: &Bed, volume: &str) -> Result<()> {
    bed.delete("v1", "PersistentVolume", "", volume).await?;
    until_gone(bed, "v1", "PersistentVolume", "", volume).await
}

/// The managementState of the storage provider removes the driver, unless it has volumes.
#[test]
fn storage_provider_with_volumes_is_not_removed() -> Result<()> {
    INSTALLED.run(async |bed| {
        for i in 0..12 {
            bed.apply(&volume(&format!("pv-{i:02}"))).await?;
        }
        let attachment = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "att"},
            "spec": {"attacher": "csi.vsphere.vmware.com", "nodeName": "w-1", "source": {"persistentVolumeName": "pv-00"}}});
        bed.apply(&attachment).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({"storageProvider": {"managementState": "Removed"}})))
            .await?;
        until_refused(bed, &["12 volumes", "pv-00 of claim shop/data on node w-1", "and 2 more", DESPITE]).await?;
        let gone = bed.deleted(mark).await?;
        ensure!(gone.is_empty(), "in spite of volumes:\n{gone}");
        ensure_nothing_was_forbidden(bed, mark).await?;
        // Before the fixture deletes the volumes, which would remove the driver.
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

#[test]
fn storage_provider_with_volumes_and_annotation_is_removed() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&volume("pv-left")).await?;
        bed.apply(&bed.config(json!({"storageProvider": {"managementState": "Removed"}})))
            .await?;
        until_refused(bed, &["pv-left"]).await?;
        let annotate = |value: Value| json!({"metadata": {"annotations": {DESPITE: value}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", annotate("true".into())).await?;
        until_gone(bed, "apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
        bed.until_ready().await?;
        ensure!(
            bed.get("v1", "PersistentVolume", "", "pv-left").await? != Value::Null,
            "the volume went too"
        );
        bed.merge(VDO, "VDOConfig", NS, "vdo", annotate(Value::Null)).await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// A deleted VDOConfig stays until the last volume is gone. A snapshot outlives its volume and needs the driver to go. Then the
/// uninstall goes on by itself.
#[test]
fn uninstall_with_volumes_or_snapshots_waits_for_the_last_one() -> Result<()> {
    INSTALLED.run(async |bed| {
        let group = "snapshot.storage.k8s.io";
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
            "name": format!("volumesnapshotcontents.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
            "spec": {"group": group, "scope": "Cluster", "names": {"plural": "volumesnapshotcontents", "kind": "VolumeSnapshotContent"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
        bed.apply(&crd).await?;
        for i in 0..12 {
            bed.apply(&volume(&format!("pv-{i:02}"))).await?;
        }
        bed.until_ready().await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        until_refused(bed, &["because 12 volumes"]).await?;
        for i in 0..11 {
            release_volume(bed, &format!("pv-{i:02}")).await?;
        }
        until_refused(bed, &["because 1 volume or", "pv-11"]).await?;

        let content = json!({"apiVersion": format!("{group}/v1"), "kind": "VolumeSnapshotContent", "metadata": {"name": "snap-1"},
            "spec": {"driver": "csi.vsphere.vmware.com", "volumeSnapshotRef": {"namespace": "shop", "name": "nightly"}}});
        bed.apply(&content).await?;
        release_volume(bed, "pv-11").await?;
        let words = ["because 1 volume or snapshot of", "snapshot snap-1 of VolumeSnapshot shop/nightly"];
        until_refused(bed, &words).await?;
        let gone = bed.deleted(mark).await?;
        ensure!(gone.is_empty(), "in spite of a volume or a snapshot:\n{gone}");

        let objects = usize::try_from(bed.status().await?["inventory"]["objects"].as_i64().context("objects")?)?;
        let last = bed.cluster.audit().mark().await?;
        bed.delete(&format!("{group}/v1"), "VolumeSnapshotContent", "", "snap-1").await?;
        until_uninstalled(bed).await?;
        ensure_budget(bed, last, objects).await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// What waits for volumes is part of the plan: not "no differences".
#[test]
fn plan_of_removal_that_waits_for_volumes_shows_it() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&volume("pv-plan")).await?;
        bed.apply(&bed.config(json!({"storageProvider": {"managementState": "Removed"}})))
            .await?;
        until_refused(bed, &["1 volume or"]).await?;
        let removed = "- Deployment vmware-system-csi/vsphere-csi-controller";
        for verb in ["plan", "diff"] {
            let (code, text, talk) = bed.vdoctl(&[verb])?;
            let said = format!("{text}---\n{talk}");
            ensure!(code == 1, "vdoctl {verb} ends with {code}:\n{said}");
            for words in [removed, "! the storage driver stays", "pv-plan", "to remove"] {
                ensure!(said.contains(words), "{words:?} is not in vdoctl {verb}:\n{said}");
            }
            ensure!(
                !said.contains("no differences") && !text.contains("- DaemonSet kube-system"),
                "{said}"
            );
        }
        let (_, json, _) = bed.vdoctl(&["plan", "-o", "json"])?;
        let json: Value = serde_json::from_str(&json)?;
        ensure!(json["blocked"][0]["reason"] == "VolumesInUse", "{json:#}");

        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        until("the uninstallation to be refused", PATIENCE, async || {
            let (_, text, talk) = bed.vdoctl(&["plan"])?;
            Ok(Probe::when(talk.contains("is being deleted"), format!("{text}---\n{talk}")))
        })
        .await?;
        let (code, text, talk) = bed.vdoctl(&["plan"])?;
        for words in [
            removed,
            "- DaemonSet kube-system/vsphere-cloud-controller-manager",
            "! the storage driver stays",
            "pv-plan",
        ] {
            ensure!(text.contains(words), "{words:?} is not in vdoctl plan:\n{text}---\n{talk}");
        }
        ensure!(code == 1, "{text}");
        let (code, text, talk) = bed.vdoctl(&["doctor"])?;
        for words in ["✗ Removed", "pv-plan", "vdoctl explain VolumesInUse"] {
            ensure!(text.contains(words), "{words:?} is not in vdoctl doctor:\n{text}---\n{talk}");
        }
        for wrong in ["recreated", "not installed yet"] {
            ensure!(!text.contains(wrong), "{wrong:?} is in vdoctl doctor:\n{text}");
        }
        ensure!(code == 1, "{text}");
        release_volume(bed, "pv-plan").await?;
        until_uninstalled(bed).await
    })
}
