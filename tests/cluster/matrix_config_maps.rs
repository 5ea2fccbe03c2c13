// SPDX-License-Identifier: Apache-2.0
//! A matrix in ConfigMaps: loaded, followed at once, damaged, refused elsewhere, and replaced without leftovers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{BARE, INSTALLED};
use crate::install::until_at_rest;
use crate::matrix_source::{Publisher, embedded_index};
use crate::matrix_web::{CHART, leaked, release, until_driver, until_refused, until_version};
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use vdo_testbed::{Probe, until};

/// The place of docs/matrix.md, for one test alone: what a shared cluster has used from a place stays known, and an older version is refused there.
const PLACE: &str = "configmap://vmware-system-vdo/matrix";

/// The place of another test.
const ORIGINAL: &str = "configmap://vmware-system-vdo/original";

/// A publisher's folder, and where in the cluster it is loaded to.
pub struct Folder {
    folder: tempfile::TempDir,
    key: Publisher,
    pub index: Value,
    place: &'static str,
}

impl Folder {
    pub fn new(place: &'static str) -> Result<Self> {
        let folder = Self {
            folder: tempfile::tempdir()?,
            key: Publisher::new()?,
            index: embedded_index()?,
            place,
        };
        std::fs::create_dir(folder.folder.path().join("charts"))?;
        std::fs::write(folder.folder.path().join("keys.pem"), folder.key.public())?;
        Ok(folder)
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn sign(&mut self, version: u64) -> Result<()> {
        self.index["version"] = version.into();
        let text = self.index.to_string();
        std::fs::write(self.path("index.yaml.sig"), self.key.signature(text.as_bytes())?)?;
        Ok(std::fs::write(self.path("index.yaml"), text)?)
    }

    /// As docs/matrix.md does it.
    fn load_as_written(&self, bed: &Bed) -> Result<()> {
        let mut page = open(bed, "matrix.md")?;
        std::os::unix::fs::symlink(self.folder.path(), page.folder().join("matrix"))?;
        page.run("vdoctl matrix load").map(drop)
    }

    pub fn load(&self, bed: &Bed) -> Result<()> {
        let (code, text, err) = bed.vdoctl(&["matrix", "load", &self.path(""), self.place])?;
        ensure!(code == 0 && text.contains(self.place), "{code}\n{text}\n{err}");
        Ok(())
    }
}

async fn parts(bed: &Bed) -> Result<Vec<Value>> {
    bed.list("v1", "ConfigMap", "vdo.vmware.com/matrix=matrix").await
}

#[test]
#[ignore = "long"]
fn matrix_in_config_maps_is_followed_at_once_and_survives_damage() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut folder = Folder::new(PLACE)?;
        folder.sign(7001)?;
        bed.kill_operator();
        bed.flags.push(("matrix-keys", leaked(folder.path("keys.pem"))));
        bed.start_operator().await?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;

        // Named before it is there, and in a namespace that is not read.
        bed.name_source(PLACE).await?;
        until_refused(bed, "MatrixIncomplete", "there is no Secret matrix in namespace vmware-system-vdo").await?;
        bed.name_source("configmap://default/matrix").await?;
        until_refused(bed, "MatrixIncomplete", "reads ConfigMaps of vmware-system-vdo only").await?;
        let (code, _, err) = bed.vdoctl(&["matrix", "load", &folder.path(""), "configmap://default/matrix"])?;
        ensure!(code == 2 && err.contains(PLACE), "{code} {err}");

        folder.load_as_written(bed)?;
        bed.name_source(PLACE).await?;
        until_version(bed, PLACE, 7001).await?;
        let fresh = bed.until_reason("MatrixFresh", "Healthy").await?;
        ensure!(
            fresh["message"].as_str().is_some_and(|m| m.contains("signed by the key")),
            "{fresh}"
        );
        let (code, text, err) = bed.vdoctl(&["matrix", "source"])?;
        ensure!(
            code == 0 && text.contains(&format!("In use: {PLACE}, version 7001")),
            "{text} {err}"
        );
        let (code, text, err) = bed.vdoctl(&["matrix", "list", "--matrix", PLACE, "-o", "json"])?;
        ensure!(code == 0 && text.contains("7001"), "{code} {text} {err}");
        until_at_rest(bed).await?;

