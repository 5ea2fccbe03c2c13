// SPDX-License-Identifier: Apache-2.0
//! A matrix behind nginx with a certificate of a private authority and a password, reached through squid with another one: published, followed,
//! withdrawn, cut off and attacked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, PATIENCE};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_attacks::{Files, Publication};
use crate::matrix_source::Publisher;
use crate::matrix_web::{NOTES, leaked, noted, until_driver, until_refused, until_version};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;
use vdo_testbed::{Mirror, Probe, until};

const INDEX: &str = "/matrix/index.yaml";
const CSI_NS: &str = "vmware-system-csi";

/// The mirror with its publisher, and the files of those who read it.
struct Site {
    mirror: Mirror,
    key: Publisher,
    folder: tempfile::TempDir,
}

impl Site {
    async fn start() -> Result<Self> {
        let site = Self {
            mirror: Mirror::start().await?,
            key: Publisher::new()?,
            folder: tempfile::tempdir()?,
        };
        let (user, password) = site.mirror.reader();
        let (own, proxy) = (site.mirror.authority(), site.mirror.proxy(true));
        // A person's files name the proxy; the operator has it from its environment.
        for folder in ["credentials", "person"] {
            std::fs::create_dir(site.file(folder))?;
            for (key, value) in [("username", user), ("password", password), ("ca.crt", own.as_str())] {
                std::fs::write(site.file(&format!("{folder}/{key}")), value)?;
            }
        }
        std::fs::write(site.file("person/proxy"), proxy)?;
        std::fs::write(site.file("keys.pem"), site.key.public())?;
        std::fs::write(site.file("key.pem"), site.key.private())?;
        Ok(site)
    }

    fn file(&self, name: &str) -> &'static str {
        leaked(self.folder.path().join(name).display().to_string())
    }

    fn url(&self) -> String {
        self.mirror.url(INDEX)
    }

    /// What nginx serves below /matrix.
    fn published(&self) -> PathBuf {
        self.mirror.files().join("matrix")
    }

    fn index(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.published().join("index.yaml"))?)
    }

    fn version(&self) -> Result<u64> {
        Publication::of(&self.key, &self.index()?)?.version()
    }

    /// A verb of the publisher, who needs no cluster.
    fn publishes(&self, arguments: &[&str]) -> Result<()> {
        let output = std::process::Command::new(vdo_testbed::vdoctl())
            .arg("matrix")
            .args(arguments)
            .args(["--key-file", self.file("key.pem")])
            .output()?;
        ensure!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Has these as the index and its signature, and no other signature.
    async fn put(&self, (index, signature): Files<'_>) -> Result<()> {
        self.mirror.put(&format!("{INDEX}.sigstore.json"), None)?;
        self.mirror.put(&format!("{INDEX}.sig"), signature.map(str::as_bytes))?;
        self.mirror.put(INDEX, Some(index))
    }
}

#[test]
#[ignore = "needs nginx, squid and htpasswd"]
fn matrix_behind_a_proxy_and_passwords_upgrades_and_says_which_password_is_wrong() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut site = Site::start().await?;
        let folder = site.published().display().to_string();
        site.publishes(&["init", &folder])?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.kill_operator();
        bed.flags = vec![
            ("matrix", leaked(site.url())),
            ("matrix-credentials", site.file("credentials")),
            ("matrix-keys", site.file("keys.pem")),
            ("matrix-interval", "1s"),
        ];
        enters(bed, &site).await?;
        follows(bed, &site, &folder).await?;
        survives(bed, &mut site).await?;

        site.publishes(&[
            "withdraw",
            "csi",
            "3.8.1",
            "--reason",
            "it loses data",
            "--use",
            "3.8.0",
            "--to",
            &folder,
        ])?;
        until_version(bed, &site.url(), site.version()?).await?;
        until_driver(bed, "3.8.0").await?;
        until("the object of the withdrawn version to be pruned", PATIENCE, async || {
            let found = bed.get("v1", "ConfigMap", CSI_NS, NOTES).await?;
            Ok(Probe::when(found.is_null(), "it is there"))
        })
        .await?;
        until_at_rest(bed).await?;

        withstands(bed, &site).await?;
        let log = std::fs::read_to_string(bed.operator_log())?;
        for secret in [site.mirror.reader().1, "let-m3-by", "wr0ng"] {
            ensure!(!log.contains(secret), "the log shows a password");
        }
        bed.environment.clear();
        Ok(())
    })
}

