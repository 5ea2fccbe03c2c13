// SPDX-License-Identifier: Apache-2.0
//! Rollbacks that a person asks for, and the policy that leaves them to people.

use super::{NOWHERE, ensure_same, history, objects};
use crate::common::{NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// To a revision whose chart the matrix does not have any more: everything is in the cluster. It stays there until it is lifted.
#[test]
#[ignore = "long"]
fn rollback_by_a_person_needs_no_matrix_and_stays_until_lifted() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let before = objects(bed).await?;
        let good = history(bed)?.last().context("a revision")?.0;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
            .await?;
        let until_runs = async |bed: &crate::common::Bed, version: &str| {
            until(&format!("CSI to run {version}"), PATIENCE, async || {
                let csi = bed.status().await?["drivers"][1].clone();
                Ok(Probe::when(csi["running"] == version && csi["version"] == version, csi))
            })
            .await
        };
        until_runs(bed, "3.6.3").await?;
        bed.until_ready().await?;

        // A matrix without the version that is brought back.
        let folder = tempfile::tempdir()?;
        let mut index = crate::matrix_source::embedded_index()?;
        let versions = index["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
        versions.retain(|entry| entry["version"] != "3.8.0");
        let file = folder.path().join("index.json");
        std::fs::write(&file, index.to_string())?;
        bed.kill_operator();
        bed.flags.push(("matrix", Box::leak(file.display().to_string().into_boxed_str())));
        bed.start_operator().await?;
        let (code, text, err) = bed.vdoctl(&["rollback", "csi", &good.to_string()])?;
        println!("{text}{err}");
        ensure!(
            code == 0 && err.contains(&format!("is rolled back to revision {good} (3.8.0)")),
            "{code} {err}"
        );
        until_runs(bed, "3.8.0").await?;
        bed.until_ready().await?;
        ensure_same(&before, &objects(bed).await?)?;
        let csi = bed.status().await?["drivers"][1].clone();
        ensure!(
            csi["because"]
                .as_str()
                .is_some_and(|text| text.contains("revision.vdo.vmware.com/vsphere-csi")),
            "{csi}"
        );
        ensure!(csi["revision"].as_u64() == history(bed)?.last().map(|newest| newest.0), "{csi}");

        let (code, text, _) = bed.vdoctl(&["status"])?;
        let reported = format!("CSI is kept at revision {good}; `vdoctl rollback csi --lift` ends the rollback.");
        ensure!(code == 0 && text.contains(&reported), "{code}\n{text}");

        // A revision that is not there stops nothing that runs.
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", "999"])?;
        ensure!(code == 3 && err.contains("no revision 999"), "{code} {err}");
        let key = "revision.vdo.vmware.com/vsphere-csi";
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"metadata": {"annotations": {key: "999"}}}))
            .await?;
        bed.until_reason("Ready", "RevisionUnusable").await?;
        ensure_same(&before, &objects(bed).await?)?;

        let (code, _, err) = bed.vdoctl(&["rollback", "csi", "--lift"])?;
        ensure!(code == 0 && err.contains("no longer kept at revision 999"), "{code} {err}");
        until_runs(bed, "3.6.3").await?;
        bed.kill_operator();
        bed.flags.pop();
        bed.start_operator().await?;
        for spec in [json!({"updatePolicy": "Latest"}), json!({})] {
            bed.apply(&bed.config(spec)).await?;
            bed.until_ready().await?;
        }
        Ok(())
    })
}

/// With the policy Manual it is only reported, and the change is still tried.
#[test]
#[ignore = "long"]
fn failed_change_with_manual_policy_waits_for_a_person() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let spec = |storage| json!({"rollback": "Manual", "progressDeadline": "5s", "cloudProvider": {}, "storageProvider": storage});
        bed.apply(&bed.config(spec(json!({"values": {"images": {"registry": NOWHERE}}}))))
            .await?;
        let ready = bed.until_reason("Ready", "RollbackAvailable").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        println!("{message}");
        let number = message
            .split("vdoctl rollback CSI ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .context("a command")?;
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", number])?;
        ensure!(code == 0, "{err}");
        until("CSI to be healthy again", PATIENCE, async || {
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            let ready = condition(&config, "Ready");
            Ok(Probe::when(ready["status"] == "True", ready))
        })
        .await?;
        bed.apply(&bed.config(json!({}))).await?;
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", "--lift"])?;
        ensure!(code == 0, "{err}");
        bed.until_ready().await?;
        Ok(())
    })
}
