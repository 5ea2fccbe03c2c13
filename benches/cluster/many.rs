// SPDX-License-Identifier: Apache-2.0
//! Far more VDOConfigs than anyone has, and nothing to do.

use crate::common::{Bed, NS, OPERATOR, PATIENCE, condition};
use crate::report::Report;
use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;
use std::time::Duration;
use vdo_testbed::{Mark, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CONFIGS: usize = 300;
/// How long nothing is asked before it counts as rest.
const QUIET: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);

async fn asked(bed: &Bed, since: Mark) -> Result<usize> {
    Ok(bed
        .cluster
        .audit()
        .since(since)
        .await?
        .of(OPERATOR)
        .only(|e| e.resource != "leases")
        .len())
}

pub async fn measure() -> Result<Report> {
    let mut bed = Bed::start().await?;
    bed.start_operator().await?;
    bed.apply_samples().await?;
    bed.until_ready().await?;
    let api = bed.api(VDO, "VDOConfig", NS);
    stream::iter(0..CONFIGS - 1)
        .map(|number| {
            let mut config = bed.config(json!({}));
            config["metadata"]["name"] = format!("config-{number}").into();
            let api = &api;
            async move {
                let config = serde_json::from_value(config)?;
                api.create(&kube::api::PostParams::default(), &config)
                    .await
                    .map_err(anyhow::Error::from)
            }
        })
        .buffer_unordered(16)
        .try_for_each(async |_| Ok(()))
        .await?;
    until("every VDOConfig to have a status", PATIENCE, async || {
        let all = bed.list(VDO, "VDOConfig", "").await?;
        let silent = all.iter().filter(|object| condition(object, "Ready").is_null()).count();
        Ok(Probe::when(
            silent == 0 && all.len() == CONFIGS,
            format!("{silent} of {} have none", all.len()),
        ))
    })
    .await?;
    until("the operator to be at rest", PATIENCE, async || {
        let mark = bed.cluster.audit().mark().await?;
        tokio::time::sleep(QUIET).await;
        let asked = asked(&bed, mark).await?;
        Ok(Probe::when(asked == 0, format!("{asked} requests")))
    })
    .await?;
    let mark = bed.cluster.audit().mark().await?;
    tokio::time::sleep(MINUTE).await;
    let mut report = Report::default();
    report.section("Many");
    report.row(
        &format!("requests in a minute with {CONFIGS} VDOConfigs at rest"),
        asked(&bed, mark).await?,
        "expected 0",
        "every verb counts",
    );
    Ok(report)
}
