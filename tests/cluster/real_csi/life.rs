// SPDX-License-Identifier: Apache-2.0
//! A volume from its claim to its deletion.

use super::{
    CLAIM, CLASS, SNAPSHOTS, Trust, VOLUME, claim, delete_claim, install, metrics, removal_is_refused, rights, text, until_bound,
    until_deleted, until_is, with_driver,
};
use crate::common::Bed;
use crate::page::manifest;
use crate::users::{done, user_in_secret};
use anyhow::Result;
use serde_json::{Value, json};
use vdo_testbed::{CsiVersion, PATIENCE, Probe, start_snapshots, until};

const VERSION: &str = "3.7.0";

/// With the roles of the chart and the account of `vdoctl users create` alone, in a vCenter that enforces privileges: nothing is forbidden
/// to the driver, and why it has rights that it does not use is known.
#[test]
#[ignore = "long"]
fn real_csi_volume_lives_its_whole_life_with_the_roles_of_the_chart_and_an_account_of_users_create() -> Result<()> {
    with_driver(&[CsiVersion::Newer], Trust::Thumbprint, async |bed| {
        bed.vcenter.enforce(true).await?;
        done(bed, "create", &["--yes"])?;
        let _controller = start_snapshots(&bed.cluster).await?;
        install(bed, VERSION).await?;
        metrics::served(bed).await?;
        bed.apply(&claim("data")).await?;
        let volume = until_bound(bed, "data").await?;
        resized(bed, &volume).await?;
        let copy = snapshotted_and_cloned(bed).await?;
        attached(bed, &volume).await?;
        removal_is_refused(bed, VERSION, &volume).await?;
        first_of_the_page(bed).await?;
        refused_policy_is_explained(bed).await?;
        metrics_without_privileges(bed).await?;

        delete_claim(bed, "copy", &copy).await?;
        bed.delete(SNAPSHOTS, "VolumeSnapshot", "default", "yesterday").await?;
        until_deleted(bed, SNAPSHOTS, "VolumeSnapshot", "default", "yesterday").await?;
        delete_claim(bed, "data", &volume).await?;
        account_was_needed(bed).await?;
        rights::suffice_and_are_needed(bed).await
    })
}

/// The driver's calls made use of the privileges that its account was given.
async fn account_was_needed(bed: &Bed) -> Result<()> {
    let used = bed.vcenter.used(&user_in_secret(bed).await?).await?;
    let needed = [
        "Cns.Searchable",
        "Datastore.FileManagement",
        "VirtualMachine.Config.AddExistingDisk",
        "VirtualMachine.Config.AddRemoveDevice",
    ];
    anyhow::ensure!(needed.iter().all(|privilege| used.contains(*privilege)), "{used:?}");
    Ok(())
}

/// The vCenter takes privileges of the account away for a while, so that volumes are neither made nor compared: what is counted then.
async fn metrics_without_privileges(bed: &Bed) -> Result<()> {
    let user = user_in_secret(bed).await?;
    bed.vcenter.deny(&user, &["Cns.Searchable", "Datastore.FileManagement"]).await?;
    bed.apply(&claim("forbidden")).await?;
    metrics::are_those_of_alerts_and_dashboard(bed).await?;
    bed.delete("v1", CLAIM, "default", "forbidden").await?;
    bed.vcenter.deny(&user, &[]).await
}

/// The first volume of docs/install.md, from its manifest to its deletion.
async fn first_of_the_page(bed: &Bed) -> Result<()> {
    for object in manifest("install.md", "The first volume")? {
        bed.apply(&object).await?;
    }
    let volume = until_bound(bed, "first").await?;
    bed.delete("v1", "Pod", "default", "first").await?;
    until_deleted(bed, "v1", "Pod", "default", "first").await?;
    delete_claim(bed, "first", &volume).await
}

