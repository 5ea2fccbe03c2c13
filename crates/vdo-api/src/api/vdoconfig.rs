// SPDX-License-Identifier: Apache-2.0
//! The specification of the custom resource VDOConfig, with its defaults, validation rules and printer columns.
#![allow(clippy::duplicated_attributes, reason = "every printer column has a name, a type and a path")]

use super::{ConflictRule, MaintenanceWindow, Patch, VDOConfigStatus};
use k8s_openapi::jiff::SignedDuration;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// The drivers of this cluster and their settings. An empty specification installs both drivers with all connections of its namespace.
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
    doc = "Selects and configures the vSphere drivers of this cluster. Only the oldest VDOConfig of a cluster takes effect.",
    derive = "PartialEq",
    // As long as it is not in use, it can be changed: another cluster may have it.
    validation = Rule::new(
        "!has(oldSelf.status) || !has(oldSelf.status.clusterId) || !has(oldSelf.spec.storageProvider) || !has(self.spec.storageProvider) \
         || !has(oldSelf.spec.storageProvider.clusterId) || (has(self.spec.storageProvider.clusterId) \
         && self.spec.storageProvider.clusterId == oldSelf.spec.storageProvider.clusterId)"
    )
    .message("spec.storageProvider.clusterId cannot be changed, because volumes are registered in vCenter under this id; keep the old value"),
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
    /// What the operator does with all drivers. Managed: install the drivers, keep them in sync and repair them. Paused: report their
    /// state, but write nothing. Removed: uninstall the drivers and keep this object.
    #[serde(default)]
    pub management_state: ManagementState,
    /// What happens to the drivers when this object is deleted. Delete: the operator uninstalls the drivers first. Orphan: the drivers stay
    /// installed and unchanged.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// When the operator changes the version of an installed driver automatically. Compatible: only if the installed version is
    /// incompatible with the cluster or withdrawn in the matrix. Latest: whenever a newer compatible version is available. Disabled: never.
    #[serde(default)]
    pub update_policy: UpdatePolicy,
    /// When the operator may change installed drivers automatically. Automatic upgrades and new charts from a newer matrix wait for the
    /// next window. Repairs, first installations, changes that a user requests, and all changes with approval Manual do not wait. An empty
    /// list allows changes at any time. If a window is invalid or never opens, all automatic changes wait until it is corrected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub maintenance_windows: Vec<MaintenanceWindow>,
    /// Which plans a user must approve. Automatic: only a plan that removes something in use, such as a vCenter or the cluster id. Manual:
    /// every plan. To approve a plan, write its hash (status.plan.hash) into the annotation vdo.vmware.com/approve, or run vdoctl approve.
    #[serde(default)]
    pub approval: Approval,
    /// What the operator does if a driver does not become healthy after a change, or if the API server refuses the rest of a partly written
    /// change. Automatic: restore the last good revision, and retry the change only after this specification, the matrix or the platform
    /// changes, or after vdoctl upgrade retry. Manual: report the failure, and wait for vdoctl rollback. Disabled: do nothing.
    #[serde(default)]
    pub rollback: RollbackPolicy,
    /// The time without progress after which a change of a driver counts as failed, such as 1h30m. A pod that becomes ready is progress.
    #[serde(default = "ten_minutes")]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("write a time longer than zero, for example 10m"))]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"), length(max = 32))]
    pub progress_deadline: String,
    /// How many old revisions of each driver are kept, in addition to the running revision and the last good revision.
    #[serde(default = "five")]
    #[schemars(range(min = 0, max = 20))]
    pub revision_history_limit: i32,
    /// Rules for fields of the drivers' objects that another field manager sets as well. Without a rule, the operator overwrites such a
    /// field in an object that it created or adopted, and lists the change in status.drift. The operator does not change an object that
    /// it has not adopted yet; the condition Ready (reason Conflict) then names the field, the manager and the time. vdoctl diff shows
    /// the paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub conflicts: Vec<ConflictRule>,
    /// Where the images of all drivers are pulled from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Images>,
    /// The cloud provider (CPI). If neither cloudProvider nor storageProvider is set, both drivers are installed. If only one field is set,
    /// only its driver is installed. To uninstall the driver, set managementState to Removed; deleting this field is not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_provider: Option<CloudProvider>,
    /// The CSI driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_provider: Option<StorageProvider>,
    /// Further drivers from the matrix, in addition to cloudProvider and storageProvider, for example antrea or snapshot-controller. To
    /// uninstall a driver, set managementState of its entry to Removed; deleting the entry is not enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub drivers: Vec<Driver>,
    /// Patches for the rendered objects of the charts, for settings that no chart value covers. The operator applies the patches in this
    /// order. A patch cannot write anything that the operator's admission policy forbids.
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
    .message("spec.drivers cannot contain vsphere-cpi or vsphere-csi; use spec.cloudProvider and spec.storageProvider"))]
