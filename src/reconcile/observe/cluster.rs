// SPDX-License-Identifier: Apache-2.0
//! Reads the cluster's version and UID, its nodes and the VDOConfigs through one [`Reader`] (effect).

use crate::cluster::{ClusterError, Reader, Select, View, Watch};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::node::{node, registration};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use vdo_api::api::{API_VERSION, VDOConfig};
use vdo_api::facts::{Cluster, Node};
use vdo_api::types::KubernetesVersion;
use vdo_core::manifest::{Object, apply_set_id};

/// Where Secrets of the original operator are.
const KUBE_SYSTEM: &str = "kube-system";

pub(in crate::reconcile) fn nodes_watch() -> Watch {
    Watch::new("v1", "Node", "", Select::All)
}

pub(in crate::reconcile) fn csi_nodes_watch() -> Watch {
    Watch::new("storage.k8s.io/v1", "CSINode", "", Select::All)
}

fn kube_system_watch() -> Watch {
    Watch::new("v1", "Namespace", "", Select::Name(KUBE_SYSTEM.into()))
}

pub(in crate::reconcile) fn by_name(kind: &str, namespace: &str, name: &str) -> Watch {
    Watch::new("v1", kind, namespace, Select::Name(name.into()))
}

/// The name by which the apply set of a VDOConfig is known, and formerly that of the ConfigMap with its inventory.
pub(in crate::reconcile) fn former_inventory(config: &VDOConfig) -> String {
    format!("{}-inventory", config.name_any())
}

/// The id of the apply set of a VDOConfig.
#[must_use]
pub fn apply_set(config: &VDOConfig) -> String {
    apply_set_id(&former_inventory(config), &config.namespace().unwrap_or_default())
}

/// The cluster: version, identity, nodes.
///
/// # Errors
/// When a watch cannot be started, or kube-system is not there.
pub async fn cluster(reader: &Reader, version: KubernetesVersion) -> Result<Cluster, ReconcileError> {
    let view = reader.load([nodes_watch(), csi_nodes_watch(), kube_system_watch()]).await?;
    let uid = uid(&view)?;
    let csi_nodes = view.each(&csi_nodes_watch(), |o| Some((o.name().to_owned(), registration(&o)?)));
    let registered: HashMap<String, BTreeSet<String>> = csi_nodes.into_iter().flatten().collect();
    let nodes = view.each(&nodes_watch(), |o| Arc::new(node(&o, registered.get(o.name()))));
    Ok(Cluster { version, uid, nodes })
}

/// The identity of the cluster.
///
/// # Errors
/// When kube-system is not there, or cannot be read.
pub(in crate::reconcile) async fn cluster_uid(reader: &Reader) -> Result<String, ReconcileError> {
    uid(&reader.load([kube_system_watch()]).await?)
}

fn uid(view: &View) -> Result<String, ReconcileError> {
    let found = view.one(&kube_system_watch());
    found.map(|o| o.uid().to_owned()).ok_or(ReconcileError::NoClusterId)
}

/// Whether a condition in the status of an object is True.
pub(in crate::reconcile) fn holds(object: &Object, condition: &str) -> bool {
    let all = object.value().pointer("/status/conditions").and_then(Value::as_array);
    all.is_some_and(|all| all.iter().any(|c| c["type"] == condition && c["status"] == "True"))
}

/// The nodes, for callers that do not ask what the CSI driver says of them.
///
/// # Errors
/// When they cannot be read.
pub async fn nodes(reader: &Reader) -> Result<Vec<Arc<Node>>, ReconcileError> {
    let view = reader.load([nodes_watch()]).await?;
    Ok(view.each(&nodes_watch(), |o| Arc::new(node(&o, None))))
}

/// The ConfigMaps of the operator's namespace: the inventories, what names a source of the matrix, and a matrix in parts.
pub(in crate::reconcile) fn config_maps_watch(namespace: &str) -> Watch {
    Watch::new("v1", "ConfigMap", namespace, Select::All)
}

/// All VDOConfigs of a namespace; one of them acts.
///
/// # Errors
/// When they cannot be read.
pub async fn configs(reader: &Reader, namespace: &str) -> Result<Vec<Arc<VDOConfig>>, ClusterError> {
    objects(reader, &Watch::new(API_VERSION, "VDOConfig", namespace, Select::All)).await
}

/// The objects of a watch that are of this kind.
///
/// # Errors
/// When they cannot be read.
pub(super) async fn objects<T>(reader: &Reader, watch: &Watch) -> Result<Vec<Arc<T>>, ClusterError>
where
    T: DeserializeOwned,
{
    let view = reader.load([watch.clone()]).await?;
    // What is not of its kind is left out.
    let parsed = view.each(watch, |object| serde_json::from_value(object.into_value()).ok().map(Arc::new));
    Ok(parsed.into_iter().flatten().collect())
}

/// A map of texts inside an object.
pub(in crate::reconcile) fn texts(object: &Object, pointer: &str) -> BTreeMap<String, String> {
    let map = object.value().pointer(pointer).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
        .collect()
}
