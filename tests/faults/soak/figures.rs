// SPDX-License-Identifier: Apache-2.0
//! What an operator uses, over a quarter of the time, and whether that stays the same.

use crate::common::large::memory;
use crate::lab::Lab;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::time::Duration;

/// What the operator's process uses now, or has used since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Resident memory, in KiB.
    resident: u64,
    /// Open file descriptors, where they may be seen.
    files: Option<u64>,
    /// Sessions with vCenters.
    sessions: u64,
    /// Bytes of its log.
    log: u64,
    /// Logins that the vCenter has seen since it started.
    logins: u64,
}

/// Several passes through all rounds.
#[derive(Debug)]
pub struct Quarter {
    /// Changes, drift and new matrices.
    pub rounds: usize,
    /// Of the vCenter or the API server.
    pub outages: usize,
    /// From the first to the last.
    pub took: Duration,
    last: Figures,
    log: u64,
    requests: usize,
    passes: u64,
    /// Sums over the passes.
    resident: u64,
    files: Option<u64>,
    sessions: u64,
    logins: u64,
}

impl Figures {
    pub async fn of(lab: &Lab) -> Result<Self> {
        let operator = lab.bed.operator.as_ref().context("no operator")?;
        let process = operator.program().context("no process of the operator")?;
        let metrics = lab.bed.fetch("/metrics").await?;
        let sessions = metrics.lines().find_map(|line| line.strip_prefix("vdo_vcenter_sessions "));
        let logins = lab.bed.vcenter.logins().await?;
        Ok(Self {
            resident: memory(process, "VmRSS")?.context("VmRSS")?,
            files: std::fs::read_dir(format!("/proc/{process}/fd")).ok().map(|all| all.count() as u64),
            sessions: sessions.context("vdo_vcenter_sessions")?.parse()?,
            log: std::fs::metadata(operator.log())?.len(),
            logins: logins.values().map(|one| one.succeeded).sum(),
        })
    }
}

impl Quarter {
    pub fn begin(first: Figures) -> Self {
        Self {
            rounds: 0,
            outages: 0,
            took: Duration::ZERO,
            last: first,
            log: 0,
            requests: 0,
            passes: 0,
            resident: 0,
            files: first.files.map(|_| 0),
            sessions: 0,
            logins: 0,
        }
    }

    /// Adds what was used after one more pass, and the requests to the API server in it.
    pub fn add(&mut self, now: Figures, requests: usize) {
        // A new process, and a vCenter that was started again, begin at nothing.
        let grown = |now: u64, before: u64| if now < before { now } else { now - before };
        self.log += grown(now.log, self.last.log);
        self.logins += grown(now.logins, self.last.logins);
        self.requests += requests;
        self.passes += 1;
        self.resident += now.resident;
        self.files = self.files.and_then(|sum| Some(sum + now.files?));
        self.sessions += now.sessions;
        self.last = now;
    }

    fn of_each(&self, sum: u64) -> f64 {
        sum as f64 / self.passes.max(1) as f64
    }

    /// Name, value in each pass or round, and by how much it may grow: a factor, and what is no growth.
    fn all(&self) -> [(&'static str, Option<f64>, f64, f64); 6] {
        let rounds = self.rounds.max(1) as f64;
        [
            ("memory, MiB", Some(self.of_each(self.resident) / 1024.0), 1.1, 0.5),
            ("file descriptors", self.files.map(|sum| self.of_each(sum)), 1.0, 8.0),
            ("sessions", Some(self.of_each(self.sessions)), 1.0, 0.5),
            ("log, KiB a round", Some(self.log as f64 / 1024.0 / rounds), 1.15, 0.2),
            ("requests a round", Some(self.requests as f64 / rounds), 1.15, 1.0),
            ("logins a pass", Some(self.of_each(self.logins)), 1.15, 1.0),
        ]
    }
}

/// The quarters as the page shows them.
pub fn table(all: &[Quarter]) -> String {
    let mut text = String::from("| quarter | minutes | rounds | outages |");
    let names = all.first().map(Quarter::all).into_iter().flatten().map(|(name, ..)| name);
    let mut line = String::from("|---|---|---|---|");
    for name in names {
        let _ = write!(text, " {name} |");
        line += "---|";
    }
    text = format!("{text}\n{line}\n");
    for (number, quarter) in all.iter().enumerate() {
        let minutes = quarter.took.as_secs_f64() / 60.0;
        let _ = write!(text, "| {} | {minutes:.1} | {} | {} |", number + 1, quarter.rounds, quarter.outages);
        for (_, value, ..) in quarter.all() {
            let _ = match value {
                Some(value) => write!(text, " {value:.1} |"),
                None => write!(text, " not readable |"),
            };
        }
        text.push('\n');
    }
    text
}

/// Whether the later quarter uses no more than the earlier one.
pub fn flat(earlier: &Quarter, later: &Quarter) -> Result<()> {
    for ((name, before, factor, slack), (_, now, ..)) in earlier.all().into_iter().zip(later.all()) {
        if let (Some(before), Some(now)) = (before, now) {
            ensure!(
                now <= before * factor + slack,
                "{name}: {now:.1}, and {before:.1} two quarters before"
            );
        }
    }
    Ok(())
}

#[test]
fn figures_that_grow_are_not_flat() {
    let quarter = |log: u64, files: u64| {
        let mut quarter = Quarter::begin(Figures {
            files: Some(0),
            ..Figures::default()
        });
        quarter.rounds = 16;
        quarter.add(
            Figures {
                log,
                files: Some(files),
                ..Figures::default()
            },
            100,
        );
        quarter
    };
    assert!(flat(&quarter(100_000, 20), &quarter(100_000, 28)).is_ok());
    assert!(flat(&quarter(100_000, 20), &quarter(100_000, 29)).is_err());
    assert!(flat(&quarter(100_000, 20), &quarter(200_000, 20)).is_err());
    assert!(table(&[quarter(100_000, 20)]).contains("| 20.0 |"));
}
