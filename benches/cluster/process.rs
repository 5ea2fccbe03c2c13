// SPDX-License-Identifier: Apache-2.0
//! What the kernel says about the operator's process.

use crate::common::Bed;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Sizes in KiB.
#[derive(Clone, Copy)]
pub struct Memory {
    /// All pages in memory, those of the program file included.
    pub resident: f64,
    /// Of these, the ones that are the process's own: heap and stacks.
    pub own: f64,
    /// The most that was resident since the start.
    pub peak: f64,
}

/// The program of this name in a process group.
pub fn find(group: u32, name: &str) -> Result<PathBuf> {
    for entry in std::fs::read_dir("/proc").context("/proc; this part needs Linux")?.flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue; // not a process, or it has just ended
        };
        // PID (NAME) STATE PARENT GROUP …
        let Some((head, tail)) = stat.rsplit_once(") ") else { continue };
        let its_group = tail.split(' ').nth(2).and_then(|text| text.parse::<u32>().ok());
        if its_group == Some(group) && head.ends_with(&format!("({name}")) {
            return Ok(entry.path());
        }
    }
    anyhow::bail!("there is no process {name} in group {group}")
}

/// The operator's process.
pub fn of_operator(bed: &Bed) -> Result<PathBuf> {
    find(bed.operator.as_ref().context("no operator")?.group(), "vdo-operator")
}

/// The API server's process.
pub fn of_server(bed: &Bed) -> Result<PathBuf> {
    let groups = bed.cluster.process_groups();
    let found = groups.into_iter().find_map(|group| find(group, "kube-apiserver").ok());
    found.context("no API server runs")
}

/// The processor time that a process has taken, in seconds; it counts hundredths.
pub fn seconds(process: &Path) -> Result<f64> {
    let stat = std::fs::read_to_string(process.join("stat"))?;
    let (_, tail) = stat.rsplit_once(") ").context("a process without name")?;
    // STATE PARENT … : the user's and the system's time are the twelfth and the thirteenth.
    let ticks = tail.split(' ').skip(11).take(2).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(f64::from(ticks) / 100.0)
}

/// The processor time of all threads that a process has now, in nanoseconds, exactly.
pub fn nanoseconds(process: &Path) -> Result<f64> {
    let mut all = 0.0;
    for thread in std::fs::read_dir(process.join("task"))?.flatten() {
        let text = std::fs::read_to_string(thread.path().join("schedstat"))?;
        all += text.split(' ').next().context("a thread without times")?.parse::<f64>()?;
    }
    Ok(all)
}

/// The memory of a process, given as its folder.
pub fn memory(process: &Path) -> Result<Memory> {
    let path = process.join("status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let field = |name: &str| -> Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line
            .and_then(|line| line.split_whitespace().next())
            .with_context(|| format!("{name} of the operator"))?;
        Ok(number.parse()?)
    };
    Ok(Memory {
        resident: field("VmRSS")?,
        own: field("RssAnon")?,
        peak: field("VmHWM")?,
    })
}
