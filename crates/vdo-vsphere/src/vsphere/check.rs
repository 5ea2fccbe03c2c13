// SPDX-License-Identifier: Apache-2.0
//! One stage of the check of a connection with its findings, which of them is reported, and whether the stage only informs.

use super::Advice;
use serde::Serialize;
use vdo_api::api::{Classify, ConditionType, Reason, causes};
use vdo_api::types::with_remedy;

/// One stage of the check of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The condition under which it is published.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// Whether it holds; `None` when that is not known.
    pub status: Option<bool>,
    /// Why. One that holds can have a reason too, which then informs.
    pub reason: Reason,
    /// What was found, about which object.
    pub message: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: Advice,
    /// More findings of the same stage, the worst first. The first is the one that reason and message tell.
    pub findings: Vec<Finding>,
}

impl Check {
    /// It holds.
    #[must_use]
    pub fn passed(kind: ConditionType, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: Some(true),
            reason: Reason::Healthy,
            message: message.into(),
            remedy: Advice::default(),
            findings: vec![],
        }
    }

    /// It could not be looked at.
    #[must_use]
    pub fn unknown(kind: ConditionType, message: impl Into<String>) -> Self {
        Self {
            status: None,
            reason: Reason::NotChecked,
            ..Self::passed(kind, message)
        }
    }

    /// It does not hold, or is unknown when `status` is `None`.
    #[must_use]
    pub fn failed(
        kind: ConditionType,
        status: Option<bool>,
        reason: Reason,
        message: impl Into<String>,
        remedy: impl Into<Advice>,
    ) -> Self {
        Self {
            status,
            reason,
            remedy: remedy.into(),
            ..Self::passed(kind, message)
        }
    }

    /// It holds when there are no findings; else the first one speaks for all.
    #[must_use]
    pub fn of(kind: ConditionType, passed: impl Into<String>, findings: Vec<Finding>) -> Self {
        match findings.first() {
            None => Self::passed(kind, passed),
            Some(first) => {
                let more = findings.len() - 1;
                let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                let message = format!("{}{more}", first.message);
                Self {
                    findings: findings.clone(),
                    ..Self::failed(kind, Some(false), first.reason, message, first.remedy.clone())
                }
            }
        }
    }

    /// Whether it tells something and keeps nothing from being ready: not every node is a machine of this vCenter, zones
    /// are the administrator's to choose, and a cluster id concerns the storage driver alone, which waits for it.
    #[must_use]
    pub fn is_informational(&self) -> bool {
        matches!(
            self.kind,
            ConditionType::NodesFound | ConditionType::TopologyConsistent | ConditionType::Distinct | ConditionType::ClusterIdAvailable
        )
    }

    /// The text of its condition: what was found, and what to do.
    #[must_use]
    pub fn text(&self) -> String {
        with_remedy(&self.message, &self.remedy.to_string())
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What kind of thing.
    pub reason: Reason,
    /// What was found, about which object.
    pub message: String,
    /// What to do about it.
    pub remedy: Advice,
}

impl Finding {
    /// A failure, as one.
    #[must_use]
    pub fn of(failure: &impl Classify) -> Self {
        Self::new(failure.reason(), causes(failure), failure.remedy().unwrap_or_default())
    }

    /// A finding.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>, remedy: impl Into<Advice>) -> Self {
        Self {
            reason,
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

/// A word for a command line: in quotes where a shell would take it apart.
pub(super) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '%' | '@' | ':');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_word_special_characters_are_quoted() {
        for (word, shown) in [
            ("/DC0/vm/w-1", "/DC0/vm/w-1"),
            ("/DC 0/vm/w", "'/DC 0/vm/w'"),
            ("it's", r"'it'\''s'"),
            ("X\\k8s", "'X\\k8s'"),
            ("$(id)", "'$(id)'"),
            ("", "''"),
        ] {
            assert_eq!(shell(word), shown);
        }
    }
}
