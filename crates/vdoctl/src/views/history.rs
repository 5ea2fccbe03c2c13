// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl history`. A report is made of it.

use super::super::output::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_core::plan::Revision;

/// What was applied of the drivers. A report is made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HistoryView {
    pub drivers: Vec<DriverHistoryView>,
}

/// What was applied of a driver, the oldest first.
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
