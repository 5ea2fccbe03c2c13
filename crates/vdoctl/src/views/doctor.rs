// SPDX-License-Identifier: Apache-2.0
//! The documents of `vdoctl doctor`. A support bundle holds the first, and the screens are drawn from it there too.

use super::super::doctor::check::{Mark, Subject};
use super::super::exit::Exit;
use super::super::output::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use vdo_admin::fixes::Step;
use vdo_api::api::Reason;
use vdo_vsphere::vsphere::{Advice, NodeReport, NodeTopology, Privileges, SharedDatastores};

/// Everything that was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DoctorView {
    pub subjects: Vec<Subject>,
    /// Each node with its virtual machine.
    pub nodes: Vec<OfConnection<NodeReport>>,
    /// What the account of each connection may do, and what it has to.
    pub privileges: Vec<OfConnection<Privileges>>,
    /// The zones and regions of the nodes.
    pub topology: Vec<OfConnection<NodeTopology>>,
    /// The datastores that all hosts of the nodes reach, by topology segment.
    pub datastores: Vec<OfConnection<SharedDatastores>>,
    /// How many checks hold.
    pub passed: usize,
    /// How many do not.
    pub failed: usize,
    /// Of how many it is not known.
    pub unknown: usize,
    /// How many were not made because no one asked for what they are about.
    pub not_requested: usize,
    /// The exit code.
    pub exit: u8,
}

/// Something with the vSphere connection that it belongs to.
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

/// The nodes with their labels and the tags that these come from.
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

/// What one account needs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RequiredAccountView {
    pub connection: String,
    /// The account as the vCenter knows it.
    pub principal: String,
    pub roles: Vec<RequiredRoleView>,
}

/// A role and where it is needed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RequiredRoleView {
    pub role: String,
    pub privileges: BTreeSet<String>,
    /// The inventory paths.
    pub objects: Vec<String>,
    /// Whether it has to hold for everything below.
    pub propagate: bool,
}

impl View for RequiredRolesView {
    const KIND: &'static str = "RequiredRoles";
}

/// What became of a fix, or of what was made before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FixOutcome {
    /// It would be made.
    Planned,
    /// It was made.
    Made,
    /// A person did not want it.
    Declined,
    /// No command can do it, or not now.
    ByHand,
    /// There was nothing to be done any more.
    Nothing,
    /// The vCenter did not make the first of the steps; the others need it and were not tried.
    Failed,
    /// The command had ended before: the session was gone, or the vCenter did not answer.
    NotTried,
}

/// A fix, with what became of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    pub message: String,
    pub steps: Vec<Step>,
    pub outcome: FixOutcome,
    /// What to do where no command did.
    pub remedy: Advice,
    /// The code that it ends the command with.
    #[serde(skip)]
    pub exit: Exit,
}

/// What a command fixed in a vCenter, or took back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixesView<'a> {
    /// Whether something was changed.
    pub changed: bool,
    pub fixes: &'a [FixView],
}

/// What `doctor --fix` did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct FixedView<'a>(pub FixesView<'a>);

impl View for FixedView<'_> {
    const KIND: &'static str = "DoctorFixes";
}

/// What `doctor --undo` did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct UndoneView<'a>(pub FixesView<'a>);

impl View for UndoneView<'_> {
    const KIND: &'static str = "DoctorUndo";
}
