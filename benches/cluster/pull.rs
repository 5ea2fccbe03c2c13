// SPDX-License-Identifier: Apache-2.0
//! Installations where every image is pulled for half a minute: both drivers together, and each alone.

use crate::common::Bed;
use crate::install::{self, now};
use crate::report::{Report, seconds};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::Duration;
use vdo_testbed::{ClusterOptions, UNINITIALIZED};

const PULL: Duration = Duration::from_secs(30);

/// Both drivers are to be there as soon as the slower one would be alone.
pub async fn measure() -> Result<Report> {
    let mut report = Report::default();
    report.section("Images that are pulled for 30 s, from the VDOConfig's arrival to Ready=True");
    let mut alone: f64 = 0.0;
    for (what, spec) in [
        ("CPI alone", json!({"cloudProvider": {}})),
        ("CSI alone", json!({"storageProvider": {}})),
    ] {
        eprintln!("slow images: {what}");
        let bed = cluster().await?;
        if what == "CSI alone" {
            initialise(&bed).await?;
        }
        let took = installed(bed, spec).await?;
        alone = alone.max(took);
        report.row(what, seconds(took), "", "");
    }
    eprintln!("slow images: both drivers");
    let both = installed(cluster().await?, json!({})).await?;
    report.row("both", seconds(both), "", format!("both/slower alone {:.2}", both / alone));
    Ok(report)
}

async fn cluster() -> Result<Bed> {
    let options = ClusterOptions {
        pull: PULL,
        ..ClusterOptions::default()
    };
    install::cluster_on(options, None).await
}

/// As if another cloud provider had been there.
async fn initialise(bed: &Bed) -> Result<()> {
    for node in bed.list("v1", "Node", "").await? {
        let name = node["metadata"]["name"].as_str().context("a name")?;
        let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.retain(|taint: &Value| taint["key"] != UNINITIALIZED);
        bed.merge("v1", "Node", "", name, json!({"spec": {"taints": taints}})).await?;
    }
    Ok(())
}

/// Seconds until what is asked for is ready.
async fn installed(mut bed: Bed, spec: Value) -> Result<f64> {
    install::start(&mut bed).await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    let zero = now();
    bed.apply(&bed.config(spec)).await?;
    bed.until_ready().await?;
    Ok(now().duration_since(zero).as_secs_f64())
}
