// SPDX-License-Identifier: Apache-2.0
//! Computes the problems that `status` shows, from conditions of the VDOConfig and the connections: severity, cause before effect, command.

use super::super::remedy::{self, About};
use super::super::views::status::ProblemView;
use super::read_status::Config;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use vdo_api::api::{ConditionType, Conditions, Health, Reason, VDOConfigStatus, VsphereCloudConfig};
use vdo_core::drivers;

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Something has to be done.
    Fault,
    /// It is not known.
    Unknown,
    /// It is as it was asked for, or everything still works.
    Notice,
    /// It is only not finished yet.
    Progress,
}

/// Something that is not as it should be.
pub(crate) struct Problem {
    pub condition: String,
    pub reason: String,
    pub severity: Severity,
    pub message: String,
    /// The vSphere connection that is the cause, with the reason of its own condition.
    pub connection: Option<(String, String)>,
    /// The reason of the other problem that it follows from.
    pub follows: Option<String>,
    /// The command that removes the cause, or leads to it.
    pub command: Option<String>,
}

/// What follows from what: where a problem of a driver has one of the first reasons, one of the second reasons is no cause of its own.
const FOLLOWS: [(&[Reason], &[Reason]); 4] = [
    (
        &[Reason::IncompatiblePin, Reason::UnknownVersion, Reason::NoCompatibleVersion],
        &[Reason::KubernetesNotSupported, Reason::VSphereNotSupported],
    ),
    (
        &[Reason::RightsMissing, Reason::AdmissionDenied, Reason::ApprovalRequired],
        &[Reason::WorkloadMissing],
    ),
    (&[Reason::NetworkNotReady], &[Reason::PodsFailing, Reason::WorkloadMissing]),
    (&[Reason::NoEligibleNode], &[Reason::PodsFailing]),
];

impl Problem {
    /// Where everything still `works`, nothing has to be done at once.
    fn of(condition: &Condition, works: bool) -> Self {
        let progress = |reason: &&Reason| reason.as_str() == condition.reason && **reason != Reason::ConnectionNotReady;
        let severity = if condition.reason == Reason::Paused.as_str() {
            Severity::Notice
        } else if Reason::PROGRESS.iter().any(|reason| progress(&reason)) {
            Severity::Progress
        } else if condition.status == "Unknown" {
            Severity::Unknown
        } else if works {
            Severity::Notice
        } else {
            Severity::Fault
        };
        Self {
            condition: condition.type_.clone(),
            reason: condition.reason.clone(),
            severity,
            message: condition.message.clone(),
            connection: None,
            follows: None,
            command: None,
        }
    }

    /// Names the vSphere connection that is the cause: the one that the message begins with, or one with a condition of this very reason.
    fn lead_to(&mut self, connections: &[VsphereCloudConfig]) {
        let conditions = |connection: &VsphereCloudConfig| connection.status.clone().map(|status| status.conditions).unwrap_or_default();
        let summary = self.reason == Reason::ConnectionNotReady.as_str();
        let is_named = |name: &str| {
            self.message
                .strip_prefix(&format!("vSphere connection {name}"))
                .is_some_and(|rest| !rest.starts_with(is_of_name))
        };
        let cause = connections.iter().find_map(|connection| {
            let name = connection.name_any();
            let all = conditions(connection);
            let mut bad = all.iter().filter(|condition| is_problem(condition));
            let found = match summary {
                true => bad.find(|condition| is_named(&name) && condition.type_ == ConditionType::Ready.as_str()),
                false => bad.find(|condition| condition.reason == self.reason),
            };
            Some((name, found?.reason.clone()))
        });
        self.connection = cause;
    }

    /// The reason of the cause.
    pub(super) fn cause(&self) -> &str {
        let of_connection = self.connection.as_ref().map(|(_, reason)| reason);
        self.follows.as_ref().or(of_connection).unwrap_or(&self.reason)
    }

    /// The command that removes the cause, which what follows from another problem has none of.
    fn find_command(&self, config: &Config) -> Option<String> {
        match &self.connection {
            _ if self.follows.is_some() => None,
            Some((name, reason)) => remedy::command(reason, &self.message, About::Connection(name)),
            None => remedy::command(&self.reason, &self.message, About::Config(config)),
        }
    }

