//! What the kernel says about the operator's process.

use anyhow::{Context, Result};
use std::path::PathBuf;

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

/// The memory of a process, given as its folder.
pub fn memory(process: &std::path::Path) -> Result<Memory> {
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
