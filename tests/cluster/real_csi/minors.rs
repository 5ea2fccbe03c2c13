// SPDX-License-Identifier: Apache-2.0
//! The whole installation on real control planes of other minors of Kubernetes, which `make test-minors` builds.

use super::{Trust, VDO, VOLUME, claim, delete_claim, install, storage, text, until_bound, until_deleted, until_is, with_driver_on};
use crate::common::{Bed, NODES, NS};
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{ClusterOptions, CsiVersion, MINORS, Minor};

#[test]
#[ignore = "needs other control planes, which `make test-minors` builds"]
fn minor_older_than_the_usual_one_gets_drivers_volume_upgrade_and_removal() -> Result<()> {
    whole_installation(MINORS[0])
}

#[test]
#[ignore = "needs other control planes, which `make test-minors` builds"]
fn minor_newer_than_the_usual_one_gets_drivers_volume_upgrade_and_removal() -> Result<()> {
    whole_installation(MINORS[1])
}

fn whole_installation(minor: Minor) -> Result<()> {
    let cluster = ClusterOptions {
        minor: Some(minor),
        ..ClusterOptions::default()
    };
    let of = minor.version.trim_start_matches('v').rsplit_once('.').context("a version")?.0;
    with_driver_on(cluster, &[CsiVersion::Patched, CsiVersion::Newer], Trust::Authority, async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        install(bed, "3.7.0").await?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(config["status"]["kubernetes"]["version"] == minor.version, "{}", config["status"]);
        let cpi = driver(&config, "vsphere-cpi")?;
        ensure!(cpi.starts_with(&format!("{of}.")), "CPI {cpi} for Kubernetes {of}");
        for (node, _) in NODES {
            text(&bed.get("v1", "Node", "", node).await?, "/spec/providerID")?;
        }
        bed.apply(&claim("data")).await?;
        let volume = until_bound(bed, "data").await?;
        ensure_at_rest(bed).await?;

        // Damage, and an upgrade with its way back.
        bed.delete("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
        until_is(
            bed,
            "there again",
            ("v1", "Service", "vmware-system-csi", "vsphere-csi-controller"),
            |service| service["metadata"]["uid"].is_string().then_some(()),
        )
        .await?;
        let newest = json!({"cloudProvider": {}, "storageProvider": storage("3.7.3")});
        bed.apply(&bed.config(newest)).await?;
        bed.until_ready().await?;
        let (code, out, err) = bed.vdoctl(&["rollback", "csi"])?;
        ensure!(code == 0, "{code}\n{out}{err}");
        until_is(bed, "at 3.7.0", (VDO, "VDOConfig", NS, "vdo"), |config| {
            let back = driver(config, "vsphere-csi").is_ok_and(|version| version == "3.7.0");
            (back && crate::common::condition(config, "Ready")["status"] == "True").then_some(())
        })
        .await?;
        ensure!(bed.get("v1", VOLUME, "", &volume).await? != Value::Null, "the volume is gone");
        ensure_nothing_was_forbidden(bed, mark).await?;

        delete_claim(bed, "data", &volume).await?;
        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        until_deleted(bed, VDO, "VDOConfig", NS, "vdo").await?;
        let left = bed.owned().await?;
        ensure!(
            left.is_empty(),
            "left: {:?}",
            left.iter().map(crate::common::name).collect::<Vec<_>>()
        );
        Ok(())
    })
}

/// The version of a driver that runs.
fn driver(config: &Value, name: &str) -> Result<String> {
    let drivers = config["status"]["drivers"].as_array().context("drivers")?;
    let driver = drivers.iter().find(|driver| driver["name"] == name).context("the driver")?;
    text(driver, "/running")
}

/// The operator has nothing to do, and its commands agree.
async fn ensure_at_rest(bed: &Bed) -> Result<()> {
    until_at_rest(bed).await?;
    for command in [&["status"][..], &["plan"], &["diff"]] {
        let (code, out, err) = bed.vdoctl(command)?;
        ensure!(code == 0, "vdoctl {command:?} ended with {code}\n{out}{err}");
    }
    Ok(())
}
