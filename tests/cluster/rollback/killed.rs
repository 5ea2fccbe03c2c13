// SPDX-License-Identifier: Apache-2.0
//! An operator that is killed at writes of a change that fails and of its rollback, and pods that crash late.

use super::{NOWHERE, ensure_same, history, objects, until_rolled_back};
use crate::common::{Bed, NS, PATIENCE, sample};
use crate::fixture::{INSTALLED, alone};
use crate::install::until_at_rest;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use vdo_testbed::{Act, Probe, Proxy, TROUBLE, until};

/// The next process goes on: one version everywhere, and nothing is left of the other.
#[test]
#[ignore = "long"]
fn operator_killed_at_a_write_of_change_or_rollback_ends_with_the_last_good_revision() -> Result<()> {
    alone(async || {
        let mut bed = Bed::start().await?;
        let proxy = Proxy::start(&bed.cluster).await?;
        bed.lead_through(&proxy)?;
        bed.start_operator().await?;
        bed.apply_samples().await?;
        bed.until_ready().await?;
        until_at_rest(&bed).await?;
        let before = objects(&bed).await?;
        // About nine objects each way, and the inventory before and after.
        let numbers: Vec<usize> = (1..=22).collect();
        for number in sample::some("writes at which the operator is killed", &numbers, 4) {
            let act = if number % 2 == 0 { Act::StopBefore } else { Act::StopAfter };
            proxy.begin(move |call| if call.write == Some(number) { act } else { Act::Pass });
            let broken = json!({"progressDeadline": "3s", "cloudProvider": {}, "storageProvider": {"version": "3.6.3",
                "values": {"images": {"registry": NOWHERE}}}});
            bed.apply(&bed.config(broken)).await?;
            // Where there are fewer writes, it is not killed.
            let stopped = proxy.stopped(Duration::from_secs(20)).await.is_ok();
            if stopped {
                bed.kill_operator();
            }
            proxy.begin(|_| Act::Pass);
            proxy.resume();
            if stopped {
                bed.start_operator().await?;
            }
            until_rolled_back(&bed).await.with_context(|| format!("write {number}"))?;
            ensure_same(&before, &objects(&bed).await?).with_context(|| format!("write {number}"))?;
            bed.apply(&bed.config(json!({}))).await?;
            bed.until_ready().await?;
            until_at_rest(&bed).await?;
        }
        Ok(())
    })
}

/// Healthy at first, the new pods crash: the change is under way again, and is given up like one that was never healthy.
#[test]
#[ignore = "long"]
fn change_whose_pods_crash_late_is_rolled_back() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let before = objects(bed).await?;
        let known = history(bed)?.last().context("a revision")?.0;
        let spec = json!({"progressDeadline": "20s", "cloudProvider": {}, "storageProvider": {"version": "3.6.3"}});
        bed.apply(&bed.config(spec)).await?;
        until("the change to be healthy", PATIENCE, async || {
            let all = history(bed)?;
            let newest = all.last().context("a revision")?;
            Ok(Probe::when(newest.0 > known && newest.2 == "Deployed", format!("{all:?}")))
        })
        .await?;
        let pods = bed.list("v1", "Pod", "app=vsphere-csi-controller").await?;
        let running = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        for pod in running.filter_map(|pod| pod["metadata"]["name"].as_str()) {
            let change = json!({"metadata": {"annotations": {TROUBLE: "crash"}}});
            bed.merge("v1", "Pod", "vmware-system-csi", pod, change).await?;
        }
        let config = until_rolled_back(bed).await?;
        ensure_same(&before, &objects(bed).await?)?;
        let message = crate::common::condition(&config, "RolledBack")["message"].clone();
        let message = message.as_str().unwrap_or_default();
        ensure!(message.contains("CSI 3.6.3") && message.contains("exit code 1"), "{message}");
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        let config: Value = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        ensure!(config["status"]["health"] == "Healthy", "{}", config["status"]);
        Ok(())
    })
}
