// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document `Progress`: one step of a verb that takes long, such as `deploy` or `delete`.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;

/// A line about the progress of a command. The command prints one document for each line.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressView<'a> {
    /// `done`, `failed`, `note`, or `waiting` if the command waits for what `messages` names.
    pub state: &'a str,
    pub elapsed_seconds: u64,
    pub messages: &'a [String],
}

impl View for ProgressView<'_> {
    const KIND: &'static str = "Progress";
}
