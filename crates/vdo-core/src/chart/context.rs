// SPDX-License-Identifier: Apache-2.0
//! The variables `cluster`, `connections` and `namespace` of templates: facts about nodes, control plane and vCenters, without secrets.

use serde::{Deserialize, Serialize};

/// What a template may know about the world besides its values and its release. No secrets, no clock.
///
/// Templates see `cluster`, `connections` and `namespace` from here, `values` (defaults overlaid with the user's), `release` (the
/// folded release file) and `chart` (`name`, `version`, `appVersion`) from the chart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// The cluster the drivers run in.
    pub cluster: Cluster,
    /// The vCenters, in the order of the configuration.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// The namespace of the operator's own configuration. Where a driver goes is a value of its chart.
    #[serde(default)]
    pub namespace: String,
}

/// Facts about the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The version as the API server reports it, for example `v1.34.4`.
    pub version: String,
    /// Major and minor, for example `1.34`.
    pub minor: String,
    /// The distribution, when it is known, for example `OpenShift`.
    #[serde(default)]
    pub distribution: Option<String>,
    /// The UID of the `kube-system` namespace: who this cluster is.
    #[serde(default)]
    pub uid: String,
    /// The control plane.
    #[serde(default)]
    pub control_plane: ControlPlane,
}

/// Facts about the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// How many nodes can run control-plane pods.
    pub count: u32,
}

impl Default for ControlPlane {
    /// Three, the usual number, when they were not counted.
    fn default() -> Self {
        Self { count: 3 }
    }
}

/// A vCenter, without credentials.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// The name of the connection object.
    pub name: String,
    /// The address of the vCenter.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// Names or inventory paths of the datacenters; empty means all.
    #[serde(default)]
    pub datacenters: Vec<String>,
}