/// What the driver itself says of a policy that the vCenter does not have, with its cause and a command.
async fn refused_policy_is_explained(bed: &Bed) -> Result<()> {
    bed.apply(
        &json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gone-policy"},
        "provisioner": "csi.vsphere.vmware.com", "parameters": {"storagepolicyname": "gone"}}),
    )
    .await?;
    let mut refused = claim("refused");
    refused["spec"]["storageClassName"] = "gone-policy".into();
    bed.apply(&refused).await?;
    let finding = until("the policy to be named", PATIENCE, async || {
        let (_, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        let document: Value = serde_json::from_str(&out)?;
        let all = document["findings"].as_array().into_iter().flatten();
        let found = all
            .clone()
            .find(|finding| finding["name"] == "refused" && finding["cause"] == "PolicyNotFound");
        Ok(found.map_or_else(|| Probe::not_yet(format!("{out}{err}")), |found| Probe::Ready(found.clone())))
    })
    .await?;
    anyhow::ensure!(
        finding["command"] == "kubectl get storageclass gone-policy --output yaml",
        "{finding:#}"
    );
    let found = bed.until_reason("VolumesHealthy", "VolumesFailing").await?;
    anyhow::ensure!(
        found["message"]
            .as_str()
            .unwrap_or_default()
            .starts_with(&format!("{CLAIM} default/refused: ")),
        "{found}"
    );
    // The volumes of this cluster and those of the vCenter are the same ones.
    let (_, out, _) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
    let document: Value = serde_json::from_str(&out)?;
    anyhow::ensure!(document["notRead"] == json!([]), "{out}");
    for differs in ["NotInVcenter", "NotInCluster"] {
        anyhow::ensure!(!out.contains(differs), "{out}");
    }
    bed.delete("v1", CLAIM, "default", "refused").await?;
    bed.until_reason("VolumesHealthy", "Healthy").await?;
    bed.delete("storage.k8s.io/v1", "StorageClass", "", "gone-policy").await
}

/// The disk grows; its file system would on the next mount.
async fn resized(bed: &Bed, volume: &str) -> Result<()> {
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    bed.merge("v1", CLAIM, "default", "data", larger).await?;
    until_is(bed, "larger", ("v1", VOLUME, "", volume), |volume| {
        (volume["spec"]["capacity"]["storage"] == "2Gi").then_some(())
    })
    .await
}

/// A snapshot, and another claim that begins as it; gives the other volume.
async fn snapshotted_and_cloned(bed: &Bed) -> Result<String> {
    bed.apply(
        &json!({"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshotClass", "metadata": {"name": CLASS},
        "driver": "csi.vsphere.vmware.com", "deletionPolicy": "Delete"}),
    )
    .await?;
    bed.apply(
        &json!({"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshot", "metadata": {"name": "yesterday", "namespace": "default"},
        "spec": {"volumeSnapshotClassName": CLASS, "source": {"persistentVolumeClaimName": "data"}}}),
    )
    .await?;
    until_is(bed, "ready", (SNAPSHOTS, "VolumeSnapshot", "default", "yesterday"), |snapshot| {
        (snapshot["status"]["readyToUse"] == true).then_some(())
    })
    .await?;
    let mut copy = claim("copy");
    copy["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
    copy["spec"]["dataSource"] = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "yesterday"});
    bed.apply(&copy).await?;
    until_bound(bed, "copy").await
}

/// A pod with the claim has the disk attached to the machine of its node, and detached when it ends.
async fn attached(bed: &Bed, volume: &str) -> Result<()> {
    attach(bed, volume).await?;
    detach(bed, volume).await
}

/// The attachment of a volume.
pub(super) async fn attachment(bed: &Bed, volume: &str) -> Result<Option<Value>> {
    let all = bed.list("storage.k8s.io/v1", "VolumeAttachment", "").await?;
    let mut of_volume = all
        .into_iter()
        .filter(|one| one["spec"]["source"]["persistentVolumeName"] == volume);
    Ok(of_volume.next())
}

/// Starts a pod with the claim, and waits until its disk is attached.
pub(super) async fn attach(bed: &Bed, volume: &str) -> Result<Value> {
    // As a kubelet would write it; without it kube-controller-manager attaches nothing.
    let managed = json!({"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}});
    bed.merge("v1", "Node", "", "w-1", managed).await?;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shop", "namespace": "default"}, "spec": {
        "nodeSelector": {"kubernetes.io/hostname": "w-1"},
        "containers": [{"name": "shop", "image": "registry.test/shop", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    bed.apply(&pod).await?;
    let found = until("the volume to be attached", PATIENCE, async || {
        let found = attachment(bed, volume).await?;
        Ok(match found.filter(|one| one["status"]["attached"] == true) {
            Some(attachment) => Probe::Ready(attachment),
            None => Probe::not_yet(format!("{:?}\n{}", attachment(bed, volume).await?, bed.agent.logs())),
        })
    })
    .await?;
    anyhow::ensure!(text(&found, "/spec/nodeName")? == "w-1", "{found}");
    Ok(found)
}

/// Ends that pod, and waits until the disk is detached.
pub(super) async fn detach(bed: &Bed, volume: &str) -> Result<()> {
    bed.delete("v1", "Pod", "default", "shop").await?;
    until("the volume to be detached", PATIENCE, async || {
        Ok(Probe::when(attachment(bed, volume).await?.is_none(), bed.agent.logs()))
    })
    .await
}