pub struct Driver {
    /// The name of the driver in the matrix.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// What the operator does with this driver. Managed: install the driver, keep it in sync and repair it. Paused: write no object of the
    /// driver. Removed: uninstall the driver.
    #[serde(default, skip_serializing_if = "is_managed")]
    pub management_state: ManagementState,
    /// Pins the driver to this version, for example 2.7.0. The operator never changes a pinned version automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the pinned version is installed even if the matrix lists it as incompatible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_incompatible: bool,
    /// The vSphere connections with which the operator renders the chart of the driver. Empty means none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vsphere_cloud_configs: Vec<String>,
    /// Values for the chart of the driver. The values must match the schema of the chart.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_object")]
    pub values: Map<String, Value>,
    /// ConfigMaps and Secrets with further chart values; the operator watches them. A later entry overrides earlier entries, and the field
    /// `values` overrides every entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub values_from: Vec<super::ValuesFrom>,
}

/// What the operator does with the drivers.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManagementState {
    /// The drivers are installed, kept in sync and repaired.
    #[default]
    Managed,
    /// Their state is reported; nothing is written.
    Paused,
    /// The drivers are uninstalled; the VDOConfig is kept.
    Removed,
}

fn is_managed(state: &ManagementState) -> bool {
    *state == ManagementState::Managed
}

/// What happens to the drivers when the VDOConfig is deleted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// The drivers are uninstalled before the VDOConfig is deleted.
    #[default]
    Delete,
    /// The drivers stay installed and unchanged.
    Orphan,
}

/// When the version of an installed driver changes automatically.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdatePolicy {
    /// The installed version is kept until it is incompatible or withdrawn.
    #[default]
    Compatible,
    /// The newest compatible version is installed.
    Latest,
    /// The installed version is always kept.
    Disabled,
}

/// Whether a user approves changes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Plans need no approval.
    #[default]
    Automatic,
    /// A user approves every plan.
    Manual,
}

/// What the operator does after a change that fails.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RollbackPolicy {
    /// The operator restores the last good revision.
    #[default]
    Automatic,
    /// The failure is reported.
    Manual,
    /// The operator does nothing.
    Disabled,
}

/// Where images are pulled from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Images {
    /// A registry and path that replace the registry of every driver image, for example registry.example.com/vsphere.
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
    /// What the operator does with this driver. Managed: install the driver, keep it in sync and repair it. Paused: write no object of the
    /// driver. Removed: uninstall the driver. Deleting the settings of the driver does not uninstall the driver.
    #[serde(default, skip_serializing_if = "is_managed")]
    pub management_state: ManagementState,
    /// Pins the driver to this version, for example 1.34.0. The operator never changes a pinned version automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the pinned version is installed even if the matrix lists it as incompatible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_incompatible: bool,
    /// The vSphere connections that the driver uses. Empty means all connections in this namespace.
    #[serde(default)]
    pub vsphere_cloud_configs: Vec<String>,
    /// The tag categories in vSphere that name zones and regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// The IP families of the node addresses. Empty means IPv4. With both families, each node gets an IPv4 and an IPv6 address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(validation = Rule::new("size(self) < 2 || (size(self) == 2 && self[0] != self[1])")
        .message("name each family once: IPv4, IPv6 or both"))]
    pub ip_families: Vec<IpFamily>,
    /// Whether the cloud provider keeps all Node objects. If false, the cloud provider deletes Node objects that are not ready and have no
    /// virtual machine in a vCenter; therefore the operator does not begin to install the cloud provider in a cluster with nodes of another
    /// cloud provider. If true, the Node object of a deleted virtual machine remains until a user deletes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_nodes: bool,
    /// Which addresses a node gets if its virtual machine has several addresses. Empty means that the driver takes the first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_networks: Option<NodeNetworks>,
    /// Values for the chart, for settings that have no field in this specification. The values must match the schema of the chart.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_object")]
    pub values: Map<String, Value>,
    /// ConfigMaps and Secrets with further chart values; the operator watches them. A later entry overrides earlier entries, and the field
    /// `values` overrides every entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub values_from: Vec<super::ValuesFrom>,
}

/// Tag categories that name zones and regions.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The tag category that names zones.
    pub zone: String,
    /// The tag category that names regions.
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
    /// How the internal address of a node is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal: Option<NodeNetwork>,
    /// How the external address of a node is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<NodeNetwork>,
}

