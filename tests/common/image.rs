// SPDX-License-Identifier: Apache-2.0
//! The operator as its users get it: the image that `make operator-image` packs, deployed by deploy/, run by the node agent.

use super::{Bed, NODES, NS};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use vdo_testbed::{ClusterOptions, ContainerRun, PATIENCE, Probe, VcenterOptions, ensure_fresh, until};

/// The beginnings of references that the agent decides about: the operator's, and those of a registry that mirrors it.
pub const REGISTRIES: [&str; 2] = ["ghcr.io/vdo-project/", "mirror.test/"];

/// The reference in deploy/operator.yaml.
pub fn reference() -> Result<String> {
    let deployment = manifest("operator.yaml")?;
    let image = deployment
        .iter()
        .find_map(|one| one.pointer("/spec/template/spec/containers/0/image")?.as_str());
    Ok(image.context("deploy/operator.yaml names no image")?.to_owned())
}

/// The image layout, if it was made from the sources as they are.
pub fn layout() -> Result<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_vdo-operator"));
    let target = program.ancestors().nth(2).context("the target folder")?;
    let layout = target.join("testbed-image");
    ensure_fresh(&layout.join("index.json"), &target.join("testbed-image.d"), "make operator-image")?;
    Ok(layout)
}

fn manifest(file: &str) -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("manifest {}", path.display()))?;
    Ok(vdo_api::yaml::load_all(&text)?)
}

/// Everything that `kubectl apply -k deploy` applies.
pub fn deployment() -> Result<Vec<Value>> {
    let kustomization = manifest("kustomization.yaml")?;
    let files = kustomization[0]["resources"].as_array().context("resources")?;
    let files = files.iter().filter_map(Value::as_str);
    Ok(files.map(manifest).collect::<Result<Vec<_>>>()?.concat())
}

impl Bed {
    /// A cluster in which the agent runs pods of the operator's image. The image is there; nothing of deploy/ is.
    pub async fn start_for_images() -> Result<Self> {
        let layout = layout()?;
        let cluster = ClusterOptions {
            images: REGISTRIES.map(Into::into).into(),
            ..ClusterOptions::default()
        };
        let bed = Self::start_bare(cluster, VcenterOptions::with_vms(NODES)).await?;
        bed.agent.serve_image(&reference()?, &layout).await?;
        Ok(bed)
    }

    /// Applies deploy/namespace.yaml and deploy/ as `kubectl apply --server-side` does.
    pub async fn deploy(&self) -> Result<()> {
        for object in [manifest("namespace.yaml")?, deployment()?].concat() {
            self.apply(&object).await?;
        }
        Ok(())
    }

    /// The operator's containers; none before its pod is on a node.
    pub fn operator_containers(&self) -> Vec<ContainerRun> {
        let mut all = self.agent.containers();
        all.retain(|run| run.namespace == NS);
        all
    }

    /// The operator's one pod as the API server has it; null when there is none.
    pub async fn operator_pod(&self) -> Result<Value> {
        let pods = self.list("v1", "Pod", "app.kubernetes.io/name=vdo-operator").await?;
        Ok(pods.into_iter().next().unwrap_or_default())
    }

    /// Waits until the operator's pod is ready and its container was restarted this often.
    pub async fn until_operator_pod_is_ready(&self, restarts: i64) -> Result<(Value, ContainerRun)> {
        until("the operator's pod to be ready", PATIENCE, async || {
            let pod = self.operator_pod().await?;
            let status = &pod["status"]["containerStatuses"][0];
            let ready = super::condition(&pod, "Ready")["status"] == "True" && status["restartCount"] == restarts;
            let mut runs = self.operator_containers().into_iter();
            let run = runs.find(|run| pod["metadata"]["name"] == run.pod.as_str() && run.pid.is_some());
            if status["restartCount"].as_i64().is_some_and(|count| count > restarts) {
                bail!("the operator ended and was started again:\n{}\n{status}", self.agent.logs());
            }
            Ok(match run.filter(|_| ready) {
                Some(run) => Probe::Ready((pod, run)),
                None => Probe::not_yet(format!("{}\n{status}", self.agent.logs())),
            })
        })
        .await
    }
}
