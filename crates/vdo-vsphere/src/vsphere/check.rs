// SPDX-License-Identifier: Apache-2.0
//! The types `Check` (result of one condition), `Finding` (problem with a reason) and `Advice` (remedy text and commands).
//!
//! A check decides which of its findings is reported, and whether it only informs.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use vdo_api::api::{Classify, ConditionType, Reason, causes};
use vdo_api::types::{count, with_remedy};

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
                let more = if more > 0 {
                    format!(" (and {})", count(more, "more finding"))
                } else {
                    String::new()
                };
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

/// A problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The reason, a word that `vdoctl explain` explains.
    pub reason: Reason,
    /// The problem, with the name of the object.
    pub message: String,
    /// What to do.
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

/// What to do about a finding, as data: sentences, and what is copied into a shell or a file as it is. Empty when there is nothing to do.
/// As text it is one paragraph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice(Vec<AdviceLine>);

/// A part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdviceLine {
    /// Sentences, or one that leads to what follows.
    Text(String),
    /// A command or a part of a file, which is never broken into lines.
    Verbatim(String),
}

impl Advice {
    /// A sentence that leads to a command.
    #[must_use]
    pub fn run(text: impl Into<String>, command: impl Into<String>) -> Self {
        Self(vec![AdviceLine::Text(text.into()), AdviceLine::Verbatim(command.into())])
    }

    /// Several parts, one below the other.
    #[must_use]
    pub fn of(lines: impl IntoIterator<Item = AdviceLine>) -> Self {
        Self(lines.into_iter().collect())
    }

    /// Ends it with a command, unless it has one.
    pub fn add_command(&mut self, command: impl Into<String>) {
        self.add_commands([command.into()]);
    }

    /// The same with several, of which a person takes one.
    pub fn add_commands(&mut self, commands: impl IntoIterator<Item = String>) {
        let is_command = |line: &AdviceLine| matches!(line, AdviceLine::Verbatim(_));
        if !self.0.iter().any(is_command) {
            self.0.extend(commands.into_iter().map(AdviceLine::Verbatim));
        }
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its parts.
    pub fn lines(&self) -> impl Iterator<Item = &AdviceLine> {
        self.0.iter()
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self(text.lines().map(|line| AdviceLine::Text(line.to_owned())).collect())
    }
}

impl From<&str> for Advice {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Cow<'_, str>> for Advice {
    fn from(text: Cow<'_, str>) -> Self {
        text.into_owned().into()
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, line) in self.0.iter().enumerate() {
            let (AdviceLine::Text(text) | AdviceLine::Verbatim(text)) = line;
            write!(f, "{}{text}", if i > 0 { " " } else { "" })?;
        }
        match self.0.last() {
            Some(AdviceLine::Verbatim(_)) => f.write_str("."),
            _ => Ok(()),
        }
    }
}

impl Serialize for Advice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// As it is written: which parts of it were commands is not in a text.
impl<'de> Deserialize<'de> for Advice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

vdo_api::written_as_text!(Advice);

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
    fn advice_as_text_is_one_paragraph_with_full_stop() {
        for (advice, text) in [
            (Advice::default(), ""),
            (Advice::from(""), ""),
            (Advice::from("Fix it."), "Fix it."),
            (
                Advice::run("Remove the snapshot:", "govc x '*'"),
                "Remove the snapshot: govc x '*'.",
            ),
            (
                Advice::of([
                    AdviceLine::Text("Write:".into()),
                    AdviceLine::Verbatim("a: {b: c}".into()),
                    AdviceLine::Text("Restart it.".into()),
                ]),
                "Write: a: {b: c} Restart it.",
            ),
        ] {
            assert_eq!(advice.to_string(), text);
            assert_eq!(serde_json::to_value(&advice).ok(), Some(text.into()));
            assert_eq!(advice.is_empty(), text.is_empty());
        }
    }

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
