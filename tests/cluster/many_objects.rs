// SPDX-License-Identifier: Apache-2.0
//! Far more VDOConfigs and connections than anyone has: all are answered, one that comes last does not wait for the others to end, and
//! memory stays bounded.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::large::{limit, peak};
use crate::common::sample::all_wanted;
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::EMPTY;
use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
/// How many of each there are; with `VDO_FAULTS=all` five times as many.
const CONFIGS: usize = 60;
const CONNECTIONS: usize = 100;

async fn create(bed: &Bed, kind: &str, objects: Vec<Value>) -> Result<()> {
    let api = bed.api(VDO, kind, NS);
    stream::iter(objects)
        .map(|object| {
            let api = api.clone();
            async move {
                api.create(&kube::api::PostParams::default(), &serde_json::from_value(object)?)
                    .await
                    .map_err(anyhow::Error::from)
            }
        })
        .buffer_unordered(16)
        .try_for_each(async |_| Ok(()))
        .await
}

/// Waits until all objects of the kind say something of themselves.
async fn until_answered(bed: &Bed, kind: &str) -> Result<()> {
    // Beside the whole suite it takes as long as that leaves it.
    until(&format!("every {kind} to have a status"), 3 * PATIENCE, async || {
        let all = bed.list(VDO, kind, "").await?;
        let silent = all.iter().filter(|object| condition(object, "Ready").is_null()).count();
        Ok(Probe::when(silent == 0, format!("{silent} of {} have none", all.len())))
    })
    .await
}

#[test]
#[ignore = "long"]
fn hundreds_of_configs_and_connections_are_answered_in_bounded_memory() -> Result<()> {
    let (configs, connections) = if all_wanted() {
        (5 * CONFIGS, 5 * CONNECTIONS)
    } else {
        (CONFIGS, CONNECTIONS)
    };
    EMPTY.run(async |bed| {
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        let mut first = bed.config(json!({}));
        first["metadata"]["name"] = "first".into();
        bed.apply(&first).await?;
        let config = |number| {
            let mut config = bed.config(json!({}));
            config["metadata"]["name"] = format!("config-{number}").into();
            config
        };
        create(bed, "VDOConfig", (0..configs).map(config).collect()).await?;
        // No one listens there.
        let closed = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let connection = |number| {
            let mut connection = bed.connection(&format!("connection-{number}"));
            connection["spec"]["port"] = closed.into();
            connection
        };
        create(bed, "VsphereCloudConfig", (0..connections).map(connection).collect()).await?;
        bed.start_operator().await?;
        until_answered(bed, "VDOConfig").await?;
        until_answered(bed, "VsphereCloudConfig").await?;
        bed.apply(&bed.connection("last")).await?;
        bed.until_condition("VsphereCloudConfig", "last", "Ready", "Healthy").await?;
        let peak = peak(bed)?;
        println!("{configs} VDOConfigs and {connections} connections: peak {} MiB", peak >> 20);
        ensure!(peak < limit()?, "{} MiB", peak >> 20);
        // The operator must not uninstall for hundreds of them while the fixture cleans up.
        bed.kill_operator();
        Ok(())
    })
}
