// SPDX-License-Identifier: Apache-2.0
//! The error type of `vdo-load`: the problem, the remedies, and the exit code 2 (wrong input) or 3 (refused by a program or node).

use std::fmt;

/// What is missing or failed, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    code: u8,
    what: String,
    remedies: Vec<String>,
}

impl Stop {
    /// Something is missing or wrong on this machine, or in what was asked for: exit code 2.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(2, what)
    }

    /// A program, a cluster or a node refused: exit code 3.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::new(3, what)
    }

    fn new(code: u8, what: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            remedies: Vec::new(),
        }
    }

    /// A line that says what to do.
    #[must_use]
    pub fn try_this(mut self, remedy: impl Into<String>) -> Self {
        self.remedies.push(remedy.into());
        self
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Several as one: every node says what it lacks.
    pub fn all(stops: Vec<Self>) -> Option<Self> {
        let code = stops.iter().map(Self::code).max()?;
        let lines: Vec<String> = stops.iter().map(ToString::to_string).collect();
        Some(Self::new(code, lines.join("\n")))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.remedies.iter().try_for_each(|remedy| write!(f, "\n{remedy}"))
    }
}
