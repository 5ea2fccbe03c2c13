// SPDX-License-Identifier: Apache-2.0
//! The fields of the VolumeSnapshotClass of snapshots that name none.

use super::DefaultClassMode;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The VolumeSnapshotClass of snapshots that name none.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DefaultVolumeSnapshotClass {
    /// Auto: where the API server serves VolumeSnapshotClasses, a class is created, and marked as the default as long as no other class of
    /// the driver is. Where another one is when it would be created, none is. Off: none is created.
    #[serde(default)]
    pub mode: DefaultClassMode,
    /// Its name; default: vsphere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: Option<String>,
    /// What happens to a snapshot in vSphere whose VolumeSnapshot is deleted; default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<SnapshotDeletionPolicy>,
}

/// What happens to a snapshot in vSphere whose VolumeSnapshot is deleted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotDeletionPolicy {
    /// It is deleted.
    Delete,
    /// It stays.
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
