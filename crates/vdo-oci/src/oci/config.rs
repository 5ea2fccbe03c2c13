// SPDX-License-Identifier: Apache-2.0
//! The configuration document of an image for one platform: entry point, user, variables, labels, layer digests and history.

use super::Annotations;
use serde::{Deserialize, Serialize};
use vdo_api::types::Digest;

/// The configuration of an image for one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// When it was built, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// As Go calls it.
    pub architecture: String,
    /// As Go calls it.
    pub os: String,
    /// Of the architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// What is started.
    pub config: ContainerConfig,
    /// What it sees.
    pub rootfs: RootFs,
    /// How each layer was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<History>,
}

/// What is started, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContainerConfig {
    /// `uid:gid` in numbers: the kubelet can only check numbers against `runAsNonRoot`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// `NAME=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Program and its first arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Free text by key.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub labels: Annotations,
}

/// The layers, unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of the layers before compression, lowest first.
    pub diff_ids: Vec<Digest>,
}

/// How a layer was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// When, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// By which program.
    #[serde(default)]
    pub created_by: String,
}
