// SPDX-License-Identifier: Apache-2.0
//! The specification of the custom resource VDOConfig with its validation rules and printer columns.
#![allow(clippy::duplicated_attributes, reason = "every printer column has a name, a type and a path")]

use super::{ConflictRule, MaintenanceWindow, Patch, VDOConfigStatus};
use k8s_openapi::jiff::SignedDuration;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// The drivers of this cluster. An empty specification installs the cloud provider and the CSI driver for all vSphere
/// connections of the namespace.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "vdo.vmware.com",
    version = "v1alpha1",
    kind = "VDOConfig",
    plural = "vdoconfigs",
    shortname = "vdo",
    category = "vsphere",
    namespaced,
    status = "VDOConfigStatus",
    doc = "The vSphere drivers of this cluster: which ones, configured how. One acts per cluster, the oldest.",
    derive = "PartialEq",
    // As long as it is not in use, it can be changed: another cluster may have it.
    validation = Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.clusterId) || !has(oldSelf.spec.storageProvider) || !has(self.spec.storageProvider) \
         || !has(oldSelf.spec.storageProvider.clusterId) || (has(self.spec.storageProvider.clusterId) \
         && self.spec.storageProvider.clusterId == oldSelf.spec.storageProvider.clusterId)"
    )
    .message("spec.storageProvider.clusterId cannot be changed: volumes are registered in vCenter under it; keep the old value"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Health", type_ = "string", json_path = ".status.health"),
    printcolumn(name = "CPI", type_ = "string", json_path = ".status.drivers[?(@.name==\"vsphere-cpi\")].version"),
    printcolumn(name = "CSI", type_ = "string", json_path = ".status.drivers[?(@.name==\"vsphere-csi\")].version"),
    printcolumn(
        name = "Upgradeable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Upgradeable\")].status"
    ),
    printcolumn(
        name = "CPI Running",
        type_ = "string",
        json_path = ".status.drivers[?(@.name==\"vsphere-cpi\")].running",
        priority = 1
    ),
    printcolumn(
        name = "CSI Running",
        type_ = "string",
        json_path = ".status.drivers[?(@.name==\"vsphere-csi\")].running",
        priority = 1
    ),
    printcolumn(name = "Confirmed", type_ = "date", json_path = ".status.lastConfirmed", priority = 1),
    printcolumn(name = "Next Retry", type_ = "string", json_path = ".status.nextAttempt.at", priority = 1),
    printcolumn(name = "Matrix", type_ = "string", json_path = ".status.matrix.source", priority = 1),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {}))]
