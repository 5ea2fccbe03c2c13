// SPDX-License-Identifier: Apache-2.0
//! Reads the cluster before a selftest: StorageClass, VolumeSnapshotClass, image of the pods, zones and usable nodes.

use super::super::args::{AccessMode, Selftest as Args};
use super::super::context::Context;
use super::super::{CliError, Exit};
use super::objects::{Place, SNAPSHOTS};
use super::steps::Known;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use vdo::cluster::{ClusterError, get, list_as, unserved};
use vdo_api::types::ObjectId;
use vdo_core::drivers::{CSI_DRIVER, DEFAULT_ANNOTATIONS, DEFAULT_SNAPSHOT_ANNOTATION, STORAGE};
use vdo_core::openshift::CONSTRAINTS;
use vdo_core::volume_diagnosis::SnapshotClass;

/// The container and workload whose image is on every node that has the driver.
const NODE_PLUGIN: &str = "vsphere-csi-node";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    creation_timestamp: String,
}

/// A StorageClass.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Class {
    metadata: Metadata,
    provisioner: String,
    allow_volume_expansion: bool,
    volume_binding_mode: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CsiNode {
    metadata: Metadata,
    spec: Drivers,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Drivers {
    drivers: Vec<Registered>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Registered {
    name: String,
    topology_keys: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Node {
    metadata: Metadata,
    spec: NodeSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeSpec {
    unschedulable: bool,
    taints: Vec<Taint>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Taint {
    effect: String,
}

/// What was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The class.
    pub class: String,
    /// The driver of the class.
    pub driver: String,
    /// The image of the pods.
    pub image: String,
    /// Whether OpenShift chooses the user of pods.
    pub user_is_assigned: bool,
    /// The places, each with what its steps need to know.
    pub places: Vec<(Place, Known)>,
}

pub(super) async fn find(args: &Args, context: &Context) -> Result<Found, CliError> {
    let client = &context.ports.client;
    let classes: Vec<Class> = list_as(client, "storage.k8s.io/v1", "StorageClass", "").await?;
    let class = class(&classes, args.storage_class.as_deref())?;
    let nodes: Vec<Node> = list_as(client, "v1", "Node", "").await?;
    let csi_nodes: Vec<CsiNode> = list_as(client, "storage.k8s.io/v1", "CSINode", "").await?;
    let snapshots = match list_as::<SnapshotClass>(client, SNAPSHOTS, "VolumeSnapshotClass", "").await {
        Ok(found) => snapshot_class(&found, &class.provisioner),
        Err(ClusterError::NotServed { .. }) => Err("the API server does not serve VolumeSnapshots".to_owned()),
        Err(error) => return Err(error.into()),
    };
    let kinds = [(CONSTRAINTS.0.to_owned(), CONSTRAINTS.1.to_owned())];
    let user_is_assigned = unserved(client, &kinds).await?.is_empty();
    let image = match &args.image {
        Some(image) => image.clone(),
        None => image(context).await?,
    };
    let usable = usable(&nodes, &csi_nodes, &class.provisioner);
    let places = match args.zones {
        true => zones(class, &usable)?,
        false => vec![(Place::default(), usable.len())],
    };
    let known = |nodes: usize| Known {
        class: class.metadata.name.clone(),
        expands: class.allow_volume_expansion,
        shared: args.access_mode == AccessMode::ReadWriteMany,
        snapshots: snapshots.clone(),
        nodes,
    };
    Ok(Found {
        class: class.metadata.name.clone(),
        driver: class.provisioner.clone(),
        image,
        user_is_assigned,
        places: places.into_iter().map(|(place, nodes)| (place, known(nodes))).collect(),
    })
}

/// The class of this name, or the default one: of several the newest, as for claims.
fn class<'a>(all: &'a [Class], name: Option<&str>) -> Result<&'a Class, CliError> {
    if let Some(name) = name {
        return all.iter().find(|class| class.metadata.name == name).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|class| class.metadata.name.as_str()).collect();
            let remedy = match names.as_slice() {
                [] => "There is no StorageClass. To create one: vdoctl configure drivers --set \
                       storageProvider.defaultStorageClass.mode=Auto"
                    .to_owned(),
                names => format!("Available: {}.", names.join(", ")),
            };
            CliError::new(Exit::NotFound, format!("StorageClass {name} does not exist"), remedy)
        });
    }
    let is_default = |class: &&Class| {
        let annotations = &class.metadata.annotations;
        DEFAULT_ANNOTATIONS
            .iter()
            .any(|key| annotations.get(*key).is_some_and(|value| value == "true"))
    };
    let newest = all.iter().filter(is_default).max_by(|a, b| {
        let key = |class: &Class| {
            (
                class.metadata.creation_timestamp.clone(),
                std::cmp::Reverse(class.metadata.name.clone()),
            )
        };
        key(a).cmp(&key(b))
    });
    newest.ok_or_else(|| {
        CliError::new(
            Exit::NotFound,
            "no StorageClass is the default of the cluster",
            "Name a StorageClass: vdoctl selftest --storage-class NAME\nOr create a default StorageClass: vdoctl configure drivers --set storageProvider.defaultStorageClass.mode=Auto",
        )
    })
}

