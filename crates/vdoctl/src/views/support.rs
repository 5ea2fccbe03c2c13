// SPDX-License-Identifier: Apache-2.0
//! The file `bundle.json` of a support bundle: its cluster, exit codes of verbs, and missing parts.

use super::super::output::View;
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file `bundle.json` of a support bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SupportBundleView {
    /// The version of the layout of the bundle.
    pub schema: u64,
    /// The version of the vdoctl that made the bundle.
    pub vdoctl: String,
    pub taken: Option<Timestamp>,
    pub cluster: BundleClusterView,
    /// The namespace of the operator.
    pub namespace: String,
    /// The exit code of each verb.
    pub exits: BTreeMap<String, u8>,
    /// The parts that could not be collected, each with the reason.
    pub missing: Vec<String>,
    /// The parts that were left out because of the size limit.
    pub left_out: Vec<String>,
}

/// The cluster of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct BundleClusterView {
    pub name: String,
    pub server: String,
    pub version: String,
}

impl View for SupportBundleView {
    const KIND: &'static str = "SupportBundle";
}
