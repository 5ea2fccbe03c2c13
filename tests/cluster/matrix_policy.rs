// SPDX-License-Identifier: Apache-2.0
//! What a new index does under the policy Compatible: a newer version is reported, and what runs changes only when it is withdrawn or does
//! not fit any more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::adoption::kubectl;
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_config_maps::Folder;
use crate::matrix_web::{CHART, release, until_driver, until_version};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// The entry of a version of CSI.
fn entry<'a>(index: &'a mut Value, version: &str) -> Result<&'a mut Value> {
    let versions = index["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
    versions.iter_mut().find(|entry| entry["version"] == version).context("a version")
}

/// Waits until this version is reported as available, and not taken because of the policy.
async fn until_available(bed: &Bed, version: &str) -> Result<()> {
    until(&format!("CSI {version} to be available"), PATIENCE, async || {
        let csi = bed.status().await?["drivers"][1].clone();
        Ok(Probe::when(csi["available"] == version, csi))
    })
    .await?;
    let found = bed.until_reason("UpgradeAvailable", "UpdatePolicy").await?;
    let message = found["message"].as_str().unwrap_or_default();
    ensure!(
        found["status"] == "True"
            && message.starts_with(&format!(
                "CSI {version} is available, but 3.8.0 stays installed: spec.updatePolicy is Compatible"
            )),
        "{found}"
    );
    let wait = [
        "wait",
        "vdoconfig/vdo",
        "-n",
        NS,
        "--for=condition=UpgradeAvailable",
        "--timeout=10s",
    ];
    kubectl(bed, &wait, &[])?;
    let (code, text, err) = bed.vdoctl(&["status"])?;
    ensure!(code == 0 && text.contains(message), "{code}\n{text}\n{err}");
    Ok(())
}

/// Of this test alone: in a shared cluster an older version in the same place is refused.
const PLACE: &str = "configmap://vmware-system-vdo/policy";

#[test]
#[ignore = "long"]
fn matrix_under_policy_compatible_reports_newer_and_leaves_what_is_withdrawn_or_does_not_fit() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut folder = Folder::new(PLACE)?;
        folder.sign(7001)?;
        folder.load(bed)?;
        bed.name_source(PLACE).await?;
        until_version(bed, PLACE, 7001).await?;
        until_at_rest(bed).await?;

        let before = bed.owned().await?;
        let chart = release(&mut folder.index, false)?;
        std::fs::write(folder.path(CHART), chart)?;
        folder.sign(7002)?;
        folder.load(bed)?;
        until_version(bed, PLACE, 7002).await?;
        until_available(bed, "3.8.1").await?;
        until_at_rest(bed).await?;
        ensure!(bed.owned().await? == before, "a newer version changed what runs");

        let state = json!({"kind": "withdrawn", "reason": "it loses data", "since": "2026-11-01", "use": "3.8.1"});
        entry(&mut folder.index, "3.8.0")?["state"] = state;
        folder.sign(7003)?;
        folder.load(bed)?;
        until_driver(bed, "3.8.1").await?;
        let available = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "UpgradeAvailable");
        ensure!(available.is_null(), "{available}");

        let whole = entry(&mut folder.index, "3.8.0")?;
        whole.as_object_mut().context("an entry")?.shift_remove("state");
        let listed = entry(&mut folder.index, "3.8.1")?;
        listed["kubernetes"]["min"] = "1.33".into();
        listed["kubernetes"]["max"] = "1.33".into();
        folder.sign(7004)?;
        folder.load(bed)?;
        until_driver(bed, "3.8.0").await
    })
}
