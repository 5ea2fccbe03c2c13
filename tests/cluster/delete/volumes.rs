// SPDX-License-Identifier: Apache-2.0
//! Volumes are guarded on every way out, and what leads to data is named.

use super::{CSI_NS, VDO, delete, ensure_nothing_is_left, ensure_says, install, is_there, until_gone};
use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{BARE, INSTALLED};
use crate::page::run;
use crate::uninstall::volumes::volume;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

/// The storage driver is there, and nothing of it is being deleted.
async fn ensure_driver_stays(bed: &Bed) -> Result<()> {
    for (api_version, kind, namespace, name) in [
        ("v1", "Namespace", "", CSI_NS),
        ("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller"),
        ("apps/v1", "DaemonSet", CSI_NS, "vsphere-csi-node"),
    ] {
        let found = bed.get(api_version, kind, namespace, name).await?;
        ensure!(
            found.is_object() && found["metadata"]["deletionTimestamp"].is_null(),
            "{kind} {name} goes: {}",
            found["metadata"]
        );
    }
    Ok(())
}

/// The manifests are deleted under a volume in use: the driver stays, and what removes the rest has to know of the volume.
#[test]
#[ignore = "long"]
fn delete_of_the_kustomization_leaves_the_driver_and_vdoctl_delete_refuses() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        bed.apply(&volume("pv-used")).await?;
        run(bed, "kubectl delete --ignore-not-found --wait=false -k deploy")?;
        bed.kill_operator();
        until("the VDOConfig to be terminating", PATIENCE, async || {
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            Ok(Probe::when(
                config["metadata"]["deletionTimestamp"].is_string(),
                &config["metadata"],
            ))
        })
        .await?;
        // No operator is left, which is known before its Lease runs out.
        let (code, out, err) = bed.vdoctl(&["status"])?;
        ensure!(code == 1, "{code}\n{out}{err}");
        ensure_says(&out, &["no operator runs to finish the deletion", "vdoctl delete"])?;
        for wrong in ["keeps trying", "waits for missing rights", "continues by itself"] {
            ensure!(!out.contains(wrong), "{wrong:?} is in:\n{out}");
        }
        let (code, out, err) = bed.vdoctl(&["doctor"])?;
        ensure!(code == 1 && !out.contains("an operator runs"), "{code}\n{out}{err}");
        ensure_says(&(out + &err), &["OperatorNotRunning"])?;
        let (code, _, err) = bed.vdoctl(&["wait", "--for", "deleted", "--timeout", "2m"])?;
        ensure!(code == 7, "{code}\n{err}");
        ensure_says(&err, &["no operator runs to finish the deletion", "vdoctl delete"])?;
        ensure_driver_stays(bed).await?;

        let refusal = [
            "1 volume or snapshot",
            "pv-used of claim shop/data",
            "nothing was removed",
            "--keep-drivers",
        ];
        for args in [
            &["--dry-run=client"][..],
            &["--dry-run=server"],
            &["--yes"],
            &["--yes", "--drivers-only"],
        ] {
            let (code, _, err) = delete(bed, args)?;
            ensure!(code == 4, "{code} for {args:?}");
            ensure_says(&err, &refusal)?;
            ensure_says(&err, &["kubectl apply --server-side -k deploy"])?;
        }
        ensure_driver_stays(bed).await?;

        // Also where nothing of the driver runs any more.
        bed.delete("v1", "Namespace", "", CSI_NS).await?;
        until_gone(bed, "apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
        let (code, _, err) = delete(bed, &["--yes"])?;
        ensure!(code == 4, "{code} without the driver");
        ensure_says(&err, &refusal)?;
        ensure!(is_there(bed, VDO, "VDOConfig", NS, "vdo").await?, "the VDOConfig is gone");

        // As the refusal says: the driver goes, and the volume is named at the end.
        let annotated = err
            .lines()
            .find(|line| line.contains("annotate"))
            .context("a command")?
            .trim()
            .to_owned();
        run(bed, &annotated)?;
        let (code, out, err) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code}");
        ensure_says(&out, &["to be kept unchanged", "pv-used of claim shop/data"])?;
        ensure_says(
            &err,
            &[
                "VDO is removed",
                "1 volume or snapshot of csi.vsphere.vmware.com stays: pv-used of claim shop/data",
            ],
        )?;
        ensure!(is_there(bed, "v1", "PersistentVolume", "", "pv-used").await?, "the volume is gone");
        ensure_nothing_is_left(bed).await?;
        bed.delete("v1", "PersistentVolume", "", "pv-used").await
    })
}

/// A claim that waits, a snapshot class and a storage class lead to the driver, and keep nothing from being removed.
#[test]
fn delete_names_pending_claims_and_classes() -> Result<()> {
    INSTALLED.run(async |bed| {
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
            "provisioner": "csi.vsphere.vmware.com", "volumeBindingMode": "WaitForFirstConsumer"});
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "waits", "namespace": "default"},
            "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        bed.apply(&class).await?;
        bed.apply(&claim).await?;
        until("the claim to be pending", PATIENCE, async || {
            let claim = bed.get("v1", "PersistentVolumeClaim", "default", "waits").await?;
            Ok(Probe::when(claim["status"]["phase"] == "Pending", &claim["status"]))
        })
        .await?;
        let named = ["PersistentVolumeClaim default/waits", "StorageClass fast"];
        let (code, out, err) = delete(bed, &["--dry-run=client"])?;
        ensure!(code == 0 && out.contains("to be kept unchanged"), "{code}");
        ensure_says(&out, &named)?;
        ensure_says(&err, &named)?;
        let (code, out, err) = delete(bed, &["--yes", "--drivers-only", "-o", "json"])?;
        ensure!(code == 0, "{code}");
        ensure_says(&err, &named)?;
        let last: Value = serde_json::from_str(out.lines().last().context("a document")?)?;
        ensure!(
            last["data"]["pendingClaims"] == json!([named[0]]) && last["data"]["classes"] == json!([named[1]]),
            "{last}"
        );
        bed.delete("v1", "PersistentVolumeClaim", "default", "waits").await?;
        bed.delete("storage.k8s.io/v1", "StorageClass", "", "fast").await
    })
}
