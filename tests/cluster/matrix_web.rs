// SPDX-License-Identifier: Apache-2.0
//! A matrix on a web server, from its publication to the pods: seen, verified, upgraded, kept when the server is gone, and attacked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_source::{Publisher, embedded_index, look};
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;
use vdo_api::types::Digest;
use vdo_testbed::{Probe, WebAnswer, WebServer, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI: &str = "vsphere-csi";
const CSI_NS: &str = "vmware-system-csi";
const INDEX: &str = "/matrix/index.json";
/// The object that only 3.8.1 has.
pub const NOTES: &str = "vsphere-csi-notes";
/// The chart of 3.8.1, relative to the index.
pub const CHART: &str = "charts/vsphere-csi-3.8.1.tgz";

/// A flag's value lives as long as the tests.
pub fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The package of CSI 3.8.1: 3.8.0 with other images and these objects.
pub fn package(objects: &str) -> Result<Vec<u8>> {
    let mut source = vdo_source::fetch::embedded::sources().remove(CSI).context("a source")?;
    let releases = source.files.get_mut("releases/3.8.yaml").context("releases")?;
    releases.extend(
        b"  3.8.1:\n    date: \"2026-10-31\"\n    upstream:\n      tag: v3.8.1\n    images:\n      driver: {tag: v3.8.1}\n      syncer: {tag: v3.8.1}\n",
    );
    if !objects.is_empty() {
        let template = format!("{{% if release.version == \"3.8.1\" %}}\n{objects}{{% endif %}}\n");
        source.files.insert("templates/notes.yaml".into(), template.into_bytes());
    }
    Ok(vdo_core::chart::package(&source, &"3.8.1".parse()?)?)
}

/// A publisher's server, which wants a password, and what its clients have.
pub struct Site {
    server: WebServer,
    key: Publisher,
    index: Value,
    folder: tempfile::TempDir,
}

impl Site {
    pub async fn start() -> Result<Self> {
        let site = Self {
            server: WebServer::start().await?,
            key: Publisher::new()?,
            index: embedded_index()?,
            folder: tempfile::tempdir()?,
        };
        std::fs::create_dir(site.file("credentials"))?;
        for (key, value) in [
            ("username", "reader"),
            ("password", "r3ad-it"),
            ("ca.crt", &*site.server.authority().pem()),
        ] {
            std::fs::write(site.file("credentials").join(key), value)?;
        }
        std::fs::write(site.file("keys.pem"), site.key.public())?;
        site.serve();
        Ok(site)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn url(&self) -> String {
        self.server.url(INDEX)
    }

    fn serve(&self) {
        self.server.answer(|asked| match asked.authorization.as_deref() {
            Some("Basic cmVhZGVyOnIzYWQtaXQ=") => WebAnswer::File,
            _ => WebAnswer::Status(401, vec![], "log in".into()),
        });
    }

    /// As a server that is gone: nothing that it sends is an answer.
    fn die(&self) {
        self.server.answer(|_| WebAnswer::Cut);
    }

    pub fn flags(&self) -> Vec<(&'static str, &'static str)> {
        let path = |name: &str| leaked(self.file(name).display().to_string());
        vec![
            ("matrix", leaked(self.url())),
            ("matrix-credentials", path("credentials")),
            ("matrix-keys", path("keys.pem")),
            ("matrix-interval", "1s"),
        ]
    }

    /// As `vdoctl` takes them.
    fn arguments(&self) -> Vec<String> {
        let flags = self.flags().into_iter().filter(|(name, _)| *name != "matrix-interval");
        flags.map(|(name, value)| format!("--{name}={value}")).collect()
    }

    /// Publishes the index with this version, signed.
    pub fn publish(&mut self, version: u64) -> Result<()> {
        self.index["version"] = version.into();
        let text = self.index.to_string();
        let signature = self.key.signature(text.as_bytes())?;
        self.server.put(&format!("{INDEX}.sig"), signature);
        self.server.put(INDEX, text);
        Ok(())
    }

    /// CSI 3.8.1, with one more object.
    pub fn add_release(&mut self) -> Result<()> {
        let bytes = release(&mut self.index, true)?;
        self.server.put(&format!("/matrix/{CHART}"), bytes);
        Ok(())
    }
}

/// CSI 3.8.1 with one more object than 3.8.0.
pub fn noted() -> Result<Vec<u8>> {
    package(&format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {NOTES}\n  namespace: {{{{ values.namespace }}}}\ndata:\n  version: {{{{ release.version }}}}\n"
    ))
}

/// Adds CSI 3.8.1 to an index: 3.8.0 with other images and, with `notes`, one more object. Its chart.
pub fn release(index: &mut Value, notes: bool) -> Result<Vec<u8>> {
    let bytes = if notes { noted()? } else { package("")? };
    let versions = index["drivers"][CSI]["versions"].as_array_mut().context("versions")?;
    let mut entry = versions.iter().find(|entry| entry["version"] == "3.8.0").context("3.8.0")?.clone();
    let text = entry.to_string().replace("v3.8.0", "v3.8.1");
    entry = serde_json::from_str(&text)?;
    entry["version"] = "3.8.1".into();
    entry["chart"] = json!({"urls": [CHART], "sha256": Digest::of(&bytes).hex()});
    versions.insert(0, entry);
    Ok(bytes)
}

pub async fn until_version(bed: &Bed, source: &str, version: u64) -> Result<()> {
    until("the matrix of the server to be in use", PATIENCE, async || {
        let matrix = &bed.status().await?["matrix"];
        Ok(Probe::when(matrix["version"] == version && matrix["source"] == source, matrix))
    })
    .await
}

pub async fn until_driver(bed: &Bed, version: &str) -> Result<()> {
    until(&format!("CSI {version} to run"), PATIENCE, async || {
        let status = bed.status().await?;
        let csi = &status["drivers"][1];
        Ok(Probe::when(
            csi["running"] == version && csi["ready"] == "True",
            format!("{csi} {}", status["conditions"]),
        ))
    })
    .await
}

/// Waits until the matrix is not the one of the server, for this reason and with these words. Nothing that runs changes.
pub async fn until_refused(bed: &Bed, reason: &str, said: &str) -> Result<()> {
    until(&format!("the matrix to be refused as {reason}"), PATIENCE, async || {
        let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MatrixFresh");
        let reported = found["message"].as_str().is_some_and(|message| message.contains(said));
        Ok(Probe::when(reported && found["reason"] == reason, found))
    })
    .await
}

#[test]
#[ignore = "long"]
fn matrix_on_a_web_server_upgrades_survives_its_server_and_resists_attacks() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut site = Site::start().await?;
        site.publish(7001)?;
        bed.kill_operator();
        bed.flags.extend(site.flags());
        bed.start_operator().await?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        until_version(bed, &site.url(), 7001).await?;
        let fresh = bed.until_reason("MatrixFresh", "Healthy").await?;
        ensure!(
            fresh["message"].as_str().is_some_and(|m| m.contains("signed by the key")),
            "{fresh}"
        );
        until_at_rest(bed).await?;

        // Polls without news: 304 each, and no write.
        site.server.forget();
        let mark = bed.cluster.audit().mark().await?;
        until("three polls", PATIENCE, async || {
            let asked = site.server.asked().len();
            Ok(Probe::when(asked >= 3, format!("{asked} requests")))
        })
        .await?;
        let asked = site.server.asked();
        ensure!(asked.iter().all(|asked| asked.status == 304), "{asked:?}");
        let writes = bed.cluster.audit().since(mark).await?.of(crate::common::OPERATOR).writes();
        let writes = writes.only(|entry| entry.resource != "leases");
        ensure!(writes.is_empty(), "polls without news wrote:\n{writes}");

        // A new version: seen, blocked by a right that is missing, granted, installed.
        let before = bed.owned().await?;
        site.add_release()?;
        site.publish(7002)?;
        let published = Instant::now();
        let waits = bed.until_reason("Ready", "RightsMissing").await?;
        let message = waits["message"].as_str().context("a message")?;
        ensure!(
            message.contains("vdoctl rights --missing --matrix https://") && message.contains("3.8.1"),
            "{message}"
        );
        let csi = bed.status().await?["drivers"][1].clone();
        ensure!(csi["available"] == "3.8.1" && csi["running"] == "3.8.0", "{csi}");
        bed.until_reason("UpgradeAvailable", "RightsMissing").await?;
        ensure!(bed.owned().await? == before, "a blocked upgrade was begun");
        let mut arguments = vec!["rights".to_owned(), "--missing".to_owned()];
        arguments.extend(site.arguments());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (code, text, err) = bed.vdoctl(&arguments)?;
        ensure!(code == 0 && text.contains(NOTES), "{code}\n{text}\n{err}");
        for object in vdo_api::yaml::load_all(&text)? {
            bed.apply(&object).await?;
        }
        look(bed, "granted").await?;
        until_driver(bed, "3.8.1").await?;
        println!(
            "from publication to a healthy driver, with the right granted on the way: {:?}",
            published.elapsed()
        );
        ensure!(bed.get("v1", "ConfigMap", CSI_NS, NOTES).await?["data"]["version"] == "3.8.1");
        until_at_rest(bed).await?;

        // The server dies, and the operator starts again: it repairs, and renders a change, from what the cluster keeps.
        site.die();
        until_refused(bed, "MatrixUnreachable", "previous version 7002").await?;
        bed.kill_operator();
        bed.start_operator().await?;
        bed.delete("v1", "ConfigMap", CSI_NS, NOTES).await?;
        until("a repair without the server", PATIENCE, async || {
            let found = bed.get("v1", "ConfigMap", CSI_NS, NOTES).await?;
            Ok(Probe::when(!found.is_null(), "it is missing"))
        })
        .await?;
        let change = json!({"updatePolicy": "Latest", "cloudProvider": {}, "storageProvider": {"clusterDistribution": "without-a-server"}});
        bed.apply(&bed.config(change)).await?;
        until("a change without the server", PATIENCE, async || {
            let secret = bed.get("v1", "Secret", CSI_NS, "vsphere-config-secret").await?;
            let file = secret["data"]["csi-vsphere.conf"].as_str().context("the file")?;
            let text = String::from_utf8(STANDARD.decode(file)?)?;
            Ok(Probe::when(text.contains("without-a-server"), "it is not there"))
        })
        .await?;
        until_driver(bed, "3.8.1").await?;
        until_refused(bed, "MatrixUnreachable", "previous version 7002").await?;

        // It is back, with an older index; then with one that no one has signed.
        let before = bed.owned().await?;
        site.serve();
        site.publish(7001)?;
        until_refused(
            bed,
            "MatrixRolledBack",
            "the version 7001 of the index is lower than the version 7002",
        )
        .await?;
        site.publish(7003)?;
        site.server.remove(&format!("{INDEX}.sig"));
        until_refused(bed, "MatrixNotTrusted", "not signed").await?;
        site.server.put(INDEX, "<html>log in</html>");
        until_refused(bed, "MatrixNotTrusted", "not signed").await?;
        ensure!(bed.owned().await? == before, "an attack changed what runs");

        // A version that is withdrawn leads to the one that the publisher names.
        let versions = site.index["drivers"][CSI]["versions"].as_array_mut().context("versions")?;
        versions[0]["state"] = json!({"kind": "withdrawn", "reason": "it loses data", "since": "2026-11-01", "use": "3.8.0"});
        site.publish(7004)?;
        until_version(bed, &site.url(), 7004).await?;
        until_driver(bed, "3.8.0").await?;
        until("the object of the withdrawn version to be pruned", PATIENCE, async || {
            let found = bed.get("v1", "ConfigMap", CSI_NS, NOTES).await?;
            Ok(Probe::when(found.is_null(), "it is there"))
        })
        .await
    })
}
