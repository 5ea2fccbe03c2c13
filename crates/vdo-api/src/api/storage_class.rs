// SPDX-License-Identifier: Apache-2.0
//! The fields of the StorageClasses of the CSI driver, and the StorageClass of claims that name none.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A StorageClass of the CSI driver. Kubernetes changes none of these fields but allowExpansion and default once it exists.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.fileShare) || !self.fileShare || !has(self.fsType)")
        .message("a file share has no file system of ours; leave out fsType or fileShare"),
    validation = Rule::new("!has(self.fileShare) || !self.fileShare || !has(self.allowExpansion) || !self.allowExpansion")
        .message("file shares cannot grow; leave out allowExpansion or fileShare")
)]
pub struct StorageClass {
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The vSphere storage policy that places volumes, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub storage_policy: Option<String>,
    /// The datastore of volumes, as its URL in vCenter: ds:///vmfs/volumes/…/.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = "^ds:///.+"))]
    pub datastore_url: Option<String>,
    /// The file system of block volumes; default: the driver's own, ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<FsType>,
    /// Whether volumes are vSAN file shares, which many pods can mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_share: Option<bool>,
    /// What happens to a volume whose claim is deleted; default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// Whether volumes may grow; default: true, false for file shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_expansion: Option<bool>,
    /// When a volume is made; default: when its pod is placed where topologyCategories are set, at once elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_mode: Option<BindingMode>,
    /// Whether claims that name no class get this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// The StorageClass of claims that name none.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DefaultStorageClass {
    /// Auto: a class is created, and marked as the default as long as no other class of the cluster is. Where another one is when it
    /// would be created, none is. Off: none is created.
    #[serde(default)]
    pub mode: DefaultClassMode,
    /// Its name; default: vsphere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: Option<String>,
    /// The vSphere storage policy that places volumes, by name; default: that of the datastore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub storage_policy: Option<String>,
    /// The datastore of volumes, as its URL in vCenter: ds:///vmfs/volumes/…/.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = "^ds:///.+"))]
    pub datastore_url: Option<String>,
    /// The file system of volumes; default: the driver's own, ext4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<FsType>,
    /// What happens to a volume whose claim is deleted; default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// When a volume is made; default: when its pod is placed where topologyCategories are set, at once elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_mode: Option<BindingMode>,
}

/// Whether there is a default class of the operator, of volumes or of snapshots.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultClassMode {
    /// One is created where the cluster has no default class.
    #[default]
    Auto,
    /// None is created.
    Off,
}

impl DefaultStorageClass {
    /// The name of the class.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("vsphere")
    }

    /// The class, as the default of the cluster or beside another one.
    #[must_use]
    pub fn class(&self, is_default: bool) -> StorageClass {
        StorageClass {
            name: self.name().to_owned(),
            storage_policy: self.storage_policy.clone(),
            datastore_url: self.datastore_url.clone(),
            fs_type: self.fs_type,
            reclaim_policy: self.reclaim_policy,
            binding_mode: self.binding_mode,
            default: Some(is_default),
            ..StorageClass::default()
        }
    }
}

/// The file system of block volumes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FsType {
    /// ext4.
    Ext4,
    /// ext3.
    Ext3,
    /// XFS.
    Xfs,
    /// NTFS, for Windows nodes.
    Ntfs,
}

/// What happens to a volume whose claim is deleted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// It is deleted.
    Delete,
    /// It stays.
    Retain,
}

/// When a volume is made.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingMode {
    /// With its claim.
    Immediate,
    /// When its pod is placed.
    WaitForFirstConsumer,
}
