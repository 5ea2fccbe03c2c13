// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl delete`: `Delete`, with the objects that stay.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a removal, with the objects that stay.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeleteView {
    pub cluster: String,
    pub message: String,
    /// The objects of VDO that stay.
    pub stays: Vec<StaysView>,
    /// The objects that lead to data on volumes. These objects stay.
    pub data: DataView,
}

/// An object that stays, with the reason.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StaysView {
    pub object: String,
    pub because: String,
}

/// The objects that lead to data on volumes.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DataView {
    /// How many volumes, attachments and snapshots there are.
    pub volumes: usize,
    /// The names of the first volumes, attachments and snapshots.
    pub named: Vec<String>,
    /// Claims that wait for a volume.
    pub pending_claims: Vec<String>,
    /// The classes that name the driver, for example StorageClasses.
    pub classes: Vec<String>,
}

impl View for DeleteView {
    const KIND: &'static str = "Delete";
}
