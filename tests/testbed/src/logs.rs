// SPDX-License-Identifier: Apache-2.0
//! What containers say: kwok answers for every node's kubelet, and reads it from two files.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::cluster::Cluster;

/// The container that is there, and the one before it.
const FILES: [&str; 2] = ["container.log", "container-previous.log"];

/// Writes where kwok finds the logs of one cluster: every container says the same.
pub(crate) fn write(folder: &Path) -> Result<PathBuf> {
    let [current, previous] = FILES.map(|name| folder.join(name));
    let config = json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterLogs",
        "metadata": { "name": "every-container" },
        "spec": { "logs": [{ "logsFile": current, "previousLogsFile": previous }] },
    });
    let path = folder.join("kwok-logs.yaml");
    std::fs::write(&path, config.to_string()).with_context(|| format!("file {}", path.display()))?;
    Ok(path)
}

impl Cluster {
    /// What every container of a node with a [kubelet in reach](Self::bring_kubelet_into_reach) says from now on, and what the one
    /// before it said. Until then no log can be read.
    pub fn containers_say(&self, current: &str, previous: &str) -> Result<()> {
        for (name, text) in FILES.into_iter().zip([current, previous]) {
            // As container runtimes write them.
            let line = |line: &str| format!("2026-01-01T00:00:00.000000000Z stderr F {line}\n");
            std::fs::write(self.dir().join(name), text.lines().map(line).collect::<String>())?;
        }
        Ok(())
    }

    /// A further line of every container, after those that it has said.
    pub fn containers_also_say(&self, line: &str) -> Result<()> {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.dir().join(FILES[0]))?;
        Ok(writeln!(file, "2026-01-01T00:00:01.000000000Z stderr F {line}")?)
    }

    /// Gives a node the address of this machine, where kwok answers as its kubelet. The cloud provider has given it that of its
    /// virtual machine, where no one is, and will do so again within minutes.
    pub async fn bring_kubelet_into_reach(&self, node: &str) -> Result<()> {
        let api: Api<Node> = Api::all(self.client());
        let status = json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }] } });
        // Addresses are a list that a merge of Kubernetes' own kind would only add to.
        api.patch_status(node, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }
}
