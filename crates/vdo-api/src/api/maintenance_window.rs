// SPDX-License-Identifier: Apache-2.0
//! The field `spec.maintenanceWindows`: the schedule, duration and time zone in which the operator may change drivers automatically.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A time in which the operator may change installed drivers automatically.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// When the window opens, in crontab format: minute, hour, day of month, month, day of week, for example 0 2 * * SAT.
    #[schemars(length(min = 1, max = 128))]
    pub schedule: String,
    /// How long the window is open, for example 2h or 1h30m. A change that has started is completed even after the window closes.
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("write a time longer than zero, for example 2h"))]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"), length(max = 32))]
    pub duration: String,
    /// The time zone of the schedule, by its name in the IANA time zone database, for example Europe/Berlin.
    #[serde(default = "utc")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}

fn utc() -> String {
    "UTC".into()
}
