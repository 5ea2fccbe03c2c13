// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl selftest`: `Selftest`, with the result of each step.

use super::super::output::View;
use super::super::selftest::{Outcome, Step};
use schemars::JsonSchema;
use serde::Serialize;
use vdo_core::volume_diagnosis::Finding;

/// The result of a selftest, with its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelftestView {
    /// `failed` if a step failed or the test was interrupted.
    pub result: Outcome,
    /// Whether a signal stopped the test.
    pub interrupted: bool,
    /// The namespace of the test.
    pub namespace: String,
    /// The StorageClass of the volumes.
    pub storage_class: String,
    /// The access mode of the volumes.
    pub access_mode: String,
    /// The image of the pods.
    pub image: String,
    /// The duration of the test in milliseconds.
    pub milliseconds: u64,
    /// The steps.
    pub steps: Vec<StepView>,
}

/// A step of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepView {
    /// The step.
    pub step: Step,
    /// The zone; absent without --zones.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The result of the step.
    pub result: Outcome,
    /// The duration of the step in milliseconds.
    pub milliseconds: u64,
    /// What the step found, or why the step failed or was skipped.
    pub message: String,
    /// The causes of a failure, as `vdoctl doctor volumes` finds the causes.
    pub findings: Vec<Finding>,
}

impl SelftestView {
    /// How many steps have this result.
    pub(crate) fn count(&self, result: Outcome) -> usize {
        self.steps.iter().filter(|step| step.result == result).count()
    }
}

impl View for SelftestView {
    const KIND: &'static str = "Selftest";
}
