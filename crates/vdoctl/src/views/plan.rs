// SPDX-License-Identifier: Apache-2.0
//! The documents of `vdoctl plan`, `diff` and `upgrade plan`.

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
    /// The matrix that was decided with; null for a removal, which needs none.
    pub matrix: Option<MatrixView>,
    /// The hash by which it is approved; null where nothing has to be.
    pub hash: Option<String>,
    pub approval: Approval,
    /// Whether a person has approved it, or no one has to.
    pub approved: bool,
    /// The change that was supposed; empty where the plan is that of the cluster as it is.
    pub supposed: Vec<ChangeView>,
    pub drivers: Vec<DriverChangeView>,
    pub objects: Vec<ItemView>,
    /// What stays although it is no longer desired.
    pub stays: Vec<SkipView>,
    pub waiting: Vec<WaitView>,
    /// What waits for a person.
    pub blocked: Vec<WaitView>,
    /// What the API server could not be asked about.
    pub not_tried: Vec<SkipView>,
    /// Drivers that are left at what was applied last, each with why.
    pub left_alone: Vec<String>,
}

/// Everything that would be done.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct PlanView(pub PlannedView);

/// What differs.
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
    /// Its objects change, its version does not.
    Change,
    Keep,
    Remove,
}

/// Which version becomes which.
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
    /// How many of its objects change.
    pub objects: usize,
    /// How many of these only in the label of the version.
    pub labels_only: usize,
    /// Workloads whose pods are replaced.
    pub restarts: Vec<String>,
    /// The versions after it, where it is a step on the way.
    pub then: Vec<String>,
    /// What must hold before the next version.
    pub preconditions: Vec<String>,
}

/// What becomes of an object.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ItemView {
    pub action: Action,
    pub because: Because,
    pub object: ObjectView,
    pub driver: DriverName,
    pub wave: u8,
    pub fields: Vec<FieldView>,
    /// The patches of the VDOConfig that are in it, such as `spec.patches[0]`.
    #[serde(rename = "patchedBy")]
    pub patched_by: Vec<String>,
    /// Why the API server would refuse it.
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
    /// What is desired.
    pub wanted: Value,
}

/// A change of an object by this command.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeView {
    /// `create`, `apply` or `keep`.
    pub action: String,
    pub object: ObjectView,
    pub fields: Vec<FieldView>,
}

/// An object that is left alone, and why.
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

/// What an upgrade of the drivers would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UpgradePlanView {
    /// Whether there is something to upgrade; the other lists are there only then.
    pub upgrade: bool,
    pub matrix: Option<MatrixView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<BTreeMap<DriverName, DriverVersion>>,
    pub drivers: Vec<DriverChangeView>,
    #[serde(flatten)]
    pub rest: Option<UpgradeRestView>,
}

/// The rest of an upgrade.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UpgradeRestView {
    pub waiting: Vec<WaitView>,
    pub blocked: Vec<WaitView>,
    /// Drivers that would not come to their version.
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
