// SPDX-License-Identifier: Apache-2.0
//! The source of the matrix is named by a Secret, by the original operator's objects, and by its ConfigMaps as far as they may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_source::look;
use crate::matrix_web::{Site, until_refused, until_version};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
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
#[ignore = "long"]
fn matrix_source_is_followed_at_once_and_config_maps_only_name_it() -> Result<()> {
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

        // The original's, which upgrades nothing; a person follows its source.
        let url = site.url();
        name(bed, COMP, json!({"versionConfigURL": url, "auto-upgrade": "disabled"})).await?;
        until("the source that is not followed to be named", PATIENCE, async || {
            let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MatrixFresh");
            let said = found["message"].as_str().unwrap_or_default();
            let named = said.contains(&format!("ConfigMap {COMP} names the source {url}, but VDO ignores this source"))
                && said.contains("vdoctl configure matrix");
            Ok(Probe::when(named && found["status"] == "True", found))
        })
        .await?;
        until_version(bed, "embedded", version).await?;
        bed.name_source(&url).await?;
        until_version(bed, &url, 7001).await?;
        assert_eq!(counting(bed)?, format!("\"Secret {OWN}\": {url:?}"));
        let said = format!("the source of the matrix has changed from embedded to {url}");
        until("an event of another source", PATIENCE, async || {
            let events = bed.list("events.k8s.io/v1", "Event", "").await?;
            let ours: Vec<&Value> = events.iter().filter(|event| event["reason"] == "MatrixSourceChanged").collect();
            let named = ours
                .iter()
                .any(|event| event["note"].as_str().is_some_and(|note| note.contains(&said)));
            Ok(Probe::when(named, json!(ours)))
        })
        .await?;
        // What was followed before is what a ConfigMap may name.
        bed.delete("v1", "Secret", NS, OWN).await?;
        until("the ConfigMap to count", PATIENCE, async || {
            let counts = counting(bed)?;
            Ok(Probe::when(counts == format!("\"ConfigMap {COMP}\": {url:?}"), counts))
        })
        .await?;
        until_version(bed, &url, 7001).await?;
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
        until("3.8.1 to be available, and not chosen", PATIENCE, async || {
            let csi = bed.status().await?["drivers"][1].clone();
            Ok(Probe::when(csi["available"] == "3.8.1" && csi["version"] == "3.8.0", csi))
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
            waits["message"].as_str().is_some_and(|message| message.contains("3.8.1")),
            "{waits}"
        );

        // Ours counts more; a mistake in it changes nothing.
        bed.name_source("http://a.test/index.yaml").await?;
        until_refused(bed, "MatrixInvalid", "Secret vdo-matrix, key source: http:// is not a source").await?;
        until_version(bed, &url, 7002).await?;
        bed.name_source("embedded").await?;
        until_version(bed, "embedded", version).await?;
        bed.until_ready().await?;

        // Without either it is the program again; the flag counts more than all.
        bed.name_source(&url).await?;
        until_version(bed, &url, 7002).await?;
        bed.delete("v1", "Secret", NS, OWN).await?;
        bed.delete("v1", "ConfigMap", NS, COMP).await?;
        until_version(bed, "embedded", version).await?;
        bed.name_source("embedded").await?;
        bed.kill_operator();
        bed.flags.push(("matrix", Box::leak(url.clone().into_boxed_str())));
        bed.start_operator().await?;
        until_version(bed, &url, 7002).await?;
        bed.delete("v1", "Secret", NS, OWN).await
    })
}

/// The operator asks once an hour, and at once when a person wants it to.
#[test]
#[ignore = "long"]
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

/// Whatever the path leads to, it is not opened: a pipe would be waited for, and other files are no one's business.
#[test]
fn matrix_source_that_is_a_path_is_refused_and_keeps_nothing_waiting() -> Result<()> {
    INSTALLED.run(async |bed| {
        let pipe = bed.cluster.dir().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU)?;
        for path in ["/proc/self/fd/1", "/dev/zero", &pipe.display().to_string(), "file:///etc/passwd"] {
            bed.name_source(path).await?;
            until_refused(bed, "MatrixInvalid", &format!("Secret vdo-matrix, key source: {path} is a path")).await?;
            ensure!(bed.fetch("/healthz").await?.starts_with("HTTP/1.1 200"), "it is not healthy");
        }
        // A reconcile that waits would not repair.
        bed.delete("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
        until("a deleted object to be back", PATIENCE, async || {
            let service = bed.get("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
            Ok(Probe::when(service != Value::Null, "not there"))
        })
        .await?;
        bed.delete("v1", "Secret", NS, OWN).await?;
        until("the matrix to be fresh again", PATIENCE, async || {
            let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MatrixFresh");
            Ok(Probe::when(found["status"] == "True", found))
        })
        .await
    })
}
