//! What was looked at, as data for a screen or a program.

use super::super::Exit;
use super::super::failure::parts;
use crate::api::{ConditionType, Reason};
use crate::vsphere;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Check {
    /// Its name: the type of the condition where it is published as one.
    pub check: String,
    /// True, False or Unknown.
    pub status: Mark,
    /// The reason; that of a condition is one that `vdoctl explain` knows.
    pub reason: String,
    /// What was found, about which object.
    pub message: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: String,
    /// Everything of this kind that was found, each with its own remedy; the first is the one that is told above.
    pub findings: Vec<Finding>,
}

/// Whether it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Mark {
    /// It does.
    True,
    /// It does not.
    False,
    /// It could not be told.
    Unknown,
}

/// One of several things that are wrong in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    pub reason: String,
    pub message: String,
    pub remedy: String,
}

/// What checks are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subject {
    /// `cluster`, `drivers` or `connection`.
    pub subject: &'static str,
    /// Its name.
    pub name: String,
    /// What is known of it in a few words each, such as its address and its version.
    pub about: Vec<String>,
    /// The checks, in the order in which they are made.
    pub checks: Vec<Check>,
}

/// The last stage at which a vCenter as such is judged; what comes after is about its content.
const OF_THE_VCENTER: [ConditionType; 5] = [
    ConditionType::Resolved,
    ConditionType::Connected,
    ConditionType::Trusted,
    ConditionType::IsVCenter,
    ConditionType::Authenticated,
];

impl Check {
    pub(super) fn new(check: impl Into<String>, status: Option<bool>, reason: Reason, message: &str, remedy: &str) -> Self {
        Self {
            check: check.into(),
            status: match status {
                Some(true) => Mark::True,
                Some(false) => Mark::False,
                None => Mark::Unknown,
            },
            reason: reason.as_str().into(),
            message: message.into(),
            remedy: remedy.into(),
            findings: Vec::new(),
        }
    }

    /// What a condition says.
    pub(super) fn of(condition: &Condition) -> Self {
        let (message, remedy) = match condition.status.as_str() {
            "True" => (condition.message.clone(), String::new()),
            _ => parts(&condition.message),
        };
        Self {
            check: condition.type_.clone(),
            status: match condition.status.as_str() {
                "True" => Mark::True,
                "False" => Mark::False,
                _ => Mark::Unknown,
            },
            reason: condition.reason.clone(),
            message,
            remedy,
            findings: Vec::new(),
        }
    }

    /// A check of a vSphere connection.
    pub(super) fn of_connection(check: &vsphere::Check) -> Self {
        let (message, remedy) = match check.remedy.as_str() {
            "" if check.status != Some(true) => parts(&check.message),
            own => (check.message.clone(), own.to_owned()),
        };
        Self {
            findings: check.findings.iter().map(Finding::of).collect(),
            ..Self::new(check.kind.as_str(), check.status, check.reason, &message, &remedy)
        }
    }

    /// Whether it holds, and there is something to do all the same.
    pub(super) fn informs(&self) -> bool {
        self.status == Mark::True && self.reason != Reason::Healthy.as_str() && !self.remedy.is_empty()
    }

    /// Whether it could only not be looked at, because of another one.
    pub(super) fn follows(&self) -> bool {
        self.status == Mark::Unknown && self.reason == Reason::NotChecked.as_str()
    }

    fn exit(&self, subject: &Subject) -> Exit {
        let kinds = OF_THE_VCENTER.map(ConditionType::as_str);
        match self.status {
            Mark::True => Exit::Ok,
            _ if self.follows() || self.reason == Reason::NotRequested.as_str() => Exit::Ok,
            _ if subject.subject == "connection" && kinds.contains(&self.check.as_str()) => Exit::Vcenter,
            Mark::False => Exit::Differences,
            Mark::Unknown => Exit::Ok,
        }
    }
}

impl Finding {
    pub(super) fn of(finding: &vsphere::Finding) -> Self {
        Self {
            reason: finding.reason.as_str().into(),
            message: finding.message.clone(),
            remedy: finding.remedy.clone(),
        }
    }
}

impl Subject {
    pub(super) fn count(&self, mark: Mark) -> usize {
        self.checks.iter().filter(|check| check.status == mark).count()
    }
}

/// The worst result: a cluster that cannot be reached, a vCenter that cannot or refuses, nothing deployed, a check that failed.
pub(super) fn worst(subjects: &[Subject], other: &[Exit]) -> Exit {
    const WORST_FIRST: [Exit; 4] = [Exit::Cluster, Exit::Vcenter, Exit::NotFound, Exit::Differences];
    let all = subjects
        .iter()
        .flat_map(|subject| subject.checks.iter().map(move |check| check.exit(subject)));
    let all: Vec<Exit> = all.chain(other.iter().copied()).collect();
    WORST_FIRST.into_iter().find(|exit| all.contains(exit)).unwrap_or(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(subject: &'static str, checks: &[(&str, Option<bool>, Reason)]) -> Subject {
        Subject {
            subject,
            name: "x".into(),
            about: vec![],
            checks: checks
                .iter()
                .map(|(name, status, reason)| Check::new(*name, *status, *reason, "m", ""))
                .collect(),
        }
    }

    #[test]
    fn doctor_exit_code_several_checks_is_the_worst() {
        let well = ("Resolved", Some(true), Reason::Healthy);
        let connection = |check| subject("connection", &[well, check, ("NodesFound", None, Reason::NotChecked)]);
        let wrong = |kind: &'static str, reason| (kind, Some(false), reason);
        for (check, exit) in [
            (well, Exit::Ok),
            (("StorageFound", None, Reason::NotChecked), Exit::Ok),
            (wrong("Connected", Reason::Unreachable), Exit::Vcenter),
            (wrong("Authenticated", Reason::InvalidCredentials), Exit::Vcenter),
            (("Authenticated", None, Reason::TimedOut), Exit::Vcenter),
            (wrong("NodesFound", Reason::NodeNotFound), Exit::Differences),
            (wrong("CredentialsFound", Reason::SecretNotFound), Exit::Differences),
        ] {
            assert_eq!(worst(&[connection(check)], &[]), exit, "{check:?}");
        }
        let drivers = subject(
            "drivers",
            &[
                ("StorageReady", None, Reason::NotRequested),
                wrong("CloudProviderReady", Reason::PodsFailing),
            ],
        );
        let refused = connection(wrong("Authenticated", Reason::AccountLocked));
        assert_eq!(worst(std::slice::from_ref(&drivers), &[]), Exit::Differences);
        assert_eq!(worst(&[drivers.clone(), refused.clone()], &[Exit::NotFound]), Exit::Vcenter);
        assert_eq!(worst(&[drivers, refused], &[Exit::Cluster]), Exit::Cluster);
    }
}
