// SPDX-License-Identifier: Apache-2.0
//! The demonstration in a cluster that has the drivers already: as another tool has installed them, taken over.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::screen::Screen;
use super::show::{NAMESPACE, TO_DO, Tools};
use super::story::{line, typed};
use crate::former::{OLD, bare, elsewhere, rights};
use crate::{Binaries, Helm, Part, workdir};

/// Who has installed the drivers before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Former {
    /// `kubectl apply` of the drivers' manifests
    Manifests,
    /// `helm install` of a chart with them
    Helm,
    /// Rancher's charts: both drivers in kube-system, the cloud provider under another name
    Rancher,
}

/// The specification with which VDO takes the drivers over.
const CONFIG: &str = "\
apiVersion: vdo.vmware.com/v1alpha1
kind: VDOConfig
metadata: {name: vdo, namespace: vmware-system-vdo}
spec:
  cloudProvider: {}
  storageProvider:
    defaultStorageClass: {mode: Auto}
";

impl Former {
    /// Who it is, in a sentence.
    pub(super) fn said(self) -> &'static str {
        match self {
            Self::Manifests => "kubectl apply",
            Self::Helm => "Helm",
            Self::Rancher => "Rancher",
        }
    }

    /// The program that it needs beside the usual ones.
    pub(super) fn part(self) -> Option<Part> {
        (self == Self::Helm).then_some(Part::Helm)
    }

    /// Puts the drivers that VDO has installed out of the way, and installs the same ones with the other tool.
    pub(super) async fn install(self, tools: &Tools, dir: &Path) -> Result<()> {
        let rendered = tools.run("vdoctl", &["render", "--show-secrets"])?;
        let all: Vec<Value> = documents(&rendered)?.into_iter().map(bare).collect();
        tools.run("kubectl", &["delete", "vdoconfig", "vdo", "-n", NAMESPACE, "--timeout=5m"])?;
        let objects = match self {
            Self::Manifests | Self::Helm => all,
            Self::Rancher => {
                let own = documents(include_str!("../../../../deploy/drivers-rbac.yaml"))?;
                elsewhere(&all).into_iter().chain(rights(&own)).collect()
            }
        };
        if self == Self::Helm {
            let binaries = tokio::task::spawn_blocking(|| Binaries::ensure_quietly(&[Part::Helm])).await??;
            let helm = Helm::at(binaries.path(Part::Helm), tools.kubeconfig.clone())?;
            let chart = helm.chart("vsphere", &objects)?;
            helm.run(&["--namespace", OLD, "install", "vsphere", &chart]).await?;
        } else {
            let file = dir.join("former.json");
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            workdir::write_private(&file, list.to_string()).with_context(|| format!("file {}", file.display()))?;
            let path = file.to_str().context("the folder's name is not text")?;
            tools.run("kubectl", &["apply", "--server-side", "-f", path])?;
            fs::remove_file(&file)?;
        }
        for object in objects
            .iter()
            .filter(|object| matches!(object["kind"].as_str(), Some("Deployment" | "DaemonSet")))
        {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let workload = format!("{}/{}", text("/kind"), text("/metadata/name"));
            let namespace = text("/metadata/namespace");
            tools.run("kubectl", &["rollout", "status", &workload, "-n", namespace, "--timeout=5m"])?;
        }
        Ok(())
    }

    /// What an administrator types, with what it prints.
    pub(super) fn taken_over(self, tools: &Tools, dir: &Path, screen: &mut Screen) -> Result<()> {
        let file = dir.join("vdo.yaml");
        fs::write(&file, CONFIG).with_context(|| format!("file {}", file.display()))?;
        let file = file.to_str().context("the folder's name is not text")?;
        let mut type_in = |program: &str, args: &[&str]| typed(screen, tools, &line(program, args), &[0, TO_DO]);
        let before = pods(tools)?;
        type_in("vdoctl", &["adopt"])?;
        type_in("kubectl", &["apply", "-f", file])?;
        if self == Self::Rancher {
            type_in("vdoctl", &["adopt", "--move", "--yes"])?;
        }
        type_in("vdoctl", &["wait", "--timeout", "5m"])?;
        let kept = pods(tools)?.iter().filter(|pod| before.contains(pod)).count();
        screen.text(format!("\n{kept} of {} pods of the drivers were not restarted.", before.len()));
        ensure!(
            self == Self::Rancher || kept == before.len(),
            "an adoption keeps every pod, and {} are gone",
            before.len().saturating_sub(kept)
        );
        Ok(())
    }
}

/// The pods of the drivers by their UID.
fn pods(tools: &Tools) -> Result<Vec<String>> {
    let text = tools.run("kubectl", &["get", "pods", "--all-namespaces", "-o", "json"])?;
    let all: Value = serde_json::from_str(&text)?;
    let items = all["items"].as_array().into_iter().flatten();
    let of_drivers = items.filter(|pod| pod["metadata"]["namespace"] != NAMESPACE && pod["metadata"]["ownerReferences"].is_array());
    Ok(of_drivers.map(|pod| pod["metadata"]["uid"].to_string()).collect())
}

fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).map_err(|error| anyhow!("manifest: {error}"))?;
    Ok(all.into_iter().filter(|object| !object.is_null()).collect())
}
