// SPDX-License-Identifier: Apache-2.0
//! What the stages of a connection do to drivers: nothing to those that run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS};
use crate::fixture::{INSTALLED, OPERATOR};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const PRIVILEGE: &str = "VirtualMachine.Config.AddExistingDisk";
const FLAGS: &[(&str, &str)] = &[("connection-interval", "1s")];

async fn csi_controller(bed: &Bed) -> Result<Value> {
    bed.get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
        .await
}

#[test]
#[ignore = "long"]
fn new_driver_without_privilege_is_not_installed_before_it_is_granted() -> Result<()> {
    OPERATOR.flags(FLAGS).run(async |bed| {
        let user = bed.vcenter.user();
        bed.vcenter.deny(user, &[PRIVILEGE]).await?;
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
        ensure!(csi_controller(bed).await? == Value::Null, "the CSI driver was installed");

        bed.vcenter.deny(user, &[]).await?;
        bed.until_condition("VDOConfig", "vdo", "Ready", "Healthy").await?;
        let installed = csi_controller(bed).await?;
        ensure!(installed["metadata"]["generation"].is_number(), "{installed}");
        Ok(())
    })
}

#[test]
fn running_driver_that_loses_privilege_is_reported_and_unchanged() -> Result<()> {
    INSTALLED.flags(FLAGS).run(async |bed| {
        let user = bed.vcenter.user();
        let before = csi_controller(bed).await?;
        ensure!(before["metadata"]["generation"].is_number(), "{before}");
        bed.vcenter.deny(user, &[PRIVILEGE]).await?;
        bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "PrivilegesMissing")
            .await?;
        bed.until_condition("VDOConfig", "vdo", "ConnectionsReady", "ConnectionNotReady")
            .await?;
        bed.until_condition("VDOConfig", "vdo", "StorageReady", "Healthy").await?;
        let after = csi_controller(bed).await?;
        ensure!(
            (&before["metadata"]["uid"], &before["metadata"]["generation"])
                == (&after["metadata"]["uid"], &after["metadata"]["generation"]),
            "a running driver was changed"
        );
        bed.vcenter.deny(user, &[]).await?;
        bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
        bed.until_reason("ConnectionsReady", "Healthy").await?;
        Ok(())
    })
}

/// One vCenter by two connections is a fault for a driver that uses both, and none when each driver uses one.
#[test]
fn vcenter_of_two_connections_overlaps_only_for_a_driver_that_uses_both() -> Result<()> {
    INSTALLED.flags(FLAGS).run(async |bed| {
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
    })
}
