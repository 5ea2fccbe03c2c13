// SPDX-License-Identifier: Apache-2.0
//! The field `spec.storageProvider.defaultVolumeSnapshotClass`: the VolumeSnapshotClass for snapshots that name no class.

use super::DefaultClassMode;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The VolumeSnapshotClass for snapshots that name no class.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DefaultVolumeSnapshotClass {
    /// Auto: if the API server serves VolumeSnapshotClasses and the driver has no default class, the operator creates a class and marks it
    /// as the default. If another class of the driver becomes the default later, the operator keeps its own class, but no longer marks it
    /// as the default. Off: the operator creates no class.
    #[serde(default)]
    pub mode: DefaultClassMode,
    /// The name of the VolumeSnapshotClass; default: vsphere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: Option<String>,
    /// What happens to a snapshot in vSphere when its VolumeSnapshot is deleted; default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<SnapshotDeletionPolicy>,
}

/// What happens to a snapshot in vSphere when its VolumeSnapshot is deleted; default: Delete.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotDeletionPolicy {
    /// The snapshot is deleted.
    Delete,
    /// The snapshot is kept.
    Retain,
}

impl DefaultVolumeSnapshotClass {
    /// The name of the class.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("vsphere")
    }

    /// The class as a value of the chart, as the default of the driver or beside another one.
    #[must_use]
    pub fn value(&self, is_default: bool) -> Value {
        let mut value = json!({"name": self.name(), "default": is_default});
        if let Some(policy) = self.deletion_policy {
            value["deletionPolicy"] = json!(policy);
        }
        value
    }
}
