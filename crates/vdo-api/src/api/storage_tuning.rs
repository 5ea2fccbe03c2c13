// SPDX-License-Identifier: Apache-2.0
//! The field `spec.storageProvider.tuning`: limits and intervals of the CSI driver for the section `[Global]` of `csi-vsphere.conf`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Limits and intervals of the CSI driver. The driver uses its own default for a field that is not set.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StorageTuning {
    /// How many volumes the driver requests from a vCenter in one query; default: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub query_limit: Option<i32>,
    /// The largest allowed difference between the number of volumes in the vCenter and the number of volumes in the cluster; default: 50.
    /// If the difference is larger, the driver refuses to list volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub list_volume_threshold: Option<i32>,
    /// The interval in minutes at which the driver checks the privileges of its user and the datastores that the user may use; default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub auth_check_minutes: Option<i32>,
    /// The interval in minutes at which the driver reads the list of preferred datastores; default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub preferred_datastores_minutes: Option<i32>,
}
