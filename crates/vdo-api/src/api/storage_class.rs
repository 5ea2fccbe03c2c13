// SPDX-License-Identifier: Apache-2.0
//! The fields `spec.storageProvider.storageClasses` and `defaultStorageClass`: the StorageClasses that the operator creates.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A StorageClass of the CSI driver. Kubernetes can change only allowExpansion and default of an existing class.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.fileShare) || !self.fileShare || !has(self.fsType)")
        .message("fsType cannot be set for file shares; leave out fsType or fileShare"),
    validation = Rule::new("!has(self.fileShare) || !self.fileShare || !has(self.allowExpansion) || !self.allowExpansion")
        .message("file shares cannot be expanded; leave out allowExpansion or fileShare")
)]
pub struct StorageClass {
    /// The name of the StorageClass.
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The name of the vSphere storage policy that places the volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub storage_policy: Option<String>,
    /// The datastore for the volumes, as its URL in vCenter: ds:///vmfs/volumes/…/.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = "^ds:///.+"))]
    pub datastore_url: Option<String>,
    /// The file system of block volumes; default: ext4, as set by the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<FsType>,
    /// Whether volumes are vSAN file shares, which many pods can mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_share: Option<bool>,
    /// What happens to a volume when its claim is deleted; default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// Whether volumes can be expanded; default: true, or false for file shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_expansion: Option<bool>,
    /// When a volume is created: with its claim (Immediate), or when its pod is scheduled (WaitForFirstConsumer). Default:
    /// WaitForFirstConsumer if topologyCategories are set, otherwise Immediate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_mode: Option<BindingMode>,
    /// Whether claims that name no class use this StorageClass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// The StorageClass for claims that name no class.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DefaultStorageClass {
    /// Auto: if the cluster has no default StorageClass, the operator creates a class and marks it as the default. If another class becomes
    /// the default later, the operator keeps its own class, but no longer marks it as the default. Off: the operator creates no class.
    #[serde(default)]
    pub mode: DefaultClassMode,
    /// The name of the StorageClass; default: vsphere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: Option<String>,
    /// The name of the vSphere storage policy that places the volumes; default: the default policy of the datastore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub storage_policy: Option<String>,
    /// The datastore for the volumes, as its URL in vCenter: ds:///vmfs/volumes/…/.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = "^ds:///.+"))]
    pub datastore_url: Option<String>,
    /// The file system of the volumes; default: ext4, as set by the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<FsType>,
    /// What happens to a volume when its claim is deleted; default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// When a volume is created: with its claim (Immediate), or when its pod is scheduled (WaitForFirstConsumer). Default:
    /// WaitForFirstConsumer if topologyCategories are set, otherwise Immediate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_mode: Option<BindingMode>,
}

/// Whether the operator creates a default class, for volumes or for snapshots.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultClassMode {
    /// A class is created if there is no default class.
    #[default]
    Auto,
    /// No class is created.
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

/// The file system of block volumes; default: ext4, as set by the driver.
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

/// What happens to a volume when its claim is deleted; default: Delete.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// The volume is deleted.
    Delete,
    /// The volume is kept.
    Retain,
}

/// When a volume is created: with its claim (Immediate), or when its pod is scheduled (WaitForFirstConsumer). Default: WaitForFirstConsumer
/// if topologyCategories are set, otherwise Immediate.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingMode {
    /// The volume is created together with its claim.
    Immediate,
    /// The volume is created when its pod is scheduled.
    WaitForFirstConsumer,
}
