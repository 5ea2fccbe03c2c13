// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl configure` and `vdoctl secrets set`: `Configured`.

use super::super::output::View;
use super::plan::ChangeView;
use schemars::JsonSchema;
use serde::Serialize;

/// The changes that the command wrote, or that it would write without `--dry-run`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfiguredView {
    pub dry_run: bool,
    pub changes: Vec<ChangeView>,
}

impl View for ConfiguredView {
    const KIND: &'static str = "Configured";
}
