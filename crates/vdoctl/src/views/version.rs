// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl version`: `Version`, with the installer of the operator (Helm, OLM).

use super::super::output::View;
use super::matrix::{MatrixView, OwnMatrixView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_api::types::DriverVersion;

/// The versions of vdoctl, the operator, the matrix and the drivers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionView {
    /// The version of vdoctl.
    pub version: String,
    /// The operator of the cluster; null if no operator was found.
    pub operator: Option<OperatorVersionView>,
    /// The matrix of this vdoctl.
    pub matrix: OwnMatrixView,
    /// The matrix of the operator, if the operator uses another matrix than this vdoctl.
    pub matrix_in_use: Option<MatrixView>,
    pub drivers: Vec<KnownDriverView>,
}

/// The program that installed the operator and manages its objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct InstallerView {
    /// `Release` of Helm, `ClusterServiceVersion` or `ClusterExtension` of OLM.
    pub kind: String,
    /// The name of that object.
    pub name: String,
    /// The Subscription of OLM; absent if the user may not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The channel of the Subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

/// The operator, compared with this vdoctl.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperatorVersionView {
    pub version: String,
    /// The program that installed the operator; absent if the operator was installed without such a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_by: Option<InstallerView>,
    /// What to do if the operator has another version than vdoctl; null if the versions are equal.
    pub skew: Option<String>,
}

/// The versions of a driver in the matrix of this vdoctl.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KnownDriverView {
    pub name: String,
    pub versions: Vec<DriverVersion>,
    /// The range of the Kubernetes versions that these versions support together.
    pub kubernetes: String,
    /// The range of the vCenter versions that these versions support together.
    pub vsphere: String,
}

impl View for VersionView {
    const KIND: &'static str = "Version";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.drivers.iter().map(|driver| format!("driver/{}", driver.name)).collect())
    }
}
