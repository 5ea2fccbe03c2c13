// SPDX-License-Identifier: Apache-2.0
//! Drivers that VDO installed get another owner, as docs/rollback-to-manifests.md has it: no pod restarts, and the new owner can change and remove them.

use super::{CSI_NS, install};
use crate::adoption::running;
use crate::common::{Bed, PATIENCE};
use crate::fixture::BARE;
use crate::page::open;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use vdo_testbed::{Helm, Probe, until};

/// Installs, and follows the block of the page.
async fn hand_over(bed: &mut Bed, block: &str) -> Result<crate::follow::Page> {
    install(bed).await?;
    let before = running(bed).await?;
    ensure!(!before.is_empty(), "nothing runs");
    let mut page = open(bed, "rollback-to-manifests.md")?;
    page.run(block)?;
    let after = running(bed).await?;
    ensure!(before == after, "workloads or pods changed:\n{before:#?}\n{after:#?}");
    let owned = bed.owned().await?;
    ensure!(owned.is_empty(), "still marked as ours: {owned:#?}");
    Ok(page)
}

/// No one else may read the credentials in a file.
fn is_private(file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file)?;
    let mode = std::fs::metadata(file)?.permissions().mode() & 0o777;
    ensure!(mode == 0o600 && text.contains("kind: Secret"), "{mode:o} {text}");
    Ok(())
}

async fn controller(bed: &Bed) -> Result<Value> {
    bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await
}

#[test]
#[ignore = "long"]
fn drivers_are_handed_over_to_manifests_without_a_restart() -> Result<()> {
    BARE.run(async |bed| {
        let page = hand_over(bed, "vdoctl release --to manifests").await?;
        is_private(&page.folder().join("drivers/drivers.yaml"))?;
        let controller = controller(bed).await?;
        let managers = controller["metadata"]["managedFields"].as_array().into_iter().flatten();
        let applied: Vec<&str> = managers
            .filter(|entry| entry["operation"] == "Apply")
            .filter_map(|entry| entry["manager"].as_str())
            .collect();
        ensure!(applied == ["kubectl"], "{applied:?}");
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn drivers_are_handed_over_to_helm_without_a_restart_and_helm_removes_them() -> Result<()> {
    BARE.run(async |bed| {
        let page = hand_over(bed, "vdoctl release --to helm").await?;
        is_private(&page.folder().join("drivers/templates/drivers.yaml"))?;
        let helm = Helm::of(&bed.cluster).await?;
        helm.run(&["uninstall", "vsphere-drivers", "--namespace", CSI_NS]).await?;
        until("Helm to have removed the drivers", PATIENCE, async || {
            let left = controller(bed).await?;
            Ok(Probe::when(left == Value::Null, "the controller is there"))
        })
        .await
    })
}