        // A new version with a chart of its own.
        let earlier = parts(bed).await?.len();
        let chart = release(&mut folder.index, false)?;
        std::fs::write(folder.path(CHART), chart)?;
        folder.sign(7002)?;
        let begun = Instant::now();
        folder.load(bed)?;
        until_driver(bed, "3.8.1").await?;
        println!("from vdoctl matrix load to a healthy driver: {:?}", begun.elapsed());
        let all = parts(bed).await?;
        ensure!(
            all.len() == earlier + 1,
            "{earlier} and {} ConfigMaps: an earlier index is left",
            all.len()
        );
        until_at_rest(bed).await?;

        // A part is cut off, then missing: what runs goes on, also after a restart.
        let before = bed.owned().await?;
        let chart = all.iter().max_by_key(|map| map.to_string().len()).context("a part")?;
        let name = chart["metadata"]["name"].as_str().context("a name")?;
        let whole = chart["binaryData"]["part"].as_str().context("a part")?;
        let cut = json!({"binaryData": {"part": &whole[..whole.len() / 8 * 4]}});
        bed.merge("v1", "ConfigMap", NS, name, cut).await?;
        until_refused(bed, "MatrixIncomplete", "was cut off or changed").await?;
        bed.delete("v1", "ConfigMap", NS, name).await?;
        until_refused(bed, "MatrixIncomplete", "part 1 of 1 of the matrix file").await?;
        bed.kill_operator();
        bed.start_operator().await?;
        until_refused(bed, "MatrixIncomplete", "version 7002").await?;
        ensure!(bed.owned().await? == before, "a missing part changed what runs");
        folder.load(bed)?;
        bed.until_reason("MatrixFresh", "Healthy").await?;

        // An unsigned one in the same place is not believed.
        folder.sign(7003)?;
        std::fs::remove_file(folder.path("index.yaml.sig"))?;
        folder.load(bed)?;
        until_refused(bed, "MatrixNotTrusted", "not signed").await?;
        until("the one before to be in use", PATIENCE, async || {
            let matrix = &bed.status().await?["matrix"];
            Ok(Probe::when(matrix["version"] == 7002, matrix))
        })
        .await
    })
}

/// The original operator's way: an object of its own kind, which counts less than the Secret.
#[test]
fn matrix_named_by_a_compatibility_config_is_followed_at_once() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut folder = Folder::new(ORIGINAL)?;
        folder.sign(7001)?;
        folder.load(bed)?;
        let version = bed.status().await?["matrix"]["version"].as_u64().context("a version")?;
        until_version(bed, "embedded", version).await?;
        let object = |url: &str| {
            json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "CompatibilityConfig", "metadata": {"name": "original", "namespace": NS},
                "spec": {"matrixURL": url}})
        };
        bed.apply(&object(ORIGINAL)).await?;
        until_version(bed, ORIGINAL, 7001).await?;
        let (code, text, err) = bed.vdoctl(&["matrix", "source"])?;
        ensure!(code == 0 && text.contains("CompatibilityConfig original"), "{text} {err}");
        bed.apply(&object("http://a.test/matrix.json")).await?;
        until_refused(bed, "MatrixInvalid", "CompatibilityConfig original, spec.matrixURL: http:// is not a source").await?;
        until_version(bed, ORIGINAL, 7001).await?;
        bed.name_source("embedded").await?;
        until_version(bed, "embedded", version).await?;
        bed.delete("v1", "Secret", NS, "vdo-matrix").await?;
        bed.apply(&object(ORIGINAL)).await?;
        until_version(bed, ORIGINAL, 7001).await?;
        bed.delete("vdo.vmware.com/v1alpha1", "CompatibilityConfig", NS, "original").await?;
        until_version(bed, "embedded", version).await
    })
}

/// A cluster that has never seen the original operator's kind loses nothing.
#[test]
#[ignore = "long"]
fn matrix_without_the_kind_compatibility_config_is_the_operators_own() -> Result<()> {
    BARE.run(async |bed| {
        bed.apply_deploy().await?;
        let definition = "compatibilityconfigs.vdo.vmware.com";
        bed.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", definition)
            .await?;
        until("the definition to be deleted", PATIENCE, async || {
            let found = bed
                .get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", definition)
                .await?;
            Ok(Probe::when(found.is_null(), found))
        })
        .await?;
        bed.start_operator().await?;
        bed.apply_samples().await?;
        bed.until_ready().await?;
        ensure!(bed.status().await?["matrix"]["source"] == "embedded");
        let (code, text, err) = bed.vdoctl(&["matrix", "source"])?;
        ensure!(
            code == 0 && text.contains("the operator itself") && !text.contains("CompatibilityConfig"),
            "{code} {text} {err}"
        );
        Ok(())
    })
}
