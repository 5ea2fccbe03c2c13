// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl history`: `History`. `vdoctl report` reads it.

use super::super::output::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_core::plan::Revision;

/// The revisions of the drivers that were applied. `vdoctl report` reads this document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HistoryView {
    pub drivers: Vec<DriverHistoryView>,
}

/// The revisions of a driver that were applied, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DriverHistoryView {
    pub name: String,
    pub revisions: Vec<Revision>,
}

impl View for HistoryView {
    const KIND: &'static str = "History";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.drivers.iter().map(|driver| format!("driver/{}", driver.name)).collect())
    }
}
