// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl adopt`.

use super::super::doctor::check::Check;
use super::super::output::{View, object_name};
use super::plan::{ObjectView, PlannedView};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What another tool has set, and what becomes of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdoptionView {
    pub workloads: Vec<WorkloadView>,
    pub settings: Vec<SettingView>,
    pub losses: Vec<LossView>,
    /// The objects that describe the installation, in the order in which they are created.
    pub objects: Vec<ObjectView>,
    /// Connections to the drivers' vCenters that are in the cluster already. They stay as they are.
    pub connections: Vec<String>,
    /// What the operator would do with the drivers; null where a check failed before, and after the creation.
    pub plan: Option<PlannedView>,
    /// What is in the way of it.
    pub failed_checks: Vec<Check>,
    /// Whether they were created.
    pub written: bool,
}

/// A workload that runs a driver.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadView {
    pub driver: String,
    /// By the tag of its image; null where it says none.
    pub version: Option<String>,
    pub object: ObjectView,
    /// By what it is known.
    pub evidence: String,
    /// Who made it: a Helm release, `kubectl apply`, the controller that keeps it, or else the field manager that wrote it first.
    pub installed_by: String,
}

/// A setting that is taken along.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingView {
    pub object: ObjectView,
    pub field: String,
    /// Null where it is part of a Secret.
    pub value: Option<Value>,
    /// Where it was found.
    pub origin: String,
}

/// A setting that no field can express.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LossView {
    /// What `--accept-loss` takes.
    pub key: String,
    /// Where it was found.
    pub origin: String,
    pub reason: String,
    pub accepted: bool,
}

/// The move of drivers to VDO, or the way back.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MoveView {
    pub dry_run: bool,
    /// Whether it is the way back.
    pub undo: bool,
    /// The steps that were taken; of a dry run those that would be taken, if nothing fails.
    pub steps: Vec<MoveStepView>,
    /// What keeps it from going on; null where nothing does.
    pub blocked: Option<String>,
    /// Whether it is at its end.
    pub done: bool,
    /// The commands that delete the old drivers, after which no way leads back.
    pub last_step: Vec<String>,
}

/// A step of a move.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MoveStepView {
    /// `save`, `stop`, `hold`, `confirm`, `move`, `unlabel`, `pause`, `remove`, `putBack`, `restore`, `discard`, or `wait`.
    pub action: String,
    /// Null of one that waits.
    pub object: Option<ObjectView>,
    pub message: String,
}

impl View for MoveView {
    const KIND: &'static str = "Move";
}

impl View for AdoptionView {
    const KIND: &'static str = "Adoption";

    fn names(&self) -> Option<Vec<String>> {
        let name = |one: &ObjectView| object_name(&one.api_version, &one.kind, &one.name);
        Some(self.objects.iter().map(name).collect())
    }
}
