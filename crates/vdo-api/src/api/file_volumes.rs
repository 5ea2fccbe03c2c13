// SPDX-License-Identifier: Apache-2.0
//! The field `spec.storageProvider.fileVolumes`: the clients that may mount vSAN file volumes, and the vSAN clusters for the volumes.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings for file volumes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FileVolumes {
    /// The clients that may mount file volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub net_permissions: Vec<NetPermission>,
    /// The URLs of the vSAN datastores for file volumes. Only CSI versions before 3.2.0 read this field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vsan_data_store_url: Vec<String>,
    /// The vSAN clusters for file volumes, listed by vSphere connection; default: all clusters of a connection that have the vSAN file
    /// service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["vsphereCloudConfig".into()]))]
    pub vsan_clusters: Vec<VsanClusters>,
}

/// The vSAN clusters of a vCenter that take file volumes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VsanClusters {
    /// The name of the vSphere connection.
    #[schemars(length(min = 1, max = 253))]
    pub vsphere_cloud_config: String,
    /// The managed object IDs of the clusters, for example domain-c8.
    #[schemars(length(min = 1, max = 64), inner(regex(pattern = r"^domain-c[0-9]+$")))]
    pub clusters: Vec<String>,
}

/// The clients that may mount file volumes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NetPermission {
    /// The addresses of the clients: one address, a subnet such as 10.0.0.0/8, a range such as 10.0.0.1-10.0.0.9, or * for all clients.
    #[schemars(regex(pattern = r"^([*]|[0-9a-fA-F:.]+(/[0-9]{1,3}|-[0-9a-fA-F:.]+)?)$"))]
    pub ips: String,
    /// What the clients may do with a file volume; default: READ_WRITE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permission>,
    /// Whether the root user of a client is treated as an anonymous user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_squash: Option<bool>,
}

/// What a client may do with a file volume; default: READ_WRITE.
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
