// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl selftest`.

use super::super::output::View;
use super::super::selftest::{Outcome, Step};
use schemars::JsonSchema;
use serde::Serialize;
use vdo_core::volumes::Finding;

/// What a selftest has made, step by step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelftestView {
    /// Failed where a step has failed, or the test was interrupted.
    pub result: Outcome,
    /// Whether it was stopped by a signal.
    pub interrupted: bool,
    /// The namespace of the test.
    pub namespace: String,
    /// The StorageClass.
    pub storage_class: String,
    /// The access mode.
    pub access_mode: String,
    /// The image of the pods.
    pub image: String,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// The steps.
    pub steps: Vec<StepView>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepView {
    /// The step.
    pub step: Step,
    /// The zone; empty without --zones.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// What became of it.
    pub result: Outcome,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// What was seen, or why it failed or was skipped.
    pub message: String,
    /// Why it failed, as `vdoctl doctor volumes` finds it.
    pub findings: Vec<Finding>,
}

impl SelftestView {
    /// How many steps ended so.
    pub(crate) fn count(&self, result: Outcome) -> usize {
        self.steps.iter().filter(|step| step.result == result).count()
    }
}

impl View for SelftestView {
    const KIND: &'static str = "Selftest";
}
