// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl doctor`: `Doctor`, `DoctorTopology`, `RequiredRoles`, `DoctorFixes`, `DoctorUndo`.
//! A support bundle contains `Doctor`, and `doctor --from` prints the screens from it.

use super::super::doctor::check::{Mark, Subject};
use super::super::exit::Exit;
use super::super::output::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use vdo_admin::fixes::Step;
use vdo_api::api::Reason;
use vdo_vsphere::vsphere::{Advice, NodeReport, NodeTopology, Privileges, SharedDatastores};

/// The results of all checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DoctorView {
    pub subjects: Vec<Subject>,
    /// Each node with its virtual machine.
    pub nodes: Vec<OfConnection<NodeReport>>,
    /// The privileges that the account of each connection needs, has and lacks.
    pub privileges: Vec<OfConnection<Privileges>>,
    /// The zones and regions of the nodes.
    pub topology: Vec<OfConnection<NodeTopology>>,
    /// The datastores that all hosts of the nodes reach, by topology segment.
    pub datastores: Vec<OfConnection<SharedDatastores>>,
    /// The number of checks that passed.
    pub passed: usize,
    /// The number of checks that failed.
    pub failed: usize,
    /// The number of checks whose result is unknown.
    pub unknown: usize,
    /// The number of checks that were not made, because the configuration does not request what they check.
    pub not_requested: usize,
    /// The exit code.
    pub exit: u8,
}

/// An entry, with the vSphere connection that the entry belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OfConnection<T> {
    #[serde(flatten)]
    pub of: T,
    /// The name of the connection.
    pub connection: String,
}

impl View for DoctorView {
    const KIND: &'static str = "Doctor";

    fn names(&self) -> Option<Vec<String>> {
        let name = |subject: &Subject| format!("{}/{}", subject.subject, subject.name);
        Some(self.subjects.iter().map(name).collect())
    }
}

impl DoctorView {
    /// With the sums of its checks.
    pub(crate) fn counted(self, exit: Exit) -> Self {
        let count = |mark| self.subjects.iter().map(|subject| subject.count(mark)).sum::<usize>();
        let checks = self.subjects.iter().flat_map(|subject| &subject.checks);
        let not_requested = checks.filter(|check| check.is_not_requested()).count();
        Self {
            passed: count(Mark::True),
            failed: count(Mark::False),
            unknown: count(Mark::Unknown).saturating_sub(not_requested),
            not_requested,
            exit: exit as u8,
            ..self
        }
    }
}

/// The zone and region labels of each node, with the tags behind the labels.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TopologyView<'a> {
    pub topology: &'a [OfConnection<NodeTopology>],
}

impl View for TopologyView<'_> {
    const KIND: &'static str = "DoctorTopology";
}

/// The roles that the configuration needs, by account.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RequiredRolesView {
    pub accounts: Vec<RequiredAccountView>,
}

/// The roles that one account needs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RequiredAccountView {
    pub connection: String,
    /// The account as the vCenter knows it.
    pub principal: String,
    pub roles: Vec<RequiredRoleView>,
}

/// A role, and the objects on which the account needs the role.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RequiredRoleView {
    pub role: String,
    pub privileges: BTreeSet<String>,
    /// The inventory paths of the objects.
    pub objects: Vec<String>,
    /// Whether the role must also apply to everything below the objects.
    pub propagate: bool,
}

impl View for RequiredRolesView {
    const KIND: &'static str = "RequiredRoles";
}

/// The outcome of a fix, or of the undo of a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FixOutcome {
    /// The command would make the fix; this is a dry run.
    Planned,
    /// The command made the fix.
    Made,
    /// The user did not confirm the fix.
    Declined,
    /// The command cannot make the fix, or cannot make the fix now.
    ByHand,
    /// Nothing was left to do.
    Nothing,
    /// The first step failed. The other steps need the first step and were not tried.
    Failed,
    /// The command ended before this fix, because the session ended or the vCenter did not answer.
    NotTried,
}

/// A fix, with its outcome.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    pub message: String,
    pub steps: Vec<Step>,
    pub outcome: FixOutcome,
    /// What the user has to do, if the command did not make the fix.
    pub remedy: Advice,
    /// The code that it ends the command with.
    #[serde(skip)]
    pub exit: Exit,
}

/// The fixes that a command made in a vCenter, or that it has undone.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixesView<'a> {
    /// Whether the command changed something in the vCenter.
    pub changed: bool,
    pub fixes: &'a [FixView],
}

/// The result of `doctor --fix`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct FixedView<'a>(pub FixesView<'a>);

impl View for FixedView<'_> {
    const KIND: &'static str = "DoctorFixes";
}

/// The result of `doctor --undo`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct UndoneView<'a>(pub FixesView<'a>);

impl View for UndoneView<'_> {
    const KIND: &'static str = "DoctorUndo";
}
