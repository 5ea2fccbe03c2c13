//! Programs that were started and have not ended, such as a command of the kubeconfig that hangs. They would keep the terminal,
//! and the pipes that the parent waits for.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;

/// How often nothing new must be found before it is believed. Children are listed for each thread on its own, and those of a thread that
/// ends meanwhile go over to another one, which may have been asked already.
const LOOKS: u32 = 3;

/// Ends them. Only Linux tells which there are.
pub(super) fn end() {
    let (mut known, mut looks) = (BTreeSet::new(), 0);
    while looks < LOOKS {
        let new: Vec<i32> = running().into_iter().filter(|child| known.insert(*child)).collect();
        looks = if new.is_empty() { looks + 1 } else { 0 };
        for child in new.into_iter().filter_map(Pid::from_raw) {
            // One that has ended in the meantime is as good.
            let _ = kill_process(child, Signal::TERM);
        }
    }
}

fn running() -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let children = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    children
        .join(" ")
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}