pub struct VDOConfigSpec {
    /// Managed: installed, kept and repaired. Paused: looked at and reported, but nothing is written. Removed: the drivers go,
    /// this object stays.
    #[serde(default)]
    pub management_state: ManagementState,
    /// What becomes of the drivers when this object is deleted. Delete: they go first; Orphan: they stay as they are.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// When installed drivers change by themselves. Compatible: only when what runs no longer fits or is withdrawn;
    /// Latest: whenever a newer version fits; Disabled: never.
    #[serde(default)]
    pub update_policy: UpdatePolicy,
    /// When installed drivers may change by themselves: outside of these windows, an upgrade that no one asked for and a chart that a newer
    /// matrix brings wait for the next one. Repairs, first installations and what a user asks for do not, nor does anything where approval is
    /// Manual. Empty: always. While one of them cannot be read, or never opens, all such changes wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub maintenance_windows: Vec<MaintenanceWindow>,
    /// Who lets changes happen. Automatic: no one has to be asked, unless a plan takes away what volumes depend on: the cluster id, a
    /// vCenter or the label of a tag category; Manual: every plan waits until its hash, which status.plan
    /// shows, is in the annotation vdo.vmware.com/approve.
    #[serde(default)]
    pub approval: Approval,
    /// What is done about a change of a driver that does not become healthy, or that the API server refuses halfway. Automatic: the last
    /// good revision is brought back, and the change is not tried again before this specification, the matrix or the platform changes,
    /// or a user asks (vdoctl upgrade retry). Manual: it is reported, and vdoctl rollback brings back a revision. Disabled: nothing.
    #[serde(default)]
    pub rollback: RollbackPolicy,
    /// How long a change of a driver may take without progress, for example 10m or 1h30m. Another pod that is ready is progress.
    #[serde(default = "ten_minutes")]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("write a time longer than zero, for example 10m"))]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"), length(max = 32))]
    pub progress_deadline: String,
    /// How many applied states of each driver are kept, beside the running and the last good one.
    #[serde(default = "five")]
    #[schemars(range(min = 0, max = 20))]
    pub revision_history_limit: i32,
    /// Who keeps a field of the drivers' objects that another field manager sets too. Without a rule for it, a field of an object that
    /// the operator has made, or taken over, is taken back and the change is in status.drift; while an object of another manager is being
    /// taken over, such a field stops everything: nothing is written, and Ready has the reason Conflict with the field, its manager and
    /// the time. vdoctl diff shows the paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub conflicts: Vec<ConflictRule>,
    /// Where the images of all drivers are pulled from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Images>,
    /// The cloud provider (CPI). Leave out both this and storageProvider to install both; name one to
    /// install only that one. A driver that is installed and no longer named stays: managementState removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_provider: Option<CloudProvider>,
    /// The CSI driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_provider: Option<StorageProvider>,
    /// Further drivers of the matrix, beside cloudProvider and storageProvider, for example antrea or snapshot-controller. Taking one out
    /// of this list removes nothing: managementState does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub drivers: Vec<Driver>,
    /// Changes of what the charts render, for what no value reaches, made in this order. They never reach what the admission policy forbids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub patches: Vec<Patch>,
}

fn ten_minutes() -> String {
    "10m".into()
}

fn five() -> i32 {
    5
}

impl Default for VDOConfigSpec {
    fn default() -> Self {
        Self {
            management_state: ManagementState::default(),
            deletion_policy: DeletionPolicy::default(),
            update_policy: UpdatePolicy::default(),
            maintenance_windows: Vec::new(),
            approval: Approval::default(),
            rollback: RollbackPolicy::default(),
            progress_deadline: ten_minutes(),
            revision_history_limit: five(),
            conflicts: Vec::new(),
            images: None,
            cloud_provider: None,
            storage_provider: None,
            drivers: Vec::new(),
            patches: Vec::new(),
        }
    }
}

impl VDOConfigSpec {
    /// How long a change may take without progress.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let given = self
            .progress_deadline
            .parse::<SignedDuration>()
            .ok()
            .and_then(|given| Duration::try_from(given).ok());
        given.filter(|given| !given.is_zero()).unwrap_or(Duration::from_secs(600))
    }

    /// How many revisions are kept, beside the running and the last good one.
    #[must_use]
    pub fn revisions(&self) -> usize {
        usize::try_from(self.revision_history_limit).unwrap_or(0)
    }

    /// A further driver, by its name.
    #[must_use]
    pub fn driver(&self, name: &str) -> Option<&Driver> {
        self.drivers.iter().find(|driver| driver.name == name)
    }
}

/// A further driver.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.name != 'vsphere-cpi' && self.name != 'vsphere-csi'")
    .message("vsphere-cpi is requested by spec.cloudProvider, vsphere-csi by spec.storageProvider"))]
pub struct Driver {
    /// Its name in the matrix.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// What is done for this driver. Managed: it is installed, kept and repaired; Paused: nothing of it is written; Removed: it is
    /// removed.
    #[serde(default, skip_serializing_if = "is_managed")]
    pub management_state: ManagementState,
    /// A version to stay with, for example 2.7.0. It is not changed automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Install the pinned version even where the matrix says that it does not fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_incompatible: bool,
    /// The vSphere connections that its chart is rendered with; empty means none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vsphere_cloud_configs: Vec<String>,
    /// Values for its chart. The schema of the chart checks them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_object")]
    pub values: Map<String, Value>,
    /// ConfigMaps and Secrets with further values, which are watched. A later one takes precedence over an earlier one, and values over all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub values_from: Vec<super::ValuesFrom>,
}

