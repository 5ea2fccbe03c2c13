// SPDX-License-Identifier: Apache-2.0
//! What a program takes while it runs.

use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a run of one or several programs took.
#[derive(Clone, Copy, Default)]
pub struct Run {
    pub seconds: f64,
    /// The most that was resident, in MiB.
    pub peak: f64,
}

/// Runs a program to its end: what it took, how it ended, its output and its errors.
pub fn ended(command: &mut Command, log: &Path) -> Result<(Run, ExitStatus, String, String)> {
    let (out, err) = (log.with_extension("out"), log.with_extension("err"));
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out)?)
        .stderr(std::fs::File::create(&err)?)
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak: f64 = 0.0;
    let code = loop {
        // What the kernel counts only grows, so the last look is the one that counts.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(now.unwrap_or_default() / 1024.0);
        match child.try_wait()? {
            Some(code) => break code,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    Ok((
        Run { seconds, peak },
        code,
        std::fs::read_to_string(&out)?,
        std::fs::read_to_string(&err)?,
    ))
}
