// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl plan`, `diff` and `upgrade plan`: `Plan`, `Diff`, `UpgradePlan`; also the object and field types.

use super::super::output::{View, object_name};
use super::matrix::MatrixView;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::api::{Approval, Reason};
use vdo_api::types::{DriverName, DriverVersion};
use vdo_core::manifest::Difference;
use vdo_core::plan::{Action, Because, Skip, Wait};

/// A plan.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedView {
    /// The VDOConfig, as namespace/name.
    pub config: String,
    /// The matrix that the plan is based on; null for a removal, which needs no matrix.
    pub matrix: Option<MatrixView>,
    /// The hash with which a user approves the plan; null if the plan needs no approval.
    pub hash: Option<String>,
    pub approval: Approval,
    /// Whether a user has approved the plan, or the plan needs no approval.
    pub approved: bool,
    /// The changes by `--set` or `-f` that the plan assumes; empty if the plan assumes no change.
    pub supposed: Vec<ChangeView>,
    pub drivers: Vec<DriverChangeView>,
    pub objects: Vec<ItemView>,
    /// The objects that are kept although they are no longer desired.
    pub stays: Vec<SkipView>,
    pub waiting: Vec<WaitView>,
    /// The steps that wait for a person.
    pub blocked: Vec<WaitView>,
    /// The objects that the API server could not validate in a dry run.
    pub not_tried: Vec<SkipView>,
    /// The drivers that get no new objects, each with the reason.
    pub left_alone: Vec<String>,
}

/// Everything that the operator would do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct PlanView(pub PlannedView);

/// The differences between the live objects and the desired state.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct DiffView(pub PlannedView);

/// What happens to a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeKind {
    Install,
    Upgrade,
    Downgrade,
    /// The objects of the driver change, but its version does not change.
    Change,
    Keep,
    Remove,
}

/// The change of a driver, with the old and the new version.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DriverChangeView {
    pub driver: DriverName,
    /// `install`, `upgrade`, `downgrade`, `change`, `keep` or `remove`.
    #[schemars(with = "String")]
    pub change: ChangeKind,
    pub from: Option<DriverVersion>,
    pub to: Option<DriverVersion>,
    pub because: String,
    /// How many objects of the driver change.
    pub objects: usize,
    /// How many of these objects change only in the label of the version.
    pub labels_only: usize,
    /// The workloads whose pods are replaced.
    pub restarts: Vec<String>,
    /// The versions that follow, if this change is only a step of an upgrade path.
    pub then: Vec<String>,
    /// The conditions that must hold before the next version.
    pub preconditions: Vec<String>,
}

/// An object, and what the operator would do with the object.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ItemView {
    pub action: Action,
    pub because: Because,
    pub object: ObjectView,
    pub driver: DriverName,
    pub wave: u8,
    pub fields: Vec<FieldView>,
    /// The patches of the VDOConfig that apply to the object, such as `spec.patches[0]`.
    #[serde(rename = "patchedBy")]
    pub patched_by: Vec<String>,
    /// Why the API server would refuse the object; null if the API server would accept the object.
    pub refusal: Option<String>,
}

/// An object of the cluster.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectView {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// A field that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FieldView {
    pub path: String,
    pub found: Value,
    /// The desired value.
    pub wanted: Value,
}

/// A change of an object by this command.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeView {
    /// `create`, `apply`, `recreate` or `keep`.
    pub action: String,
    pub object: ObjectView,
    pub fields: Vec<FieldView>,
}

/// An object that is not changed or not validated, with the reason.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SkipView {
    pub object: String,
    pub message: String,
}

/// What a driver waits for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaitView {
    pub driver: String,
    pub reason: Reason,
    pub message: String,
}

/// The plan for an upgrade of the drivers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UpgradePlanView {
    /// Whether there is something to upgrade. If not, the document has only `matrix` and an empty `drivers`.
    pub upgrade: bool,
    pub matrix: Option<MatrixView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<BTreeMap<DriverName, DriverVersion>>,
    pub drivers: Vec<DriverChangeView>,
    #[serde(flatten)]
    pub rest: Option<UpgradeRestView>,
}

/// The part of the plan that exists only if there is something to upgrade.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UpgradeRestView {
    pub waiting: Vec<WaitView>,
    pub blocked: Vec<WaitView>,
    /// Sentences about the drivers that cannot reach their new version.
    pub misses: Vec<String>,
    /// The change of the VDOConfig.
    pub change: ChangeView,
    pub objects: Vec<ItemView>,
}

fn names(objects: &[ItemView]) -> Vec<String> {
    let name = |object: &ObjectView| object_name(&object.api_version, &object.kind, &object.name);
    objects.iter().map(|item| name(&item.object)).collect()
}

impl View for PlanView {
    const KIND: &'static str = "Plan";

    fn names(&self) -> Option<Vec<String>> {
        Some(names(&self.0.objects))
    }
}

impl View for DiffView {
    const KIND: &'static str = "Diff";

    fn names(&self) -> Option<Vec<String>> {
        Some(names(&self.0.objects))
    }
}

impl View for UpgradePlanView {
    const KIND: &'static str = "UpgradePlan";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.rest.as_ref().map(|rest| names(&rest.objects)).unwrap_or_default())
    }
}

impl From<&Difference> for FieldView {
    fn from(field: &Difference) -> Self {
        Self {
            path: field.path.clone(),
            found: field.found.clone(),
            wanted: field.wanted.clone(),
        }
    }
}

impl From<&Skip> for SkipView {
    fn from(skip: &Skip) -> Self {
        Self {
            object: skip.id.to_string(),
            message: skip.message.clone(),
        }
    }
}

impl From<&Wait> for WaitView {
    fn from(wait: &Wait) -> Self {
        Self {
            driver: wait.driver.clone(),
            reason: wait.reason,
            message: wait.message.clone(),
        }
    }
}