/// What is done for the drivers.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManagementState {
    /// They are installed, kept and repaired.
    #[default]
    Managed,
    /// They are looked at and reported on; nothing is written.
    Paused,
    /// They are removed; the VDOConfig stays.
    Removed,
}

fn is_managed(state: &ManagementState) -> bool {
    *state == ManagementState::Managed
}

/// What becomes of the drivers when the VDOConfig is deleted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// They are removed before it is gone.
    #[default]
    Delete,
    /// They stay as they are.
    Orphan,
}

/// When installed drivers change by themselves.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdatePolicy {
    /// Stay with what runs until it no longer fits or is withdrawn.
    #[default]
    Compatible,
    /// Always the newest version that fits.
    Latest,
    /// Stay with what runs whatever happens.
    Disabled,
}

/// Who lets changes happen.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// No one has to be asked.
    #[default]
    Automatic,
    /// A person approves every plan.
    Manual,
}

/// What is done about a change that fails.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RollbackPolicy {
    /// The last good revision is brought back.
    #[default]
    Automatic,
    /// It is reported.
    Manual,
    /// Nothing.
    Disabled,
}

/// Where images are pulled from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Images {
    /// A registry and path that replaces the registry of every driver image, for example registry.example.com/vsphere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("!self.contains('://') && !self.endsWith('/')")
        .message("write a registry and path such as registry.example.com/vsphere, without https:// and without a slash at the end"))]
    pub registry: Option<String>,
    /// Names of image pull Secrets in the namespaces of the drivers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_secrets: Vec<String>,
}

/// The cloud provider: it initialises nodes and gives them their provider ID.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CloudProvider {
    /// What is done for this driver. Managed: it is installed, kept and repaired; Paused: nothing of it is written; Removed: it is
    /// removed. Leaving out the driver removes nothing.
    #[serde(default, skip_serializing_if = "is_managed")]
    pub management_state: ManagementState,
    /// A version to stay with, for example 1.34.0. It is not changed automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Install the pinned version even where the matrix says that it does not fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_incompatible: bool,
    /// The vSphere connections to use; empty means all of this namespace.
    #[serde(default)]
    pub vsphere_cloud_configs: Vec<String>,
    /// The tag categories in vSphere that name zones and regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// The IP families of node addresses, IPv4 where it is empty. With both, a node gets an address of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(validation = Rule::new("size(self) < 2 || (size(self) == 2 && self[0] != self[1])")
        .message("name each family once: IPv4, IPv6 or both"))]
    pub ip_families: Vec<IpFamily>,
    /// Whether the cloud provider leaves every Node object alone. Otherwise it deletes one that is not ready and has no machine in a
    /// vCenter, such as a node of another cloud provider; before it is installed beside such nodes, the installation waits for this. With
    /// it, the Node object of a machine that was deleted stays until a person deletes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_nodes: bool,
    /// Which of a machine's addresses a node gets, where it has several. Empty leaves it to the driver, which takes the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_networks: Option<NodeNetworks>,
    /// Values for the chart, for what has no field here. The schema of the chart checks them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_object")]
    pub values: Map<String, Value>,
    /// ConfigMaps and Secrets with further values, which are watched. A later one takes precedence over an earlier one, and values over all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub values_from: Vec<super::ValuesFrom>,
}

/// Tag categories that name zones and regions.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The tag category of zones.
    pub zone: String,
    /// The tag category of regions.
    pub region: String,
}

/// A family of addresses.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpFamily {
    /// IPv4.
    IPv4,
    /// IPv6.
    IPv6,
}

/// The networks that the addresses of nodes come from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct NodeNetworks {
    /// Of the internal address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal: Option<NodeNetwork>,
    /// Of the external address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<NodeNetwork>,
}

