// SPDX-License-Identifier: Apache-2.0
//! vSAN file services: who may mount what.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings for file volumes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FileVolumes {
    /// Who may mount file volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub net_permissions: Vec<NetPermission>,
    /// URLs of the vSAN datastores to place file volumes on; read by CSI before 3.2.0 only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vsan_data_store_url: Vec<String>,
    /// The vSAN clusters to place file volumes on, for each vSphere connection; default: all of its clusters with file service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["vsphereCloudConfig".into()]))]
    pub vsan_clusters: Vec<VsanClusters>,
}

/// The vSAN clusters of a vCenter that take file volumes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VsanClusters {
    /// The vSphere connection of the vCenter.
    #[schemars(length(min = 1, max = 253))]
    pub vsphere_cloud_config: String,
    /// The clusters, by their managed object ID, for example domain-c8.
    #[schemars(length(min = 1, max = 64), inner(regex(pattern = r"^domain-c[0-9]+$")))]
    pub clusters: Vec<String>,
}

/// Who may mount file volumes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NetPermission {
    /// An address, a subnet such as 10.0.0.0/8, or a range such as 10.0.0.1-10.0.0.9; * for everyone.
    #[schemars(regex(pattern = r"^([*]|[0-9a-fA-F:.]+(/[0-9]{1,3}|-[0-9a-fA-F:.]+)?)$"))]
    pub ips: String,
    /// What they may do; default: READ_WRITE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permission>,
    /// Whether root of the client is treated as an anonymous user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_squash: Option<bool>,
}

/// What a client may do with a file volume.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Permission {
    /// Read and write.
    ReadWrite,
    /// Read.
    ReadOnly,
    /// Nothing.
    NoAccess,
}
