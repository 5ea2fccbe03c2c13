// SPDX-License-Identifier: Apache-2.0
//! Programs that are measured: how long they take, and how much memory they need.

use crate::measured::{Run, ended};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;

impl Run {
    /// One after the other.
    pub fn then(self, next: Self) -> Self {
        Self {
            seconds: self.seconds + next.seconds,
            peak: self.peak.max(next.peak),
        }
    }
}

/// Runs a program to its end and gives its output, too.
pub fn run(command: &mut Command, log: &Path) -> Result<(Run, String)> {
    let (run, code, out, err) = ended(command, log)?;
    ensure!(code.success(), "{command:?}: {err}");
    Ok((run, out))
}

/// The run in the middle by its time, with the most memory of all.
pub fn middle(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let peak = runs.iter().map(|run| run.peak).fold(0.0, f64::max);
    Run {
        peak,
        ..runs.get(runs.len() / 2).copied().unwrap_or_default()
    }
}
