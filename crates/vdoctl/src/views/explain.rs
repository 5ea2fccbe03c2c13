// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl explain`: `Reason`, `Condition`, `ExitCode`, `ReasonList`.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;
use vdo_api::api::ConditionType;

/// The meaning of a reason.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReasonView {
    pub reason: String,
    pub section: String,
    pub cause: Option<String>,
    pub shown_in: Option<String>,
    pub evidence: Option<String>,
    pub remedy: Option<String>,
    pub note: Option<String>,
}

/// The meaning of a condition.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionView {
    pub condition: ConditionType,
    /// The kinds of objects that have the condition.
    pub objects: Vec<String>,
    pub meaning: String,
    /// The status that counts if the condition is absent; null if the condition is never absent.
    pub absent_means: Option<String>,
    pub reasons: Vec<String>,
}

/// The meaning of an exit code.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExitCodeView {
    pub code: u8,
    pub meaning: String,
    /// What to do; null if there is nothing to do.
    pub remedy: Option<String>,
}

/// Every reason, condition and exit code that the verb explains.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReasonListView {
    pub reasons: Vec<ReasonView>,
    pub conditions: Vec<ConditionView>,
    pub exit_codes: Vec<ExitCodeView>,
}

impl View for ReasonView {
    const KIND: &'static str = "Reason";
}

impl View for ConditionView {
    const KIND: &'static str = "Condition";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.objects.clone())
    }
}

impl View for ExitCodeView {
    const KIND: &'static str = "ExitCode";
}

impl View for ReasonListView {
    const KIND: &'static str = "ReasonList";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.reasons.iter().map(|one| one.reason.clone()).collect())
    }
}
