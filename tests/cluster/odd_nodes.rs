// SPDX-License-Identifier: Apache-2.0
//! Nodes that are not alive, that the drivers are not meant for, or that are of another provider: they are named, and nothing waits for them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

pub mod drawn;

use crate::common::{Bed, GUEST, NS, PATIENCE, condition};
use crate::fixture::{INSTALLED, OPERATOR};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vdo_testbed::{Probe, UNINITIALIZED, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

async fn config(bed: &Bed) -> Result<Value> {
    bed.get(VDO, "VDOConfig", NS, "vdo").await
}

/// A node that kwok does not play: no pod ever starts there.
async fn join(bed: &Bed, name: &str, spec: Value) -> Result<()> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "spec": spec,
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}}});
    bed.apply(&node).await
}

async fn says_ready(bed: &Bed, node: &str, status: &str) -> Result<()> {
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let change = json!({"status": {"capacity": room, "allocatable": room,
        "conditions": [{"type": "Ready", "status": status, "reason": "TestBed", "message": "PLEG"}]}});
    bed.api("v1", "Node", "")
        .patch_status(node, &PatchParams::default(), &Patch::Strategic(&change))
        .await?;
    Ok(())
}

/// A node with a machine joins, and is not ready.
async fn dead(bed: &Bed) -> Result<&'static str> {
    let (name, _) = GUEST;
    join(
        bed,
        name,
        json!({"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]}),
    )
    .await?;
    says_ready(bed, name, "False").await?;
    Ok(name)
}

/// Deletes a node, and waits until the status does not name it any more.
async fn leave(bed: &Bed, node: &str) -> Result<()> {
    bed.delete("v1", "Node", "", node).await?;
    until("no node to be counted apart", PATIENCE, async || {
        let config = config(bed).await?;
        let apart = &config["status"]["nodes"]["apart"];
        Ok(Probe::when(
            apart.is_null() && ready(&config),
            json!([apart, condition(&config, "Ready")]),
        ))
    })
    .await
}

/// Whether Ready is True for the newest generation.
fn ready(config: &Value) -> bool {
    let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
    current && condition(config, "Ready")["status"] == "True"
}

fn driver<'a>(config: &'a Value, name: &str) -> &'a Value {
    let drivers = config["status"]["drivers"].as_array().into_iter().flatten();
    drivers.into_iter().find(|driver| driver["name"] == name).unwrap_or(&Value::Null)
}

/// Waits until the drivers are ready, a node is counted apart with this reason, and `also` holds.
async fn until_apart(bed: &Bed, node: &str, because: &str, also: impl Fn(&Value) -> bool) -> Result<Value> {
    until(&format!("{node} to be counted apart, and Ready"), PATIENCE, async || {
        let config = config(bed).await?;
        let apart = config["status"]["nodes"]["apart"].as_array().into_iter().flatten();
        let named = apart.into_iter().any(|one| one["name"] == node && one["because"] == because);
        Ok(if named && ready(&config) && also(&config) {
            Probe::Ready(config)
        } else {
            Probe::not_yet(json!([
                config["status"]["nodes"],
                config["status"]["drivers"],
                condition(&config, "Ready"),
                condition(&config, "StorageReady")
            ]))
        })
    })
    .await
}

fn says(config: &Value, kind: &str, part: &str) -> Result<()> {
    let found = condition(config, kind);
    ensure!(found["message"].as_str().unwrap_or_default().contains(part), "{kind}: {found}");
    Ok(())
}

/// The drivers are installed, in time, where one node is not ready; the node gets them when it is back.
#[test]
#[ignore = "long"]
fn install_beside_a_node_that_is_not_ready_is_ready_and_names_it() -> Result<()> {
    OPERATOR.run(async |bed| {
        let dead = dead(bed).await?;
        bed.apply_samples().await?;
        bed.apply(&bed.config(json!({"progressDeadline": "20s", "cloudProvider": {}, "storageProvider": {}})))
            .await?;
        let found = until_apart(bed, dead, "is not ready", |config| driver(config, "vsphere-csi")["nodes"] == "4/4").await?;
        says(&found, "StorageReady", &format!("; node {dead} is not ready and is set up later"))?;
        let (code, shown, err) = bed.vdoctl(&["status"])?;
        ensure!(
            code == 0 && shown.contains("4/4") && shown.contains(&format!("{dead} is not ready")),
            "{shown}{err}"
        );
        leave(bed, dead).await
    })
}

/// A change of a driver, a cordoned node and one that is not ready, which uses up `maxUnavailable`: the change is not rolled back, and the
/// driver is ready.
#[test]
#[ignore = "long"]
fn upgrade_beside_nodes_that_are_not_alive_is_not_rolled_back() -> Result<()> {
    INSTALLED.run(async |bed| {
        let dead = dead(bed).await?;
        let before = until_apart(bed, dead, "is not ready", |_| true).await?;
        let version = driver(&before, "vsphere-csi")["version"].clone();
        ensure!(version != "3.7.3", "the test has no other version");
        bed.merge("v1", "Node", "", "w-1", json!({"spec": {"unschedulable": true}})).await?;
        bed.apply(&bed.config(json!({"progressDeadline": "1m", "cloudProvider": {}, "storageProvider": {"version": "3.7.3"}})))
            .await?;
        let found = until_apart(bed, "w-1", "is cordoned", |config| {
            driver(config, "vsphere-csi")["running"] == "3.7.3"
        })
        .await?;
        says(&found, "StorageReady", &format!("{dead} is not ready and is set up later"))?;
        let revisions = crate::rollback::history(bed)?;
        let (_, newest, outcome) = revisions.last().context("a revision")?;
        ensure!((newest.as_str(), outcome.as_str()) == ("3.7.3", "Deployed"), "{revisions:?}");
        ensure!(condition(&found, "RolledBack").is_null(), "{}", found["status"]["conditions"]);
        bed.merge("v1", "Node", "", "w-1", json!({"spec": {"unschedulable": null}})).await?;
        bed.apply(&bed.config(json!({}))).await?;
        leave(bed, dead).await
    })
}

