// SPDX-License-Identifier: Apache-2.0
//! What was looked at, as data for a screen or a program.

use super::super::Exit;
use super::super::remedy::{self, About};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_api::api::{ConditionType, Reason};
use vdo_vsphere::vsphere::{self, Advice, ConnectionReport};

/// The name of the check of the kubelets, which no condition has.
pub(crate) const KUBELETS: &str = "KubeletsExternal";

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    /// Its name: the type of the condition where it is published as one.
    pub check: String,
    /// True, False or Unknown.
    pub status: Mark,
    /// The reason; that of a condition is one that `vdoctl explain` knows.
    pub reason: String,
    /// What was found, about which object.
    pub message: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: Advice,
    /// Everything of this kind that was found, each with its own remedy; the first is the one above.
    pub findings: Vec<Finding>,
}

/// Whether it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Mark {
    /// It does.
    True,
    /// It does not.
    False,
    /// It is not known.
    Unknown,
}

/// One of several things that are wrong in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub reason: String,
    pub message: String,
    pub remedy: Advice,
}

/// The kind of thing that checks are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Topic {
    Cluster,
    Operator,
    Drivers,
    Connection,
}

/// What checks are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subject {
    pub subject: Topic,
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
    pub(crate) fn new(check: impl Into<String>, status: Option<bool>, reason: Reason, message: &str, remedy: impl Into<Advice>) -> Self {
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

    /// A condition: it holds where its status is good news.
    pub(crate) fn of(condition: &Condition) -> Self {
        Self {
            check: condition.type_.clone(),
            status: match ConditionType::is_well(&condition.type_, &condition.status) {
                Some(true) => Mark::True,
                Some(false) => Mark::False,
                None => Mark::Unknown,
            },
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            remedy: Advice::default(),
            findings: Vec::new(),
        }
    }

    /// A check of a vSphere connection.
    pub(crate) fn of_connection(check: &vsphere::Check) -> Self {
        Self {
            findings: check.findings.iter().map(Finding::of).collect(),
            ..Self::new(
                check.kind.as_str(),
                check.status,
                check.reason,
                &check.message,
                check.remedy.clone(),
            )
        }
    }

    /// For an account that was typed and is in no Secret yet: what to do about a refused login.
    pub(crate) fn without_secret(&mut self) {
        if self.reason == Reason::InvalidCredentials.as_str() {
            self.remedy =
                "Run the command again with the right user name and password; the user name needs its domain, for example k8s@vsphere.local.".into();
            self.findings.clear();
        } else if self.reason == Reason::PasswordExpired.as_str() {
            self.remedy = "Set a new password in vCenter, and run the command again with the new password.".into();
            self.findings.clear();
        }
    }

    /// Its own remedy and those of its findings, each with reason and message.
    fn remedies(&mut self) -> impl Iterator<Item = (&String, &String, &mut Advice)> {
        let own = std::iter::once((&self.reason, &self.message, &mut self.remedy));
        own.chain(self.findings.iter_mut().map(|one| (&one.reason, &one.message, &mut one.remedy)))
    }

    /// Adds the command that removes the cause, where there is one and the remedy has none.
    pub(crate) fn lead_to_command(&mut self, about: About<'_>) {
        if self.status != Mark::False {
            return;
        }
        for (reason, message, advice) in self.remedies() {
            if let Some(command) = remedy::command(reason, message, about) {
                advice.add_command(command);
            }
        }
    }

    /// Whether it holds, and there is still something to do.
    pub(crate) fn informs(&self) -> bool {
        self.status == Mark::True && self.reason != Reason::Healthy.as_str() && !self.remedy.is_empty()
    }

    /// Whether it is about the login, or about what comes before it.
    pub(crate) fn is_of_the_login(&self) -> bool {
        self.check == ConditionType::CredentialsFound.as_str() || OF_THE_VCENTER.map(ConditionType::as_str).contains(&self.check.as_str())
    }

    /// Whether it could only not be looked at, because of another one.
    pub(crate) fn follows(&self) -> bool {
        self.status == Mark::Unknown && self.reason == Reason::NotChecked.as_str()
    }

    /// Whether it was not made because no one asked for what it is about.
    pub(crate) fn is_not_requested(&self) -> bool {
        self.status == Mark::Unknown && self.reason == Reason::NotRequested.as_str()
    }

    fn exit(&self, subject: &Subject) -> Exit {
        let kinds = OF_THE_VCENTER.map(ConditionType::as_str);
        match self.status {
            Mark::True => Exit::Ok,
            _ if self.follows() || self.is_not_requested() => Exit::Ok,
            _ if subject.subject == Topic::Connection && kinds.contains(&self.check.as_str()) => Exit::Vcenter,
            Mark::False => Exit::Differences,
            Mark::Unknown => Exit::Ok,
        }
    }
}

