// SPDX-License-Identifier: Apache-2.0
//! What node-driver-registrar and the kubelet do: tell the cluster on which nodes the CSI driver runs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver, CSINodeSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

use super::view::View;
use crate::nodes::UNINITIALIZED;

const DRIVER: &str = "csi.vsphere.vmware.com";
/// The pod that has registered the driver: a new one registers it again.
const REGISTERED_BY: &str = "test-bed/registered-by";
/// The built-in drivers whose volumes a kubelet hands to CSI.
const MIGRATED: &str = "storage.alpha.kubernetes.io/migrated-plugins";
const BUILT_IN: &str = "kubernetes.io/aws-ebs,kubernetes.io/vsphere-volume";

/// Makes the `CSINode` objects say what the running pods mean.
pub(super) async fn reconcile(client: &Client, view: &View) {
    let plugins = view.running_pods().filter(|pod| is_node_plugin(pod));
    let wanted: BTreeMap<&str, &Pod> = plugins.filter_map(|pod| Some((node_of(pod)?, pod))).collect();
    for (node, pod) in &wanted {
        if !view.csi_nodes().get(*node).is_some_and(has_driver) {
            note(node, add(client, node, pod).await);
        }
    }
    for (node, object) in view.csi_nodes() {
        // Its entry cannot be changed, so that of another pod goes first.
        if has_driver(object) && !wanted.get(node.as_str()).is_some_and(|pod| is_of(object, pod)) {
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

/// Whether the driver was registered by this pod. What a test has written itself is left alone.
fn is_of(object: &CSINode, pod: &Pod) -> bool {
    let by = object.annotations().get(REGISTERED_BY);
    by.is_none_or(|by| pod.metadata.uid.as_ref() == Some(by))
}

/// The keys with which the driver registers: one for each category in its configuration, as the syncer answers a node plugin that starts.
async fn topology_keys(client: &Client, pod: &Pod) -> Result<Option<Vec<String>>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), pod.namespace().as_deref().unwrap_or_default());
    let secret = secrets.get_opt("vsphere-config-secret").await?;
    let file = secret.and_then(|secret| secret.data?.remove("csi-vsphere.conf"));
    let file = String::from_utf8(file.map(|file| file.0).unwrap_or_default())?;
    let line = file.lines().find_map(|line| line.trim().strip_prefix("topology-categories"));
    let categories = line.map(|line| line.trim_matches([' ', '=', '"']).split(','));
    Ok(categories.map(|all| all.map(|category| format!("topology.csi.vmware.com/{}", category.trim())).collect()))
}

async fn add(client: &Client, name: &str, pod: &Pod) -> Result<()> {
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
        topology_keys: topology_keys(client, pod).await?,
        ..CSINodeDriver::default()
    };
    let api: Api<CSINode> = Api::all(client.clone());
    match api.get_opt(name).await? {
        Some(object) if has_driver(&object) => {}
        Some(mut object) => {
            object.spec.drivers.push(driver);
            register(&mut object, pod);
            api.replace(name, &PostParams::default(), &object).await?;
        }
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
            register(&mut object, pod);
            api.create(&PostParams::default(), &object).await?;
        }
    }
    Ok(())
}

fn register(object: &mut CSINode, pod: &Pod) {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    object.annotations_mut().insert(REGISTERED_BY.into(), uid);
    object.annotations_mut().insert(MIGRATED.into(), BUILT_IN.into());
}

async fn remove(client: &Client, name: &str) -> Result<()> {
    let api: Api<CSINode> = Api::all(client.clone());
    if let Some(mut object) = api.get_opt(name).await?.filter(has_driver) {
        object.spec.drivers.retain(|driver| driver.name != DRIVER);
        api.replace(name, &PostParams::default(), &object).await?;
    }
    Ok(())
}
