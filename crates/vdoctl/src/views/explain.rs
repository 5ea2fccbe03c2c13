// SPDX-License-Identifier: Apache-2.0
//! The documents of `vdoctl explain`.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;
use vdo_api::api::ConditionType;

/// What a reason means.
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

/// What a condition means.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionView {
    pub condition: ConditionType,
    /// The objects that have it.
    pub objects: Vec<String>,
    pub meaning: String,
    /// Its status where it is not reported.
    pub absent_means: Option<String>,
    pub reasons: Vec<String>,
}

/// What an exit code means.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExitCodeView {
    pub code: u8,
    pub meaning: String,
    /// What to do; null where there is nothing to do.
    pub remedy: Option<String>,
}

/// Every word that is explained.
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
