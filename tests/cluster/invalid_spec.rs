// SPDX-License-Identifier: Apache-2.0
//! Bad input: a clear error that names the object and the way out, and the drivers that run are left as they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod connections;
mod objects;

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{Fixture, INSTALLED, OPERATOR, written};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Mark, Probe, until};

/// The vCenter is asked every second, and each answer has a line in the log.
const FLAGS: &[(&str, &str)] = &[("connection-interval", "1s"), ("log-level", "info,vdo::controller=debug")];
const RUNNING: Fixture = INSTALLED.flags(FLAGS);
const VDO: (&str, &str) = ("VDOConfig", "vdo");
const VC1: (&str, &str) = ("VsphereCloudConfig", "vc1");

/// What must not change while something is wrong.
struct Guard {
    workloads: Vec<(String, Value, Value)>,
    mark: Mark,
}

async fn workloads(bed: &Bed) -> Result<Vec<(String, Value, Value)>> {
    let mut all = Vec::new();
    for kind in ["DaemonSet", "Deployment"] {
        for object in bed.list("apps/v1", kind, "vdo.vmware.com/driver").await? {
            all.push((
                object["metadata"]["name"].to_string(),
                object["metadata"]["uid"].clone(),
                object["spec"].clone(),
            ));
        }
    }
    ensure!(all.len() == 4, "there are {} workloads", all.len());
    Ok(all)
}

async fn guard(bed: &Bed) -> Result<Guard> {
    Ok(Guard {
        workloads: workloads(bed).await?,
        mark: bed.cluster.audit().mark().await?,
    })
}

/// Nothing but status and events was written, and the workloads are the same.
async fn untouched(bed: &Bed, guard: Guard, case: &str) -> Result<()> {
    let written = written(bed, guard.mark).await?;
    ensure!(written.is_empty(), "{case}: the operator wrote:\n{written}");
    ensure!(workloads(bed).await? == guard.workloads, "{case}: a workload changed");
    Ok(())
}

/// Waits until a condition has this reason and its message holds these words: the object, what happened, what to do.
async fn reported(bed: &Bed, (object, name): (&str, &str), (kind, reason): (&str, &str), words: &[&str]) -> Result<Value> {
    let found = until(
        &format!("{object} {name} to be {kind} for {reason} with the words {words:?}"),
        PATIENCE,
        async || {
            let live = bed.get("vdo.vmware.com/v1alpha1", object, NS, name).await?;
            let found = condition(&live, kind);
            let current = live["status"]["observedGeneration"] == live["metadata"]["generation"];
            let message = found["message"].as_str().unwrap_or_default();
            let right = current && found["reason"] == reason && words.iter().all(|word| message.contains(word));
            Ok(if right { Probe::Ready(found) } else { Probe::not_yet(found) })
        },
    )
    .await?;
    println!("{reason:24} {}", found["message"].as_str().unwrap_or_default());
    ensure!(
        found["lastTransitionTime"].is_string() && found["observedGeneration"].is_number(),
        "{found}"
    );
    Ok(found)
}

/// Waits until the connection and the drivers are well again.
async fn recovered(bed: &Bed) -> Result<()> {
    bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
    bed.until_reason("ConnectionsReady", "Healthy").await?;
    bed.until_ready().await?;
    Ok(())
}

#[test]
fn vdoconfig_without_connections_installs_nothing() -> Result<()> {
    OPERATOR.flags(FLAGS).run(async |bed| {
        bed.apply(&bed.config(json!({}))).await?;
        reported(bed, VDO, ("Ready", "NoConnections"), &[NS, "Create a VsphereCloudConfig"]).await?;
        ensure!(bed.owned().await?.is_empty(), "a driver is installed without a vCenter");
        Ok(())
    })
}