impl Finding {
    pub(crate) fn of(finding: &vsphere::Finding) -> Self {
        Self {
            reason: finding.reason.as_str().into(),
            message: finding.message.clone(),
            remedy: finding.remedy.clone(),
        }
    }
}

impl Subject {
    /// The drivers that are going to be installed.
    pub(crate) fn of_drivers(checks: Vec<Check>) -> Self {
        Self {
            subject: Topic::Drivers,
            name: "cloud provider and CSI".into(),
            about: Vec::new(),
            checks,
        }
    }

    /// Where the certificate of a vCenter that was typed is refused: the flags that accept it, one of them for a person who has compared it.
    pub(crate) fn lead_to_thumbprint(&mut self, report: &ConnectionReport) {
        const COMPARED: [Reason; 3] = [
            Reason::CertificateUntrusted,
            Reason::CertificateNameMismatch,
            Reason::ThumbprintMismatch,
        ];
        let Some(certificate) = &report.certificate else { return };
        let flag = format!("--thumbprint {}", certificate.sha256);
        for check in self.checks.iter_mut().filter(|check| check.status == Mark::False) {
            let compared = |reason: &String| COMPARED.iter().any(|known| known.as_str() == reason);
            let remedies = check.remedies().filter(|(reason, ..)| compared(reason));
            remedies.for_each(|(reason, _, remedy)| {
                let bundle = (*reason == Reason::CertificateUntrusted.as_str()).then(|| "--ca-file FILE".to_owned());
                remedy.add_commands(bundle.into_iter().chain([flag.clone()]));
            });
        }
    }

    pub(crate) fn count(&self, mark: Mark) -> usize {
        self.checks.iter().filter(|check| check.status == mark).count()
    }
}

/// The worst result: a cluster that cannot be reached, a vCenter that cannot or refuses, nothing deployed, a check that failed, a check
/// that the user lacks a right for.
pub(crate) fn worst<'a>(subjects: impl IntoIterator<Item = &'a Subject>, other: &[Exit]) -> Exit {
    const WORST_FIRST: [Exit; 5] = [Exit::Cluster, Exit::Vcenter, Exit::NotFound, Exit::Differences, Exit::Refused];
    let all = subjects
        .into_iter()
        .flat_map(|subject| subject.checks.iter().map(move |check| check.exit(subject)));
    let all: Vec<Exit> = all.chain(other.iter().copied()).collect();
    WORST_FIRST.into_iter().find(|exit| all.contains(exit)).unwrap_or(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(subject: Topic, checks: &[(&str, Option<bool>, Reason)]) -> Subject {
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

    /// A change that failed and was rolled back is not a check that passed.
    #[test]
    fn doctor_condition_of_which_true_is_bad_news_fails() {
        let condition = |kind: ConditionType, status: &str| {
            let mut all = vdo_api::api::Conditions::new(
                Vec::new(),
                None,
                k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH),
            );
            all.set(kind, Some(status == "True"), Reason::RolledBack, "revision 1 is back");
            Check::of(&all.finish()[0])
        };
        for (kind, status, expected) in [
            (ConditionType::RolledBack, "True", Mark::False),
            (ConditionType::RolledBack, "False", Mark::True),
            (ConditionType::UpgradeAvailable, "True", Mark::True),
            (ConditionType::StorageReady, "True", Mark::True),
            (ConditionType::StorageReady, "False", Mark::False),
        ] {
            assert_eq!(condition(kind, status).status, expected, "{kind} {status}");
        }
        let mut back = subject(Topic::Drivers, &[]);
        back.checks.push(condition(ConditionType::RolledBack, "True"));
        assert_eq!(worst(&[back], &[]), Exit::Differences);
    }

    #[test]
    fn doctor_exit_code_several_checks_is_the_worst() {
        let well = ("Resolved", Some(true), Reason::Healthy);
        let connection = |check| subject(Topic::Connection, &[well, check, ("NodesFound", None, Reason::NotChecked)]);
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
            Topic::Drivers,
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
