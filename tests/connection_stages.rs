//! What the stages of a connection do to drivers: nothing to those that run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bed;

use anyhow::{Result, ensure};
use bed::{Bed, NS};
use serde_json::{Value, json};

const PRIVILEGE: &str = "VirtualMachine.Config.AddExistingDisk";

async fn csi_controller(bed: &Bed) -> Result<Value> {
    bed.get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
        .await
}

/// A driver that lacks a privilege is not installed; once it runs, the same lack is told and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_driver_waits_for_privileges_and_a_running_one_goes_on() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.flags.push(("connection-interval", "1s"));
    let user = bed.vcenter.user().to_owned();
    bed.vcenter.deny(&user, &[PRIVILEGE]).await?;
    bed.start_operator().await?;
    bed.apply_samples().await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Authorized", "PrivilegesMissing")
        .await?;
    bed.until_condition("VDOConfig", "vdo", "StorageReady", "PrivilegesMissing").await?;
    let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    let privileges = &connection["status"]["privileges"];
    ensure!(
        privileges["missing"] == 4 && privileges["drivers"] == json!(["vsphere-csi"]),
        "{privileges}"
    );
    ensure!(
        privileges["list"][0].as_str().is_some_and(|line| line.starts_with(PRIVILEGE)),
        "{privileges}"
    );
    ensure!(csi_controller(&bed).await? == Value::Null, "the CSI driver was installed");

    bed.vcenter.deny(&user, &[]).await?;
    bed.until_condition("VDOConfig", "vdo", "Ready", "Healthy").await?;
    let before = csi_controller(&bed).await?;
    ensure!(before["metadata"]["generation"].is_number(), "{before}");

    bed.vcenter.deny(&user, &[PRIVILEGE]).await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "PrivilegesMissing")
        .await?;
    bed.until_condition("VDOConfig", "vdo", "ConnectionsReady", "ConnectionNotReady")
        .await?;
    bed.until_condition("VDOConfig", "vdo", "StorageReady", "Healthy").await?;
    let after = csi_controller(&bed).await?;
    ensure!(
        (&before["metadata"]["uid"], &before["metadata"]["generation"]) == (&after["metadata"]["uid"], &after["metadata"]["generation"]),
        "a running driver was changed"
    );
    Ok(())
}

/// One vCenter by two connections is a fault for a driver that uses both, and none when each driver uses one.
#[tokio::test(flavor = "multi_thread")]
async fn one_vcenter_by_two_connections() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.flags.push(("connection-interval", "1s"));
    bed.start_operator().await?;
    bed.apply_samples().await?;
    bed.apply(&bed.connection("vc2")).await?;
    for name in ["vc1", "vc2"] {
        bed.until_condition("VsphereCloudConfig", name, "Distinct", "OverlappingDatacenters")
            .await?;
    }
    let spec = json!({"cloudProvider": {"vsphereCloudConfigs": ["vc1"]}, "storageProvider": {"vsphereCloudConfigs": ["vc2"]}});
    bed.apply(&bed.config(spec)).await?;
    for name in ["vc1", "vc2"] {
        bed.until_condition("VsphereCloudConfig", name, "Distinct", "Healthy").await?;
    }
    bed.until_condition("VDOConfig", "vdo", "Ready", "Healthy").await?;
    Ok(())
}
