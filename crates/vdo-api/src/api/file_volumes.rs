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
    /// URLs of the vSAN datastores to place file volumes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vsan_data_store_url: Vec<String>,
}

/// Who may mount file volumes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NetPermission {
    /// An address, a range or a subnet; * for everyone.
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