/// The node plugin on some nodes: the others are not waited for.
#[test]
#[ignore = "long"]
fn node_plugin_on_some_nodes_is_ready_there() -> Result<()> {
    const LABEL: &str = "storage";
    INSTALLED.run(async |bed| {
        for node in ["w-1", "w-2"] {
            bed.merge("v1", "Node", "", node, json!({"metadata": {"labels": {LABEL: "vsphere"}}}))
                .await?;
        }
        let values = json!({"node": {"nodeSelector": {LABEL: "vsphere"}}});
        bed.apply(&bed.config(json!({"progressDeadline": "1m", "cloudProvider": {}, "storageProvider": {"values": values}})))
            .await?;
        until("CSI to be ready on two nodes", PATIENCE, async || {
            let config = config(bed).await?;
            let csi = driver(&config, "vsphere-csi");
            Ok(Probe::when(
                ready(&config) && csi["nodes"] == "2/2",
                json!([csi, condition(&config, "Ready")]),
            ))
        })
        .await?;
        ensure!(condition(&config(bed).await?, "RolledBack").is_null(), "it was rolled back");
        // No node bears the label any more: that is a fault with its reason.
        for node in ["w-1", "w-2"] {
            bed.merge("v1", "Node", "", node, json!({"metadata": {"labels": {LABEL: null}}}))
                .await?;
        }
        until("the reason NoEligibleNode", PATIENCE, async || {
            let config = config(bed).await?;
            let found = condition(&config, "StorageReady");
            let fault = found["reason"] == "NoEligibleNode" && config["status"]["health"] == "Degraded";
            Ok(Probe::when(fault, json!([found, config["status"]["health"]])))
        })
        .await?;
        bed.apply(&bed.config(json!({}))).await?;
        until("Ready", PATIENCE, async || {
            let config = config(bed).await?;
            let all = driver(&config, "vsphere-csi")["nodes"] == "4/4";
            Ok(Probe::when(ready(&config) && all, condition(&config, "Ready")))
        })
        .await
    })
}

/// A node of another provider: the cloud provider would delete it, so nothing is installed before a decision, and afterwards the node stays
/// even when it is not ready.
#[test]
#[ignore = "long"]
fn node_of_another_provider_holds_the_first_cloud_provider_and_survives_it() -> Result<()> {
    OPERATOR.run(async |bed| {
        join(bed, "m-1", json!({"providerID": "metal3://ns/host/m-1"})).await?;
        says_ready(bed, "m-1", "True").await?;
        bed.apply_samples().await?;
        bed.until_reason("Ready", "NodesOfOtherProvider").await?;
        let found = config(bed).await?;
        says(&found, "Ready", "m-1 (metal3://)")?;
        says(&found, "Ready", "vdoctl configure drivers --set cloudProvider.keepNodes=true")?;
        ensure!(found["status"]["nodes"]["ofOtherProviders"] == 1, "{}", found["status"]["nodes"]);
        ensure!(bed.owned().await?.is_empty(), "something was written before the decision");
        let (code, shown, err) = bed.vdoctl(&["status"])?;
        ensure!(
            code == 1 && shown.contains("NodesOfOtherProvider") && !shown.contains("Nothing to do"),
            "{shown}{err}"
        );

        let (code, shown, err) = bed.vdoctl(&["configure", "drivers", "--set", "cloudProvider.keepNodes=true"])?;
        ensure!(code == 0, "{shown}{err}");
        let found = until_apart(bed, "m-1", "belongs to another provider (metal3://)", |config| {
            driver(config, "vsphere-cpi")["nodes"] == "4/4" && driver(config, "vsphere-csi")["nodes"] == "4/4"
        })
        .await?;
        says(
            &found,
            "NodesInitialized",
            "4 of 4 nodes are initialised; node m-1 belongs to another provider (metal3://)",
        )?;

        says_ready(bed, "m-1", "False").await?;
        until("the cloud provider to have looked for m-1", PATIENCE, async || {
            let logs = bed.agent.logs();
            Ok(Probe::when(logs.contains("error checking if node m-1 exists"), logs))
        })
        .await?;
        let node = bed.get("v1", "Node", "", "m-1").await?;
        ensure!(
            node["metadata"]["deletionTimestamp"].is_null() && node["metadata"]["name"] == "m-1",
            "{node}"
        );
        until_apart(bed, "m-1", "belongs to another provider (metal3://)", |_| true).await?;
        leave(bed, "m-1").await
    })
}
