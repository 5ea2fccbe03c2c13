// SPDX-License-Identifier: Apache-2.0
//! Nodes without a pod network: the network plugin waits for initialised nodes, and what initialises them comes with the operator.

use super::{Deploy, err, out};
use crate::common::{Bed, NODES, NS, PATIENCE};
use crate::fixture::IMAGES;
use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vdo_testbed::{NO_NETWORK, NO_NETWORK_SAYS, Probe, UNINITIALIZED, until};

/// What the kubelet says of every node.
async fn network(bed: &Bed, ready: bool) -> Result<()> {
    // Without the annotation the simulated kubelet reports that it is ready.
    let mark = (!ready).then_some("");
    let condition = json!({"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": NO_NETWORK_SAYS});
    let change = json!({"status": {"conditions": [condition]}});
    for (name, _) in NODES {
        bed.merge("v1", "Node", "", name, json!({"metadata": {"annotations": {NO_NETWORK: mark}}}))
            .await?;
        if !ready {
            let nodes = bed.api("v1", "Node", "");
            nodes
                .patch_status(name, &PatchParams::default(), &Patch::Strategic(&change))
                .await?;
        }
    }
    until("the taints of the nodes to follow", PATIENCE, async || {
        let nodes = bed.list("v1", "Node", "").await?;
        let tainted = |node: &Value| node["spec"]["taints"].to_string().contains("node.kubernetes.io/not-ready");
        Ok(Probe::when(nodes.iter().all(|node| tainted(node) != ready), "not all of them do"))
    })
    .await
}

async fn operator(bed: &Bed) -> Result<Value> {
    bed.get("apps/v1", "Deployment", NS, "vdo-operator").await
}

#[test]
#[ignore = "long"]
fn deploy_to_nodes_without_pod_network_uses_that_of_the_node_and_later_leaves_it() -> Result<()> {
    IMAGES.run(async |bed| {
        network(bed, false).await?;
        // As it is shipped, it waits for the network, and its pod reports that.
        bed.deploy().await?;
        until("the operator's pod to wait for the network", PATIENCE, async || {
            let waiting = bed.operator_pod().await?["status"]["containerStatuses"][0]["state"]["waiting"].clone();
            let reported = waiting["message"].to_string();
            Ok(Probe::when(reported.contains("network is not ready"), reported))
        })
        .await?;
        bed.apply_samples().await?;
        let (code, text, _) = bed.vdoctl(&["status"])?;
        ensure!(
            code != 0 && text.contains("has no pod network (KubeletNotReady: ") && text.contains("vdoctl deploy lets"),
            "{code} {text}"
        );

        let deploy = Deploy::to(bed)?;
        let mut command = deploy.command(bed, &["--timeout", "4m"]);
        let running = tokio::task::spawn_blocking(move || command.output());
        let initialised = async || {
            let nodes = bed.list("v1", "Node", "").await?;
            let waits = |node: &&Value| node["spec"]["taints"].to_string().contains(UNINITIALIZED);
            anyhow::Ok(nodes.iter().filter(waits).count())
        };
        until("the nodes to be initialised without a pod network", PATIENCE, async || {
            let left = initialised().await?;
            Ok(Probe::when(left == 0, format!("{left} are not")))
        })
        .await?;
        let pod = operator(bed).await?["spec"]["template"]["spec"].clone();
        ensure!(pod["hostNetwork"] == true, "{pod}");
        // Now the plugin begins its work.
        network(bed, true).await?;
        let done = running.await??;
        let line = "because no control-plane node has a pod network; the operator needs kube-proxy to reach the API server";
        ensure!(done.status.success() && out(&done).contains(line), "{}{}", out(&done), err(&done));

        let again = deploy.run(bed, &["--timeout", "4m"])?;
        ensure!(again.status.success(), "{}{}", out(&again), err(&again));
        let pod = operator(bed).await?["spec"]["template"]["spec"].clone();
        ensure!(pod["hostNetwork"].is_null(), "{pod}");
        let namespace = bed.get("v1", "Namespace", "", NS).await?;
        ensure!(
            namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted",
            "{namespace}"
        );
        bed.until_operator_pod_is_ready(0).await?;

        // An API server says where it is; the one of the test bed does so on request, and never of a loopback address.
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "endpoints": [{"addresses": ["192.0.2.7"]}], "ports": [{"name": "https", "port": 6443}]});
        bed.apply(&slice).await?;
        let tried = deploy.run(bed, &["--host-network", "--dry-run", "server"])?;
        let line = "will run in the host network of its node; the operator will reach the API server at 192.0.2.7 port 6443";
        ensure!(
            tried.status.success() && out(&tried).contains(line),
            "{}{}",
            out(&tried),
            err(&tried)
        );
        ensure!(
            out(&tried).contains("Deployment vmware-system-vdo/vdo-operator would be changed"),
            "{}",
            out(&tried)
        );
        Ok(())
    })
}
