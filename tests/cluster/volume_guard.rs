//! A change that takes away what volumes depend on leaves the drivers as they are, until a person approves it or the volumes are gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::topology::versions;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI: &str = "vmware-system-csi";
/// Another name of the same vCenter.
const OTHER: &str = "localhost";

async fn volume(bed: &Bed) -> Result<()> {
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "guarded"}});
    bed.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "guarded"}, "spec": spec}))
        .await
}

async fn move_to(bed: &Bed, address: &str) -> Result<()> {
    bed.merge(VDO, "VsphereCloudConfig", NS, "vc1", json!({"spec": {"vcIp": address}}))
        .await
}

/// Waits until the driver is configured with this vCenter, and ready.
async fn configured(bed: &Bed, address: &str) -> Result<()> {
    until(&format!("the driver to use {address}"), PATIENCE, async || {
        let secret = bed.get("v1", "Secret", CSI, "vsphere-config-secret").await?;
        let note = secret["metadata"]["annotations"]["vdo.vmware.com/volume-settings"].clone();
        let used = note
            .as_str()
            .is_some_and(|note| note.contains(&format!("\"vcenters\":[\"{address}\"]")));
        Ok(Probe::when(used, note))
    })
    .await?;
    bed.until_ready().await?;
    Ok(())
}

/// Waits until the operator asks for an approval because of volumes; gives the hash.
async fn asked(bed: &Bed, lost: &str) -> Result<String> {
    let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
    let message = ready["message"].as_str().unwrap_or_default();
    let words = format!("it takes vCenter {lost} from the CSI driver, where some of 1 PersistentVolume may be");
    ensure!(message.contains(&words) && message.contains("vdoctl approve"), "{message}");
    let status = bed.status().await?;
    Ok(status["plan"]["hash"].as_str().context("a hash")?.to_owned())
}

#[test]
fn volume_guard_holds_another_vcenter_until_approved_or_without_volumes() -> Result<()> {
    INSTALLED.run(async |bed| {
        let host = bed.vcenter.host().to_string();
        volume(bed).await?;
        let before = versions(bed).await?;

        move_to(bed, OTHER).await?;
        let hash = asked(bed, &host).await?;
        ensure!(versions(bed).await? == before, "an object of the drivers was changed");
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(condition(&config, "StorageReady")["status"] == "True", "{}", config["status"]);
        let (code, out, err) = bed.vdoctl(&["plan"])?;
        let shown = format!("{out}{err}");
        ensure!(code == 1 && shown.contains("not approved"), "{shown}");
        ensure!(
            shown.contains("volumes depend on what this plan changes: it takes vCenter"),
            "{shown}"
        );

        // Taken back, nothing is asked and nothing was written.
        move_to(bed, &host).await?;
        configured(bed, &host).await?;
        ensure!(
            versions(bed).await? == before,
            "an object of the drivers was changed on the way back"
        );

        move_to(bed, OTHER).await?;
        ensure!(asked(bed, &host).await? == hash, "the same change has another hash");
        let (code, _, err) = bed.vdoctl(&["approve", &hash])?;
        ensure!(code == 0, "{err}");
        configured(bed, OTHER).await?;

        // The last volume is deleted while a change waits for an approval.
        move_to(bed, &host).await?;
        asked(bed, OTHER).await?;
        bed.delete("v1", "PersistentVolume", "", "guarded").await?;
        configured(bed, &host).await
    })
}

#[test]
fn volume_guard_of_vdoctl_refuses_change_that_volumes_depend_on() -> Result<()> {
    INSTALLED.run(async |bed| {
        let only =
            |name: &str| json!({"cloudProvider": {"vsphereCloudConfigs": ["vc1"]}, "storageProvider": {"vsphereCloudConfigs": [name]}});
        bed.apply(&bed.config(only("vc1"))).await?;
        bed.until_ready().await?;
        let mut other = bed.connection("vc2");
        other["spec"]["vcIp"] = OTHER.into();
        bed.apply(&other).await?;
        bed.until_condition("VsphereCloudConfig", "vc2", "Ready", "Healthy").await?;
        let change = ["configure", "drivers", "--set", "storageProvider.vsphereCloudConfigs=[vc2]"];
        volume(bed).await?;
        let (code, out, err) = bed.vdoctl(&change)?;
        let shown = format!("{out}{err}");
        ensure!(code == 4 && shown.contains("nothing was written"), "{code} {shown}");
        ensure!(
            shown.contains("volumes depend on what this changes") && shown.contains("--ignore-checks"),
            "{shown}"
        );
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(
            config["spec"]["storageProvider"]["vsphereCloudConfigs"] == json!(["vc1"]),
            "{}",
            config["spec"]
        );
        // Written anyway, the operator asks.
        let (code, out, err) = bed.vdoctl(&[&change[..], &["--ignore-checks"]].concat())?;
        ensure!(code == 0, "{out}{err}");
        asked(bed, bed.vcenter.host()).await?;
        bed.delete("v1", "PersistentVolume", "", "guarded").await?;
        configured(bed, OTHER).await
    })
}
