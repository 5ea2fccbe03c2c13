//! Programs that are measured: how long they take, and how much memory they need.

use anyhow::{Context, Result, ensure};
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

/// The same of a program that may refuse what it is given: how it ended, its output and its errors.
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

/// The run in the middle by its time, with the most memory of all.
pub fn middle(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let peak = runs.iter().map(|run| run.peak).fold(0.0, f64::max);
    Run {
        peak,
        ..runs.get(runs.len() / 2).copied().unwrap_or_default()
    }
}
