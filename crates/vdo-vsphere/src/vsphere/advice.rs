// SPDX-License-Identifier: Apache-2.0
//! What to do about a finding, as data: sentences, and what is copied into a shell or a file as it is.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// What to do. Empty when there is nothing to do. As text it is one paragraph.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_as_text_is_one_paragraph_with_full_stop() {
        for (advice, text) in [
            (Advice::default(), ""),
            (Advice::from(""), ""),
            (Advice::from("Fix it."), "Fix it."),
            (Advice::run("Remove it:", "govc x '*'"), "Remove it: govc x '*'."),
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
}