    /// Whether it is the cause of another one, of the same driver where it names one.
    fn causes(&self, other: &Self) -> bool {
        let is = |problem: &Self, reasons: &[Reason]| reasons.iter().any(|reason| reason.as_str() == problem.reason);
        let mut named = drivers::KNOWN
            .iter()
            .filter(|driver| remedy::names(&self.message, driver.name))
            .peekable();
        let same = named.peek().is_none() || named.any(|driver| remedy::names(&other.message, driver.name));
        same && self.severity == Severity::Fault && FOLLOWS.iter().any(|(causes, effects)| is(self, causes) && is(other, effects))
    }

    pub(super) fn view(&self) -> ProblemView {
        ProblemView {
            condition: self.condition.clone(),
            reason: self.reason.clone(),
            cause: self.cause().to_owned(),
            command: self.command.clone(),
            progress: self.severity == Severity::Progress,
            known: self.severity != Severity::Unknown,
            fault: self.severity == Severity::Fault,
            message: self.message.clone(),
        }
    }
}

/// What is wrong by a status alone.
fn problems_of(status: &VDOConfigStatus) -> Vec<Problem> {
    let quiet = [ConditionType::Reconciling, ConditionType::Stalled, ConditionType::Upgradeable].map(ConditionType::as_str);
    let mut found: Vec<Problem> = Vec::new();
    let works = works(status);
    let own = status
        .conditions
        .iter()
        .filter(|c| !quiet.contains(&c.type_.as_str()) && c.type_ != "Ready");
    for condition in own.filter(|c| is_problem(c)) {
        add(&mut found, Problem::of(condition, works));
    }
    // Ready sums up the others, so it counts only where it has a reason of its own.
    let ready = Conditions::find(&status.conditions, ConditionType::Ready).filter(|c| is_problem(c));
    let own = ready.filter(|c| found.iter().all(|old| old.reason != c.reason));
    found.extend(own.map(|condition| Problem::of(condition, works)));
    found.sort_by_key(|problem| problem.severity);
    found
}

/// What is wrong, with the connections: worst first, causes before what follows from them, each thing once.
pub(super) fn problems(config: &Config, connections: &[VsphereCloudConfig]) -> Vec<Problem> {
    let status = &config.status;
    let mut found = problems_of(status);
    for problem in &mut found {
        problem.lead_to(connections);
    }
    for connection in connections {
        add_connection(&mut found, connection, works(status));
    }
    for at in 0..found.len() {
        let cause = found
            .iter()
            .find(|other| other.causes(&found[at]))
            .map(|cause| cause.reason.clone());
        found[at].follows = cause;
    }
    for problem in &mut found {
        problem.command = problem.find_command(config);
    }
    found.sort_by_key(|problem| (problem.severity, problem.follows.is_some()));
    found
}

/// Whether everything that was asked for is there and works, or would if management were not paused.
fn works(status: &VDOConfigStatus) -> bool {
    matches!(status.health, Some(Health::Healthy | Health::Paused))
}

/// Adds a problem, unless it is listed already.
fn add(found: &mut Vec<Problem>, problem: Problem) {
    let new = |old: &Problem| !old.message.contains(&problem.message) && !problem.message.contains(&old.message);
    if found.iter().all(new) {
        found.push(problem);
    }
}

/// Adds what is wrong in a vCenter and does not keep its connection from being ready: the machine of a node, or a privilege.
fn add_connection(found: &mut Vec<Problem>, connection: &VsphereCloudConfig, works: bool) {
    let conditions = connection.status.iter().flat_map(|status| &status.conditions);
    for condition in conditions.filter(|c| c.type_ != "Ready" && c.status != "Unknown" && is_problem(c)) {
        if found.iter().any(|old| old.message.contains(&condition.message)) {
            continue;
        }
        let mut problem = Problem::of(condition, works);
        problem.message = format!("vSphere connection {}: {}", connection.name_any(), problem.message);
        problem.connection = Some((connection.name_any(), condition.reason.clone()));
        add(found, problem);
    }
}

/// Whether a letter may be part of a name.
fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}

/// Whether a condition says that something is not as it should be.
fn is_problem(condition: &Condition) -> bool {
    let silent = [Reason::NotRequested.as_str(), Reason::NotChecked.as_str()];
    ConditionType::is_well(&condition.type_, &condition.status) != Some(true) && !silent.contains(&condition.reason.as_str())
}
