//! The operator in a large cluster.

use crate::bed::{Bed, NS, OPERATOR, PATIENCE};
use crate::process;
use crate::report::{Report, mebibytes, median};
use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;
use vdo_testbed::{Probe, until};

const NODES: usize = 5_000;
/// Requests of the bed at the same time.
const ASIDE: usize = 16;

/// Adds nodes that the drivers are registered on already, and looks at the operator's memory. They take no pods.
pub async fn measure(bed: &Bed, report: &mut Report) -> Result<()> {
    let before = bed.list("v1", "Node", "").await?.len();
    let mark = bed.cluster.audit().mark().await?;
    let nodes = bed.api("v1", "Node", "");
    let csi_nodes = bed.api("storage.k8s.io/v1", "CSINode", "");
    stream::iter(0..NODES)
        .map(|number| {
            let (nodes, csi_nodes) = (nodes.clone(), csi_nodes.clone());
            async move {
                let name = format!("large-{number}");
                let node = json!({"apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "a",
                        "topology.kubernetes.io/region": "b", "node.kubernetes.io/instance-type": "vsphere-vm.cpu-4.mem-8gb.os-unknown"}},
                    "spec": {"providerID": format!("vsphere://4200-{number}"), "podCIDR": format!("10.{}.{}.0/24", number / 256, number % 256)}});
                nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
                let status = json!({"status": {
                    "addresses": [{"type": "InternalIP", "address": format!("10.9.{}.{}", number / 256, number % 256)}],
                    "conditions": (["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"].map(|kind| json!({"type": kind,
                        "status": if kind == "Ready" { "True" } else { "False" }, "reason": "Kubelet", "message": "as it should be"}))),
                    "nodeInfo": {"systemUUID": format!("4200-{number}"), "machineID": "m", "bootID": "b", "kernelVersion": "6.1",
                        "osImage": "Linux", "containerRuntimeVersion": "containerd://2", "kubeletVersion": "v1.34.4",
                        "kubeProxyVersion": "v1.34.4", "operatingSystem": "linux", "architecture": "amd64"}}});
                nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
                let csi = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
                    "spec": {"drivers": [{"name": "csi.vsphere.vmware.com", "nodeID": name, "topologyKeys": []}]}});
                csi_nodes.create(&PostParams::default(), &serde_json::from_value(csi)?).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(ASIDE)
        .try_collect::<Vec<()>>()
        .await?;
    until("the operator to have seen all nodes", PATIENCE, async || {
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let seen = &config["status"]["nodes"]["csiRegistered"];
        Ok(Probe::when(*seen == before + NODES, seen))
    })
    .await?;
    let group = bed.operator.as_ref().context("no operator")?.group();
    let operator = process::find(group, "vdo-operator")?;
    let mut samples = Vec::new();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        samples.push(process::memory(&operator)?);
    }
    report.section(&format!("With {NODES} more nodes"));
    report.row(
        "resident memory",
        mebibytes(median(samples.iter().map(|m| m.resident))),
        "aim 48 MiB",
        format!(
            "{} heap and stacks; peak {}; the nodes take no pods",
            mebibytes(median(samples.iter().map(|m| m.own))),
            mebibytes(samples.iter().map(|m| m.peak).fold(0.0, f64::max))
        ),
    );
    let asked = bed.cluster.audit().since(mark).await?.of(OPERATOR).only(|e| e.resource != "leases");
    report.row(
        "requests while they joined",
        asked.len(),
        "",
        format!("{} of them writes", asked.clone().writes().len()),
    );
    Ok(())
}
