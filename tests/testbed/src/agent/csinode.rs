//! What node-driver-registrar and the kubelet do: tell the cluster on which nodes the CSI driver runs.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver, CSINodeSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

use super::view::View;
use crate::nodes::UNINITIALIZED;

const DRIVER: &str = "csi.vsphere.vmware.com";

/// Makes the `CSINode` objects say what the running pods mean.
pub(super) async fn reconcile(client: &Client, view: &View) {
    let wanted: BTreeSet<&str> = view.running_pods().filter(|pod| is_node_plugin(pod)).filter_map(node_of).collect();
    for node in &wanted {
        if !view.csi_nodes().get(*node).is_some_and(has_driver) {
            note(node, add(client, node).await);
        }
    }
    for (node, object) in view.csi_nodes() {
        if has_driver(object) && !wanted.contains(node.as_str()) {
            note(node, remove(client, node).await);
        }
    }
}

fn note(node: &str, outcome: Result<()>) {
    if let Err(error) = outcome {
        // The next look at the cluster tries again.
        tracing::debug!("CSINode {node}: {error:#}");
    }
}

fn is_node_plugin(pod: &Pod) -> bool {
    let labelled = pod.labels().get("app").is_some_and(|app| app == "vsphere-csi-node");
    let contains = |pod: &Pod| {
        pod.spec
            .iter()
            .flat_map(|spec| &spec.containers)
            .any(|container| container.name == "vsphere-csi-node")
    };
    let daemon = pod
        .owner_references()
        .iter()
        .any(|owner| owner.kind == "DaemonSet" && owner.name.starts_with("vsphere-csi-node"));
    daemon && (labelled || contains(pod))
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn has_driver(object: &CSINode) -> bool {
    object.spec.drivers.iter().any(|driver| driver.name == DRIVER)
}

async fn add(client: &Client, name: &str) -> Result<()> {
    let node: Node = Api::all(client.clone()).get(name).await?;
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    if taints.iter().any(|taint| taint.key == UNINITIALIZED) {
        // The plugin reads the UUID of its machine from the firmware; here it is known from the provider ID alone. The next look tries again.
        return Ok(());
    }
    let provider_id = spec.and_then(|spec| spec.provider_id.as_deref());
    let node_id = provider_id.and_then(|id| id.strip_prefix("vsphere://")).unwrap_or(name).to_owned();
    let driver = CSINodeDriver {
        name: DRIVER.into(),
        node_id,
        ..CSINodeDriver::default()
    };
    let api: Api<CSINode> = Api::all(client.clone());
    match api.get_opt(name).await? {
        Some(mut object) if !has_driver(&object) => {
            object.spec.drivers.push(driver);
            api.replace(name, &PostParams::default(), &object).await?;
        }
        Some(_) => {}
        None => {
            let mut object = CSINode {
                spec: CSINodeSpec { drivers: vec![driver] },
                ..CSINode::default()
            };
            object.metadata.name = Some(name.to_owned());
            let uid = node.uid().context("a node without a uid")?;
            object.metadata.owner_references = Some(vec![OwnerReference {
                api_version: "v1".into(),
                kind: "Node".into(),
                name: name.into(),
                uid,
                ..Default::default()
            }]);
            api.create(&PostParams::default(), &object).await?;
        }
    }
    Ok(())
}

async fn remove(client: &Client, name: &str) -> Result<()> {
    let api: Api<CSINode> = Api::all(client.clone());
    if let Some(mut object) = api.get_opt(name).await?.filter(has_driver) {
        object.spec.drivers.retain(|driver| driver.name != DRIVER);
        api.replace(name, &PostParams::default(), &object).await?;
    }
    Ok(())
}
