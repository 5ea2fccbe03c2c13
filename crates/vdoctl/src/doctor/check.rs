// SPDX-License-Identifier: Apache-2.0
//! The result of one doctor check (name, state, reason, message, remedy, findings), and the subject of several checks.

use super::super::remedy::{self, About};
use super::exit_code::OF_THE_VCENTER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_api::api::{ConditionType, Reason};
use vdo_vsphere::vsphere::{self, Advice, ConnectionReport};

/// The name of the check of the kubelets, which no condition has.
pub(crate) const KUBELETS: &str = "KubeletsExternal";

/// A check, with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    /// The name of the check. If a condition publishes the result, the name is the type of this condition.
    pub check: String,
    /// Whether the check passed: True, False or Unknown.
    pub status: Mark,
    /// The reason of the result. `vdoctl explain` explains the reasons of conditions.
    pub reason: String,
    /// The result of the check, with the name of the object.
    pub message: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: Advice,
    /// All findings of the check, each with its own remedy. `reason`, `message` and `remedy` describe the first finding.
    pub findings: Vec<Finding>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Mark {
    /// The check passed.
    True,
    /// The check failed.
    False,
    /// The result is unknown.
    Unknown,
}

/// A finding of a check, with its own remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub reason: String,
    pub message: String,
    pub remedy: Advice,
}

/// The kind of the subject of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Topic {
    Cluster,
    Operator,
    Drivers,
    Connection,
}

/// The subject of checks, for example a vSphere connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subject {
    pub subject: Topic,
    /// The name of the subject.
    pub name: String,
    /// Facts about the subject, for example its address or its version.
    pub about: Vec<String>,
    /// The checks, in the order in which they are made.
    pub checks: Vec<Check>,
}

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

#[cfg(test)]
mod tests {
    use super::super::super::Exit;
    use super::super::exit_code::worst;
    use super::*;

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
        let back = Subject::of_drivers(vec![condition(ConditionType::RolledBack, "True")]);
        assert_eq!(worst(&[back], &[]), Exit::Differences);
    }
}
