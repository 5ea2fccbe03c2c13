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