/// The class for snapshots of the driver: the default one, or the only one; else why there is none.
fn snapshot_class(all: &[SnapshotClass], driver: &str) -> Result<String, String> {
    let own: Vec<&SnapshotClass> = all.iter().filter(|class| class.driver == driver).collect();
    let is_default = |class: &&&SnapshotClass| {
        class
            .metadata
            .annotations
            .get(DEFAULT_SNAPSHOT_ANNOTATION)
            .is_some_and(|value| value == "true")
    };
    match (own.iter().find(is_default), own.as_slice()) {
        (Some(class), _) => Ok(class.metadata.name.clone()),
        (None, [class]) => Ok(class.metadata.name.clone()),
        (None, []) if driver == CSI_DRIVER => Err(format!(
            "there is no VolumeSnapshotClass for {driver}; vdoctl configure drivers --set \
             storageProvider.defaultVolumeSnapshotClass.mode=Auto creates one"
        )),
        (None, []) => Err(format!("there is no VolumeSnapshotClass for {driver}")),
        (None, several) => Err(format!(
            "{} VolumeSnapshotClasses are for {driver}, and none is the default",
            several.len()
        )),
    }
}

/// The topology of the nodes that may run the pods: the driver is registered there, and nothing keeps pods away.
fn usable(nodes: &[Node], csi_nodes: &[CsiNode], driver: &str) -> Vec<BTreeMap<String, String>> {
    let free = |node: &&Node| {
        let keeps_away = |taint: &Taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute";
        !node.spec.unschedulable && !node.spec.taints.iter().any(keeps_away)
    };
    let topology = |node: &Node| {
        let of_node = csi_nodes.iter().find(|one| one.metadata.name == node.metadata.name)?;
        let registered = of_node.spec.drivers.iter().find(|one| one.name == driver)?;
        let keys = registered.topology_keys.iter().flatten();
        let labels = keys.filter_map(|key| Some((key.clone(), node.metadata.labels.get(key)?.clone())));
        Some(labels.collect())
    };
    nodes.iter().filter(free).filter_map(topology).collect()
}

/// Each zone with the number of its nodes.
fn zones(class: &Class, usable: &[BTreeMap<String, String>]) -> Result<Vec<(Place, usize)>, CliError> {
    if class.volume_binding_mode != "WaitForFirstConsumer" {
        return Err(CliError::new(
            Exit::Refused,
            format!(
                "StorageClass {} creates volumes before their pod has a zone (volumeBindingMode Immediate)",
                class.metadata.name
            ),
            "Name a StorageClass with volumeBindingMode WaitForFirstConsumer, or leave out --zones.",
        ));
    }
    let zones: BTreeSet<&BTreeMap<String, String>> = usable.iter().filter(|labels| !labels.is_empty()).collect();
    if zones.is_empty() {
        return Err(CliError::new(
            Exit::Refused,
            format!("no node that may run pods is registered with a topology of {CSI_DRIVER}"),
            "Leave out --zones, or check the topology: vdoctl doctor topology",
        ));
    }
    let place = |(index, labels): (usize, &BTreeMap<String, String>)| {
        let place = Place {
            suffix: format!("-{index}"),
            labels: labels.clone(),
        };
        (place, usable.iter().filter(|other| *other == labels).count())
    };
    Ok(zones.into_iter().enumerate().map(place).collect())
}

/// The image of the driver on the nodes: every node has it, and it comes from the site's registry.
async fn image(context: &Context) -> Result<String, CliError> {
    let id = ObjectId::new("apps", "DaemonSet", STORAGE.namespace, NODE_PLUGIN);
    let found = get(&context.ports.client, "apps/v1", &id).await?;
    let containers = found
        .as_ref()
        .and_then(|found| found.value().pointer("/spec/template/spec/containers")?.as_array());
    let plugin = containers.into_iter().flatten().find(|container| container["name"] == NODE_PLUGIN);
    let image = plugin.and_then(|container| container["image"].as_str());
    image.map(str::to_owned).ok_or_else(|| {
        CliError::new(
            Exit::NotFound,
            format!("{id} does not exist, and the test pods need its image"),
            "Install the drivers (see vdoctl status).\nOr name an image with a shell: vdoctl selftest --image IMAGE",
        )
    })
}

#[cfg(test)]
#[path = "storage_class_and_zones_tests.rs"]
mod tests;
