// SPDX-License-Identifier: Apache-2.0
//! Topology is switched on in a cluster that runs: nothing is changed for categories that the vCenter does not have, the node plugins
//! register after the controller, and CSINodes are held against the categories.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NODES, PATIENCE, condition};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const CSI: &str = "vmware-system-csi";
/// Of categories that no other test makes: the simulator keeps a category for ever.
const KEY: &str = "topology.csi.vmware.com/rack-zone";

fn spec() -> Value {
    json!({"cloudProvider": {"topology": {"zone": "rack-zone", "region": "rack-region"}}, "storageProvider": {"topologyCategories": ["rack-region", "rack-zone"]}})
}

/// The topology keys of the CSI driver on each node.
async fn registered(bed: &Bed) -> Result<Vec<Value>> {
    let mut keys = Vec::new();
    for (node, _) in NODES {
        let object = bed.get("storage.k8s.io/v1", "CSINode", "", node).await?;
        keys.push(object["spec"]["drivers"][0]["topologyKeys"].clone());
    }
    Ok(keys)
}

/// The versions of what would change, which a write changes; of workloads the generation, because their status changes by itself.
pub async fn versions(bed: &Bed) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (api_version, kind, namespace, name, field) in [
        ("v1", "Secret", CSI, "vsphere-config-secret", "resourceVersion"),
        ("v1", "ConfigMap", "kube-system", "vsphere-cloud-config", "resourceVersion"),
        ("apps/v1", "Deployment", CSI, "vsphere-csi-controller", "generation"),
        ("apps/v1", "DaemonSet", CSI, "vsphere-csi-node", "generation"),
        (
            "apps/v1",
            "DaemonSet",
            "kube-system",
            "vsphere-cloud-controller-manager",
            "generation",
        ),
    ] {
        let object = bed.get(api_version, kind, namespace, name).await?;
        all.push(json!([kind, name, object["metadata"][field]]));
    }
    Ok(all)
}

async fn uids(bed: &Bed, label: &str) -> Result<Vec<String>> {
    let pods = bed.list("v1", "Pod", label).await?;
    let mut all: Vec<String> = pods
        .iter()
        .filter_map(|pod| Some(pod["metadata"]["uid"].as_str()?.to_owned()))
        .collect();
    all.sort();
    Ok(all)
}

#[test]
#[ignore = "long"]
fn topology_is_switched_on_when_the_vcenter_has_its_categories_and_plugins_register_after_the_controller() -> Result<()> {
    INSTALLED.run(async |bed| {
        let bed = &*bed;
        let before = versions(bed).await?;
        let plugins = uids(bed, "app=vsphere-csi-node").await?;

        // Without the categories in the vCenter.
        bed.apply(&bed.config(spec())).await?;
        let found = bed.until_reason("Ready", "TopologyCategoryNotFound").await?;
        let message = found["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains("vSphere connection vc1") && message.contains("rack-zone"),
            "{message}"
        );
        ensure!(versions(bed).await? == before, "an object was changed: {message}");
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", crate::common::NS, "vdo").await?;
        for kind in ["CloudProviderReady", "StorageReady"] {
            ensure!(
                condition(&config, kind)["message"]
                    .as_str()
                    .is_some_and(|m| m.contains("pods are ready")),
                "{}",
                config["status"]
            );
        }

        // With them.
        let log = std::fs::read_to_string(bed.operator_log())?.len();
        for (category, tag) in [("rack-region", "region-1"), ("rack-zone", "zone-a")] {
            bed.vcenter.tag(category, tag, "Datacenter", "DC0").await?;
        }
        let mark = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", crate::common::NS, "vc1", mark)
            .await?;
        bed.until_ready().await.context("with the categories")?;
        let keys = registered(bed).await?;
        ensure!(
            keys.iter()
                .all(|keys| keys.as_array().is_some_and(|all| all.contains(&json!(KEY)) && all.len() == 2)),
            "ready, and registered with {keys:?}"
        );
        let now = uids(bed, "app=vsphere-csi-node").await?;
        ensure!(
            !now.iter().any(|uid| plugins.contains(uid)),
            "a node plugin has not registered once more"
        );
        let text = std::fs::read_to_string(bed.operator_log())?;
        let lines: Vec<&str> = text[log..].lines().collect();
        let at = |words: &[&str]| lines.iter().position(|line| words.iter().all(|word| line.contains(word)));
        let controller = at(&["applied", "Deployment vmware-system-csi/vsphere-csi-controller"]).context("the controller")?;
        let waits =
            at(&["gets the new topology categories after the controller"]).context("the node plugins do not wait for the controller")?;
        let plugin = at(&["applied", "DaemonSet vmware-system-csi/vsphere-csi-node\""]).context("the node plugin")?;
        ensure!(controller < plugin && waits < plugin, "{controller} {waits} {plugin}");

        // A registration without topology is named, and Ready waits for it.
        let driver = json!([{"name": "csi.vsphere.vmware.com", "nodeID": "x"}]);
        let object = bed.get("storage.k8s.io/v1", "CSINode", "", "w-1").await?;
        let mut old = object.clone();
        old["spec"]["drivers"] = driver;
        let by = object["metadata"]["annotations"].clone();
        bed.delete("storage.k8s.io/v1", "CSINode", "", "w-1").await?;
        let fresh = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": old["spec"],
            "metadata": {"name": "w-1", "annotations": by}});
        bed.apply(&fresh).await?;
        until("the node that is registered without topology to be named", PATIENCE, async || {
            let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", crate::common::NS, "vdo").await?;
            let waiting = config["status"]["nodes"]["waiting"].to_string();
            Ok(Probe::when(
                waiting.contains("w-1") && waiting.contains("with topology"),
                json!([
                    waiting,
                    condition(&config, "StorageReady"),
                    bed.get("storage.k8s.io/v1", "CSINode", "", "w-1").await?["spec"]
                ]),
            ))
        })
        .await?;
        bed.delete("storage.k8s.io/v1", "CSINode", "", "w-1").await?;
        bed.until_ready().await?;

        // And off.
        bed.apply(&bed.config(json!({}))).await?;
        until("the nodes to be registered without topology", PATIENCE, async || {
            let keys = registered(bed).await?;
            Ok(Probe::when(keys.iter().all(Value::is_null), json!(keys)))
        })
        .await?;
        bed.until_ready().await?;
        for (category, tag) in [("rack-region", "region-1"), ("rack-zone", "zone-a")] {
            bed.vcenter.untag(category, tag, "Datacenter", "DC0").await?;
        }
        Ok(())
    })
}