/// How an address of a node is selected.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetwork {
    /// The subnets that the address is taken from, for example 192.168.10.0/24.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    /// The subnets that the address is never taken from, for example the pod subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded_subnets: Vec<String>,
    /// The name of the vCenter network that the address is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The CSI driver: volumes on vSphere datastores.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.vsphereCloudConfig) || !has(self.vsphereCloudConfigs) || size(self.vsphereCloudConfigs) == 0")
        .message("write only vsphereCloudConfigs (a list); vsphereCloudConfig is the older field for a single connection"),
    validation = Rule::new(
        "!has(self.defaultStorageClass) || !has(self.storageClasses) || self.storageClasses.all(c, c.name != \
         (has(self.defaultStorageClass.name) ? self.defaultStorageClass.name : 'vsphere'))"
    )
    .message("defaultStorageClass has the same name as a class in storageClasses; remove one of the two, or set another defaultStorageClass.name")
)]
pub struct StorageProvider {
    /// What the operator does with this driver. Managed: install the driver, keep it in sync and repair it. Paused: write no object of the
    /// driver. Removed: uninstall the driver. Deleting the settings of the driver does not uninstall the driver.
    #[serde(default, skip_serializing_if = "is_managed")]
    pub management_state: ManagementState,
    /// Pins the driver to this version, for example 3.7.3. The operator never changes a pinned version automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the pinned version is installed even if the matrix lists it as incompatible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_incompatible: bool,
    /// The vSphere connections that the driver uses. Empty means all connections in this namespace.
    #[serde(default)]
    pub vsphere_cloud_configs: Vec<String>,
    /// The vSphere connection that the driver uses. This is the older field for a single connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vsphere_cloud_config: Option<String>,
    /// The name of the Kubernetes distribution, for example OpenShift. vCenter shows the name with each volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_distribution: Option<String>,
    /// The root directory of the kubelet, if it is not /var/lib/kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.matches('^(/[^/[:space:]]+)+/?$')").message("write an absolute path such as /var/lib/kubelet"))]
    pub custom_kubelet_path: Option<String>,
    /// The cluster id under which vCenter registers the volumes; default: the UID of the kube-system namespace. Two clusters must not have
    /// the same id. The field cannot be changed after the driver has used the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub cluster_id: Option<String>,
    /// The tag categories in vSphere that define the topology of volumes. The field is required if there is more than one vCenter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub topology_categories: Vec<String>,
    /// Settings for file volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_volumes: Option<super::FileVolumes>,
    /// Settings for snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Snapshots>,
    /// The URL of the datastore for migrated in-tree vSphere volumes that do not name a datastore, for example
    /// ds:///vmfs/volumes/datastore1/. The field is allowed only if there is one vCenter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub migration_datastore_url: Option<String>,
    /// Limits and intervals of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<super::StorageTuning>,
    /// The feature states of the driver: the name of each feature, and whether the feature is on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub features: BTreeMap<String, bool>,
    /// Whether the node plugin for Windows is installed; default: the default of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<bool>,
    /// Whether the validating webhook of the driver is installed. The webhook refuses StorageClasses, volumes and claims that the driver
    /// cannot serve. The operator creates and renews the certificate of the webhook.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub webhook: bool,
    /// The StorageClasses that the operator creates. If the list is empty, only defaultStorageClass can create a class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[x_kube(validation = Rule::new("self.filter(c, has(c.default) && c.default).size() < 2")
        .message("only one StorageClass can be the default; remove default: true from the others"))]
    pub storage_classes: Vec<super::StorageClass>,
    /// The StorageClass for claims that name no class. Without this field, only the classes in storageClasses are created. vdoctl deploy
    /// sets the field in a new VDOConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_storage_class: Option<super::DefaultStorageClass>,
    /// The VolumeSnapshotClass for snapshots that name no class. Without this field, no default class is created. vdoctl deploy sets the
    /// field in a new VDOConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_volume_snapshot_class: Option<super::DefaultVolumeSnapshotClass>,
    /// Values for the chart, for settings that have no field in this specification. The values must match the schema of the chart.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_object")]
    pub values: Map<String, Value>,
    /// ConfigMaps and Secrets with further chart values; the operator watches them. A later entry overrides earlier entries, and the field
    /// `values` overrides every entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub values_from: Vec<super::ValuesFrom>,
}

/// Settings for snapshots.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Snapshots {
    /// How many snapshots a block volume may have; default: 3, as set by the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub max_per_volume: Option<i32>,
    /// How many snapshots a volume on vSAN may have; default: the value of maxPerVolume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub max_per_vsan_volume: Option<i32>,
    /// How many snapshots a volume on vVol may have; default: the value of maxPerVolume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32))]
    pub max_per_vvol_volume: Option<i32>,
}

fn free_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
