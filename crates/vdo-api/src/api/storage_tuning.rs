// SPDX-License-Identifier: Apache-2.0
//! Limits and intervals of the CSI driver.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Limits and intervals of the CSI driver. What is left out is the driver's own default.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StorageTuning {
    /// How many volumes the driver asks a vCenter for in one query; default: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub query_limit: Option<i32>,
    /// How many volumes vCenter and cluster may differ by before the driver refuses to list volumes; default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub list_volume_threshold: Option<i32>,
    /// After how many minutes the driver looks for the privileges of its user, and the datastores that it may use, once more; default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub auth_check_minutes: Option<i32>,
    /// After how many minutes the driver reads once more which datastores are preferred; default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub preferred_datastores_minutes: Option<i32>,
}