/// A wrong password of the proxy, and the right one; polls; a wrong password of the server, and the right one.
async fn enters(bed: &mut Bed, site: &Site) -> Result<()> {
    let mirror = &site.mirror;
    bed.environment = vec![("HTTPS_PROXY", mirror.proxy(false))];
    bed.start_operator().await?;
    until_refused(bed, "MatrixUnreachable", "proxy").await?;
    ensure!(
        mirror.answered().map_or(0, |all| all.len()) == 0,
        "a wrong password passed the proxy"
    );

    bed.kill_operator();
    bed.environment = vec![("HTTPS_PROXY", mirror.proxy(true))];
    bed.start_operator().await?;
    until_version(bed, &site.url(), site.version()?).await?;
    let passed = mirror.passed()?;
    ensure!(
        passed
            .iter()
            .any(|line| line.contains("CONNECT mirror.test:") && line.contains("/200")),
        "{passed:?}"
    );
    let known = mirror.answered()?.len();
    until("polls without news", PATIENCE, async || {
        let polls = mirror.answered()?.split_off(known);
        let same = polls.iter().filter(|line| **line == format!("GET {INDEX} 304 0")).count();
        Ok(Probe::when(same >= 3, format!("{polls:?}")))
    })
    .await?;

    // A password that is changed without a restart.
    std::fs::write(site.file("credentials/password"), "wr0ng")?;
    until_refused(bed, "MatrixUnreachable", "401").await?;
    std::fs::write(site.file("credentials/password"), mirror.reader().1)?;
    bed.until_reason("MatrixFresh", "Healthy").await?;
    Ok(())
}

/// The publisher adds a version with one command: it is seen, blocked by a right that is missing, granted, installed.
async fn follows(bed: &Bed, site: &Site, folder: &str) -> Result<()> {
    let chart = site.file("csi-3.8.1.tgz");
    std::fs::write(chart, noted()?)?;
    until_at_rest(bed).await?;
    let before = bed.owned().await?;
    site.publishes(&["publish", chart, "--to", folder])?;
    let begun = Instant::now();
    until_version(bed, &site.url(), site.version()?).await?;
    let waits = bed.until_reason("UpgradeAvailable", "RightsMissing").await?;
    ensure!(
        waits["message"]
            .as_str()
            .is_some_and(|message| message.contains("CSI 3.8.1 is available")),
        "{waits}"
    );
    println!("from publication to the name of the missing right: {:?}", begun.elapsed());
    ensure!(bed.owned().await? == before, "a blocked upgrade was begun");
    let (url, keys, person) = (site.url(), site.file("keys.pem"), site.file("person"));
    let (code, text, err) = bed.vdoctl(&[
        "rights",
        "--missing",
        "--matrix",
        &url,
        "--matrix-keys",
        keys,
        "--matrix-credentials",
        person,
    ])?;
    ensure!(code == 0 && text.contains(NOTES), "{code}\n{text}\n{err}");
    let granted = Instant::now();
    for object in vdo_api::yaml::load_all(&text)? {
        bed.apply(&object).await?;
    }
    crate::matrix_source::look(bed, "granted").await?;
    until("a pod of the new version", PATIENCE, async || {
        let pods = bed.list("v1", "Pod", "app=vsphere-csi-controller").await?;
        let new = pods.iter().any(|pod| pod["spec"]["containers"].to_string().contains("v3.8.1"));
        Ok(Probe::when(new, format!("{} pods", pods.len())))
    })
    .await?;
    println!("from the right to the first changed pod: {:?}", granted.elapsed());
    until_driver(bed, "3.8.1").await?;
    ensure!(bed.get("v1", "ConfigMap", CSI_NS, NOTES).await?["data"]["version"] == "3.8.1");
    until_at_rest(bed).await
}

