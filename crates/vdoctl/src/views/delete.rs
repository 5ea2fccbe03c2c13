// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl delete`.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;

/// What was removed, and what stays.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeleteView {
    pub cluster: String,
    pub message: String,
    /// What stays of VDO.
    pub stays: Vec<StaysView>,
    /// What leads to data, and stays.
    pub data: DataView,
}

/// An object that stays, and why.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StaysView {
    pub object: String,
    pub because: String,
}

/// What leads to data.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataView {
    /// How many volumes, attachments and snapshots there are.
    pub volumes: usize,
    /// The first of them.
    pub named: Vec<String>,
    /// Claims that wait for a volume.
    pub pending_claims: Vec<String>,
    /// Classes that name the driver.
    pub classes: Vec<String>,
}

impl View for DeleteView {
    const KIND: &'static str = "Delete";
}
