// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl adopt` and `vdoctl adopt --move`: `Adoption` and `Move`.

use super::super::doctor::check::Check;
use super::super::output::{View, object_name};
use super::plan::{ObjectView, PlannedView};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The drivers that another tool installed, their settings, and the objects that describe the drivers for VDO.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdoptionView {
    pub workloads: Vec<WorkloadView>,
    pub settings: Vec<SettingView>,
    pub losses: Vec<LossView>,
    /// The objects that describe the installation, in the order in which they are created.
    pub objects: Vec<ObjectView>,
    /// The vSphere connections to the drivers' vCenters that exist in the cluster already. The adoption does not change these connections.
    pub connections: Vec<String>,
    /// The operator's plan for the drivers after the adoption; null if a check failed, and after the objects were created.
    pub plan: Option<PlannedView>,
    /// The failed checks that prevent a plan.
    pub failed_checks: Vec<Check>,
    /// Whether the command created the objects.
    pub written: bool,
}

/// A workload that runs a driver.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadView {
    pub driver: String,
    /// The version of the driver, from the tag of the image; null if the tag names no version.
    pub version: Option<String>,
    pub object: ObjectView,
    /// The property by which the driver was recognised, such as its image.
    pub evidence: String,
    /// Who installed the workload: a Helm release, `kubectl apply`, the controller that manages the workload, or else the first field
    /// manager.
    pub installed_by: String,
}

/// A setting that VDO adopts.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingView {
    pub object: ObjectView,
    pub field: String,
    /// The value; null if the setting is a part of a Secret.
    pub value: Option<Value>,
    /// The place in which the setting was found, for example an object, a key and a line.
    pub origin: String,
}

/// A setting that would be lost, because VDO has no field for the setting.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LossView {
    /// The key that `--accept-loss` takes for this setting.
    pub key: String,
    /// The place in which the setting was found, for example an object, a key and a line.
    pub origin: String,
    pub reason: String,
    pub accepted: bool,
}

/// The move of drivers from another tool to VDO, or the undo of this move.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MoveView {
    pub dry_run: bool,
    /// Whether the command undoes the move.
    pub undo: bool,
    /// The steps that the command made; in a dry run, the steps that the command would make if nothing fails.
    pub steps: Vec<MoveStepView>,
    /// What prevents the next step; null if nothing prevents this step.
    pub blocked: Option<String>,
    /// Whether the move or the undo is complete.
    pub done: bool,
    /// The commands that delete the old drivers. After these commands, the move cannot be undone.
    pub last_step: Vec<String>,
}

/// A step of a move.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MoveStepView {
    /// `save`, `stop`, `hold`, `confirm`, `move`, `unlabel`, `pause`, `remove`, `putBack`, `restore`, `discard`, or `wait`.
    pub action: String,
    /// The object that the step changes; null for the step `wait`.
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
