//! The source of the matrix is named by ConfigMaps, ours and those of the original operator, and followed at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_source::look;
use crate::matrix_web::{Site, until_refused, until_version};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const COMP: &str = "comp-matrix-config";
const OWN: &str = "vdo-matrix";

async fn name(bed: &Bed, map: &str, data: Value) -> Result<()> {
    let labels = json!({"name": map, "namespace": NS});
    bed.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": labels, "data": data}))
        .await
}

/// The place that counts, as a person sees it.
fn counting(bed: &Bed) -> Result<String> {
    let (code, text, err) = bed.vdoctl(&["matrix", "source", "-o", "json"])?;
    ensure!(code == 0, "{code} {text} {err}");
    let all: Value = serde_json::from_str(&text)?;
    let named = all["named"].as_array().context("places")?;
    let counts = named.iter().find(|place| place["counts"] == true).context("none counts")?;
    Ok(format!("{}: {}", counts["where"], counts["source"]))
}

#[test]
fn matrix_source_named_by_config_maps_is_followed_at_once() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut site = Site::start().await?;
        site.publish(7001)?;
        bed.kill_operator();
        bed.flags.extend(site.flags().into_iter().filter(|(flag, _)| *flag != "matrix"));
        bed.start_operator().await?;
        let version = bed.status().await?["matrix"]["version"].as_u64().context("a version")?;
        until_version(bed, "embedded", version).await?;
        assert_eq!(counting(bed)?, "\"the operator itself\": \"embedded\"");

        // The original's, which upgrades nothing.
        let url = site.url();
        name(bed, COMP, json!({"versionConfigURL": url, "auto-upgrade": "disabled"})).await?;
        until_version(bed, &url, 7001).await?;
        assert_eq!(counting(bed)?, format!("\"ConfigMap {COMP}\": {url:?}"));
        let (_, text, err) = bed.vdoctl(&["matrix", "source"])?;
        ensure!(
            text.contains(&format!("In use: {url}, version 7001")) && text.contains('✓'),
            "{text}"
        );
        ensure!(err.contains("auto-upgrade: disabled"), "{err}");
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        site.add_release()?;
        site.publish(7002)?;
        until_version(bed, &url, 7002).await?;
        until("3.7.4 to be available, and not chosen", PATIENCE, async || {
            let csi = bed.status().await?["drivers"][1].clone();
            Ok(Probe::when(csi["available"] == "3.7.4" && csi["version"] == "3.7.3", csi))
        })
        .await?;
        let found = bed.until_reason("UpgradeAvailable", "UpdatePolicy").await?;
        ensure!(
            found["message"]
                .as_str()
                .is_some_and(|message| message.contains(&format!("ConfigMap {COMP}"))),
            "{found}"
        );
        name(bed, COMP, json!({"versionConfigURL": url, "auto-upgrade": "enabled"})).await?;
        let waits = bed.until_reason("Ready", "RightsMissing").await?;
        ensure!(
            waits["message"].as_str().is_some_and(|message| message.contains("3.7.4")),
            "{waits}"
        );

        // Ours counts more; a mistake in it changes nothing.
        name(bed, OWN, json!({"source": "http://a.test/index.yaml"})).await?;
        until_refused(bed, "MatrixInvalid", "ConfigMap vdo-matrix, key source: http:// is no source").await?;
        until_version(bed, &url, 7002).await?;
        name(bed, OWN, json!({"source": "embedded"})).await?;
        until_version(bed, "embedded", version).await?;
        bed.until_ready().await?;

        // Without either it is the program again; the flag counts more than all.
        name(bed, OWN, json!({"source": url})).await?;
        until_version(bed, &url, 7002).await?;
        bed.delete("v1", "ConfigMap", NS, OWN).await?;
        bed.delete("v1", "ConfigMap", NS, COMP).await?;
        until_version(bed, "embedded", version).await?;
        name(bed, OWN, json!({"source": "embedded"})).await?;
        bed.kill_operator();
        bed.flags.push(("matrix", Box::leak(url.clone().into_boxed_str())));
        bed.start_operator().await?;
        until_version(bed, &url, 7002).await?;
        bed.delete("v1", "ConfigMap", NS, OWN).await
    })
}

/// The operator asks once an hour, and at once when a person wants it to.
#[test]
fn matrix_on_a_web_server_is_asked_at_once_by_annotation() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut site = Site::start().await?;
        site.publish(7001)?;
        bed.kill_operator();
        bed.flags
            .extend(site.flags().into_iter().filter(|(flag, _)| *flag != "matrix-interval"));
        bed.start_operator().await?;
        let url = site.url();
        until_version(bed, &url, 7001).await?;
        site.publish(7002)?;
        look(bed, "news").await?;
        until_version(bed, &url, 7002).await
    })
}
