// SPDX-License-Identifier: Apache-2.0
//! A matrix in a registry, published there by `vdoctl`, to the pods: polled, upgraded, kept when the registry is gone, withdrawn and attacked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::PATIENCE;
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_attacks::{Files, Publication};
use crate::matrix_source::Publisher;
use crate::matrix_web::{leaked, package, until_driver, until_refused, until_version};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;
use vdo_api::types::Secret;
use vdo_oci::registry::{Login, Options, Reference, Registry, pull_matrix, push_matrix};
use vdo_oci::web::Access;
use vdo_testbed::{LOGIN, Probe, RegistryAuth, RegistryKind, RegistryServer, until};

/// The registry with its publisher, and the files of those who read it.
struct Site {
    server: RegistryServer,
    registry: Registry,
    at: Reference,
    key: Publisher,
    folder: tempfile::TempDir,
}

impl Site {
    async fn start() -> Result<Self> {
        let server = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
        let options = Options {
            access: Access::new([("ca.crt".to_owned(), server.ca())]),
            own: true,
            login: Login::Basic {
                user: LOGIN.0.into(),
                password: Secret::new(LOGIN.1),
            },
            plain_http: false,
        };
        let site = Self {
            registry: Registry::new(&server.host(), options)?,
            at: format!("{}/vdo/matrix:stable", server.host()).parse()?,
            server,
            key: Publisher::new()?,
            folder: tempfile::tempdir()?,
        };
        std::fs::create_dir(site.file("credentials"))?;
        let login = json!({"username": LOGIN.0, "password": LOGIN.1});
        let docker = json!({"auths": {site.server.host(): login}}).to_string();
        for (key, value) in [(".dockerconfigjson", docker), ("ca.crt", site.server.ca())] {
            std::fs::write(site.file(&format!("credentials/{key}")), value)?;
        }
        std::fs::write(site.file("keys.pem"), site.key.public())?;
        std::fs::write(site.file("key.pem"), site.key.private())?;
        Ok(site)
    }

    fn file(&self, name: &str) -> &'static str {
        leaked(self.folder.path().join(name).display().to_string())
    }

    fn source(&self) -> String {
        format!("oci://{}", self.at)
    }

    /// A verb of the publisher, who needs no cluster.
    fn publishes(&self, arguments: &[&str]) -> Result<()> {
        let output = std::process::Command::new(vdo_testbed::vdoctl())
            .arg("matrix")
            .args(arguments)
            .args(["--key-file", self.file("key.pem")])
            .args(["--ca-file", self.file("credentials/ca.crt")])
            .args(["--registry-config", self.file("credentials/.dockerconfigjson")])
            .output()?;
        ensure!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// What lies there.
    async fn publication(&self) -> Result<Publication<'_>> {
        let (_, files) = pull_matrix(&self.registry, &self.at).await?.context("a matrix")?;
        let text = files.get("index.yaml").context("an index")?;
        Publication::of(&self.key, std::str::from_utf8(text)?)
    }

    /// Has these in the place of what lies there.
    async fn put(&self, (index, signature): Files<'_>) -> Result<()> {
        let mut files = BTreeMap::from([("index.yaml".to_owned(), index.to_vec())]);
        files.extend(signature.map(|signature| ("index.yaml.sig".to_owned(), signature.as_bytes().to_vec())));
        let before = self.registry.head(&self.at).await?.and_then(|seen| seen.digest);
        push_matrix(&self.registry, &self.at, &files, before.as_ref()).await?;
        Ok(())
    }
}

#[test]
#[ignore = "long"]
fn matrix_in_a_registry_upgrades_and_survives_its_registry() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut site = Site::start().await?;
        let source = site.source();
        site.publishes(&["init", &source])?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.kill_operator();
        bed.flags = vec![
            ("matrix", leaked(source.clone())),
            ("matrix-credentials", site.file("credentials")),
            ("matrix-keys", site.file("keys.pem")),
            ("matrix-interval", "1s"),
        ];
        bed.start_operator().await?;
        until_version(bed, &source, site.publication().await?.version()?).await?;
        bed.until_reason("MatrixFresh", "Healthy").await?;
        until_at_rest(bed).await?;

        // Polls without news: a look at the tag, and no write.
        let asked = |line: &&str| line.contains("/v2/vdo/matrix/") && line.contains("http.request.method");
        let known = site.server.log().lines().filter(asked).count();
        let mark = bed.cluster.audit().mark().await?;
        until("three polls", PATIENCE, async || {
            let count = site.server.log().lines().filter(asked).count();
            Ok(Probe::when(count >= known + 6, format!("{} requests", count - known)))
        })
        .await?;
        let log = site.server.log();
        let gets: Vec<&str> = log
            .lines()
            .filter(asked)
            .skip(known)
            .filter(|line| line.contains("method=GET"))
            .collect();
        ensure!(gets.is_empty(), "polls without news read: {gets:?}");
        let writes = bed.cluster.audit().since(mark).await?.of(crate::common::OPERATOR).writes();
        let writes = writes.only(|entry| entry.resource != "leases");
        ensure!(writes.is_empty(), "polls without news wrote:\n{writes}");

        let chart = site.file("csi-3.8.1.tgz");
        std::fs::write(chart, package("")?)?;
        let begun = Instant::now();
        site.publishes(&["publish", chart, "--to", &source])?;
        until_driver(bed, "3.8.1").await?;
        println!(
            "from vdoctl matrix publish to a healthy driver, polled each second: {:?}",
            begun.elapsed()
        );
        until_at_rest(bed).await?;

        // The registry dies, and the operator starts again: it goes on with what the cluster keeps.
        let kept = format!("previous version {}", site.publication().await?.version()?);
        site.server.stop();
        until_refused(bed, "MatrixUnreachable", &kept).await?;
        bed.kill_operator();
        bed.start_operator().await?;
        until_refused(bed, "MatrixUnreachable", &kept).await?;
        until_driver(bed, "3.8.1").await?;

        // It is back, and the version is withdrawn there.
        site.server.restart().await?;
        bed.until_reason("MatrixFresh", "Healthy").await?;
        site.publishes(&[
            "withdraw",
            "csi",
            "3.8.1",
            "--reason",
            "it loses data",
            "--use",
            "3.8.0",
            "--to",
            &source,
        ])?;
        until_driver(bed, "3.8.0").await?;
        until_at_rest(bed).await?;

        // Someone who may write there has something else in its place.
        let put = async |files: Files<'_>| site.put(files).await;
        site.publication().await?.withstands(bed, false, &put).await?;
        let log = std::fs::read_to_string(bed.operator_log())?;
        ensure!(!log.contains(LOGIN.1), "the log shows a password");
        Ok(())
    })
}
