//! The document of `vdoctl version`.

use super::super::output::View;
use super::matrix::{MatrixView, OwnMatrixView};
use schemars::JsonSchema;
use serde::Serialize;
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

/// The operator, beside this vdoctl.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OperatorVersionView {
    pub version: String,
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