/// The web server dies, and the operator starts again: it repairs from what the cluster keeps.
async fn survives(bed: &mut Bed, site: &mut Site) -> Result<()> {
    site.mirror.die();
    let kept = format!("previous version {}", site.version()?);
    until_refused(bed, "MatrixUnreachable", &kept).await?;
    bed.kill_operator();
    bed.start_operator().await?;
    bed.delete("v1", "ConfigMap", CSI_NS, NOTES).await?;
    until("a repair without the server", PATIENCE, async || {
        let found = bed.get("v1", "ConfigMap", CSI_NS, NOTES).await?;
        Ok(Probe::when(!found.is_null(), "it is missing"))
    })
    .await?;
    until_refused(bed, "MatrixUnreachable", &kept).await?;
    site.mirror.revive().await?;
    bed.until_reason("MatrixFresh", "Healthy").await?;
    Ok(())
}

/// Every attack of the specification of TUF, through proxy and web server.
async fn withstands(bed: &mut Bed, site: &Site) -> Result<()> {
    let publication = Publication::of(&site.key, &site.index()?)?;
    let (version, put) = (publication.version()?, async |files: Files<'_>| site.put(files).await);
    publication.withstands(bed, true, &put).await?;
    let before = bed.owned().await?;

    // Slow retrieval.
    site.mirror.slow(true)?;
    put((&publication.next(version + 1, |_| Ok(()))?.0, Some(&publication.used.1))).await?;
    until_refused(bed, "MatrixUnreachable", "too slowly").await?;
    site.mirror.slow(false)?;
    publication.restore(bed, &put).await?;

    // Key compromise and revocation: the same index is not believed any more, and then by a new key.
    let new = Publisher::new()?;
    std::fs::write(site.file("keys.pem"), new.public())?;
    until_refused(bed, "MatrixNotTrusted", "trusted key").await?;
    put((&publication.used.0, Some(&new.signature(&publication.used.0)?))).await?;
    bed.until_reason("MatrixFresh", "Healthy").await?;
    std::fs::write(site.file("keys.pem"), site.key.public())?;
    until_refused(bed, "MatrixNotTrusted", "trusted key").await?;
    publication.restore(bed, &put).await?;
    ensure!(bed.owned().await? == before, "an attack changed what runs");

    // Wrong software from a malicious mirror: another driver's package under the name of a new version.
    let wrong = |index: &mut Value| -> Result<()> {
        let versions = index["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
        let mut entry = versions.iter().find(|entry| entry["version"] == "3.8.0").context("3.8.0")?.clone();
        entry["version"] = "3.8.2".into();
        entry["chart"] = json!({"urls": ["charts/wrong.tgz"], "sha256": vdo_api::types::Digest::of(b"the right one").hex()});
        versions.insert(0, entry);
        Ok(())
    };
    site.mirror.put("/matrix/charts/wrong.tgz", Some(&noted()?))?;
    let (index, signature) = publication.next(version + 1, wrong)?;
    put((&index, Some(&signature))).await?;
    bed.until_reason("UpgradeAvailable", "DigestMismatch").await?;
    ensure!(bed.owned().await? == before, "wrong software changed what runs");

    // Freeze: what is held back becomes stale by its own date, and nothing is upgraded by it.
    let (index, signature) = publication.next(version + 2, |index| {
        wrong(index)?;
        index["generated"] = "2026-01-01T00:00:00Z".into();
        index["expires"] = "2026-01-02T00:00:00Z".into();
        Ok(())
    })?;
    put((&index, Some(&signature))).await?;
    bed.until_reason("MatrixFresh", "MatrixExpired").await?;
    bed.until_reason("UpgradeAvailable", "MatrixExpired").await?;
    ensure!(bed.owned().await? == before, "an expired index changed what runs");
    let (index, signature) = publication.next(version + 3, |_| Ok(()))?;
    put((&index, Some(&signature))).await?;
    bed.until_reason("MatrixFresh", "Healthy").await?;
    Ok(())
}
