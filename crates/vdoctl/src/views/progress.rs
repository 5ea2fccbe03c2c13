// SPDX-License-Identifier: Apache-2.0
//! The events of commands that take their time.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;

/// What goes on in a command that takes its time: one document for each change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressView<'a> {
    /// `done`, `failed`, `note`, or `waiting` for what is named.
    pub state: &'a str,
    pub elapsed_seconds: u64,
    pub messages: &'a [String],
}

impl View for ProgressView<'_> {
    const KIND: &'static str = "Progress";
}