/// Which of a machine's addresses is taken.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetwork {
    /// Subnets in which it is, for example 192.168.10.0/24.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    /// Subnets in which it is not, for example that of the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_subnets: Vec<String>,
    /// The name of the network in vCenter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The CSI driver: volumes on vSphere datastores.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.vsphereCloudConfig) || !has(self.vsphereCloudConfigs) || size(self.vsphereCloudConfigs) == 0")
        .message("write vsphereCloudConfigs (a list) alone; vsphereCloudConfig is its older form for one connection"),
    validation = Rule::new(
        "!has(self.defaultStorageClass) || !has(self.storageClasses) || self.storageClasses.all(c, c.name != \
         (has(self.defaultStorageClass.name) ? self.defaultStorageClass.name : 'vsphere'))"
    )
    .message("storageClasses and defaultStorageClass have the same name; write it in one of them, or set defaultStorageClass.name")
)]
pub struct StorageProvider {
    /// What is done for this driver. Managed: it is installed, kept and repaired; Paused: nothing of it is written; Removed: it is
    /// removed. Leaving out the driver removes nothing.
    #[serde(default, skip_serializing_if = "is_managed")]
    pub management_state: ManagementState,
    /// A version to stay with, for example 3.7.3. It is not changed automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Install the pinned version even where the matrix says that it does not fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_incompatible: bool,
    /// The vSphere connections to use; empty means all of this namespace.
    #[serde(default)]
    pub vsphere_cloud_configs: Vec<String>,
    /// The vSphere connection to use, in the older form for one connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vsphere_cloud_config: Option<String>,
    /// The kind of distribution, shown beside the volumes in vCenter, for example OpenShift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_distribution: Option<String>,
    /// The root directory of the kubelet where it is not /var/lib/kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.matches('^(/[^/[:space:]]+)+/?$')").message("write an absolute path such as /var/lib/kubelet"))]
    pub custom_kubelet_path: Option<String>,
    /// The identity under which volumes are registered in vCenter; default: the UID of the kube-system namespace. No other cluster may
    /// have the same. It can be changed until the driver uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub cluster_id: Option<String>,
    /// The tag categories in vSphere that make up the topology of volumes. Required with more than one vCenter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub topology_categories: Vec<String>,
    /// Settings for file volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_volumes: Option<super::FileVolumes>,
    /// Settings for snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Snapshots>,
    /// The datastore that volumes of the driver built into Kubernetes are on where none is named, by its URL, for example
    /// ds:///vmfs/volumes/datastore1/. With one vCenter only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub migration_datastore_url: Option<String>,
    /// Limits and intervals of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<super::StorageTuning>,
    /// Feature states of the driver, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub features: BTreeMap<String, bool>,
    /// Whether the node driver for Windows is installed; default: as the driver ships it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<bool>,
    /// Whether the driver's validating webhook is installed, which refuses storage classes, volumes and claims that the driver
    /// cannot serve. The operator makes its certificate and renews it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub webhook: bool,
    /// StorageClasses to create; none unless listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[x_kube(validation = Rule::new("self.filter(c, has(c.default) && c.default).size() < 2")
        .message("only one StorageClass can be the default; remove default: true from the others"))]
    pub storage_classes: Vec<super::StorageClass>,
    /// The StorageClass of claims that name none. Without it no class is created but those of storageClasses; vdoctl deploy sets it in a
    /// new VDOConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_storage_class: Option<super::DefaultStorageClass>,
    /// The VolumeSnapshotClass of snapshots that name none. Without it no class is created; vdoctl deploy sets it in a new VDOConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_volume_snapshot_class: Option<super::DefaultVolumeSnapshotClass>,
    /// Values for the chart, for what has no field here. The schema of the chart checks them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_object")]
    pub values: Map<String, Value>,
    /// ConfigMaps and Secrets with further values, which are watched. A later one takes precedence over an earlier one, and values over all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub values_from: Vec<super::ValuesFrom>,
}

/// Settings for snapshots.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Snapshots {
    /// How many snapshots a block volume may have; default: the driver's own, 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub max_per_volume: Option<i32>,
    /// The same for volumes on vSAN; default: maxPerVolume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub max_per_vsan_volume: Option<i32>,
    /// The same for volumes on vVol; default: maxPerVolume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub max_per_vvol_volume: Option<i32>,
}

fn free_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
