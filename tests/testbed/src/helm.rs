// SPDX-License-Identifier: Apache-2.0
//! The real helm, against one cluster.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::upstream_programs::Part;

/// A user of helm, with folders of his own.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
}

impl Helm {
    /// The administrator's helm; it is built first if it is missing.
    pub async fn of(cluster: &Cluster) -> Result<Self> {
        Self::from(cluster, Part::Helm).await
    }

    /// The same in this version: [`Part::Helm`] or [`Part::Helm4`].
    pub async fn from(cluster: &Cluster, part: Part) -> Result<Self> {
        let binaries = tokio::task::spawn_blocking(move || Binaries::ensure(&[part])).await??;
        Self::at(binaries.path(part), cluster.kubeconfig())
    }

    /// The program in this place, for the cluster of a kubeconfig.
    pub(crate) fn at(program: PathBuf, kubeconfig: PathBuf) -> Result<Self> {
        Ok(Self {
            program,
            kubeconfig,
            folder: tempfile::tempdir().context("temporary folder")?,
        })
    }

    /// Writes a chart that renders exactly these objects, and gives its folder.
    pub fn chart(&self, name: &str, objects: &[Value]) -> Result<String> {
        let chart = self.folder.path().join(name);
        std::fs::create_dir_all(chart.join("templates"))?;
        let metadata = json!({ "apiVersion": "v2", "name": name, "version": "1.0.0" });
        std::fs::write(chart.join("Chart.yaml"), metadata.to_string())?;
        for (number, some) in objects.chunks(100).enumerate() {
            // JSON is YAML. Braces that are meant for another program are not Helm's.
            let documents: Vec<String> = some.iter().map(|object| object.to_string().replace("{{", r#"{{"{{"}}"#)).collect();
            std::fs::write(chart.join(format!("templates/{number:03}.yaml")), documents.join("\n---\n"))?;
        }
        Ok(chart.to_string_lossy().into_owned())
    }

    /// Runs it, and gives its output.
    ///
    /// # Errors
    /// When it fails, in its own words.
    pub async fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = tokio::process::Command::new(&self.program);
        for (variable, name) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(variable, self.folder.path().join(name));
        }
        let output = command.arg("--kubeconfig").arg(&self.kubeconfig).args(args).output().await;
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm {}: {}", args.join(" "), said.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
