// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl version`.

use super::super::output::View;
use super::matrix::{MatrixView, OwnMatrixView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_api::types::DriverVersion;

/// What this build is and knows.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionView {
    /// Of vdoctl.
    pub version: String,
    /// The operator of the cluster, where it was found.
    pub operator: Option<OperatorVersionView>,
    /// The matrix of this vdoctl.
    pub matrix: OwnMatrixView,
    /// The matrix of the operator, where that is another one.
    pub matrix_in_use: Option<MatrixView>,
    pub drivers: Vec<KnownDriverView>,
}

/// The program that installed the operator and keeps its objects as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct InstallerView {
    /// `Release` of Helm, `ClusterServiceVersion` or `ClusterExtension` of OLM.
    pub kind: String,
    /// The name of that object.
    pub name: String,
    /// The Subscription of OLM, where it may be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The channel of the Subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

/// The operator, beside this vdoctl.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperatorVersionView {
    pub version: String,
    /// The program that installed it, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_by: Option<InstallerView>,
    /// What to do about it where it is of another version.
    pub skew: Option<String>,
}

/// What a matrix knows of a driver.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KnownDriverView {
    pub name: String,
    pub versions: Vec<DriverVersion>,
    /// The versions of Kubernetes that these support together.
    pub kubernetes: String,
    /// The versions of vCenter that these support together.
    pub vsphere: String,
}

impl View for VersionView {
    const KIND: &'static str = "Version";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.drivers.iter().map(|driver| format!("driver/{}", driver.name)).collect())
    }
}
