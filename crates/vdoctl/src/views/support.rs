// SPDX-License-Identifier: Apache-2.0
//! What a support bundle says of itself.

use super::super::output::View;
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A support bundle: its `bundle.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SupportBundleView {
    /// The version of the layout.
    pub schema: u64,
    /// The version of the vdoctl that made it.
    pub vdoctl: String,
    pub taken: Option<Timestamp>,
    pub cluster: BundleClusterView,
    /// Of the operator.
    pub namespace: String,
    /// The exit code of each verb.
    pub exits: BTreeMap<String, u8>,
    /// What could not be collected, and why.
    pub missing: Vec<String>,
    /// What had no room.
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
