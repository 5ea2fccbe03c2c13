//! Programs that were started and have not ended, such as a command of the kubeconfig that hangs. They would keep the terminal,
//! and the pipes that somebody waits for.

use rustix::process::{Pid, Signal, kill_process};

/// Ends them. Only Linux tells which there are.
pub(super) fn end() {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return;
    };
    let children = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    for child in children.collect::<Vec<_>>().join(" ").split_whitespace() {
        if let Some(child) = child.parse().ok().and_then(Pid::from_raw) {
            // One that has ended in the meantime is as good.
            let _ = kill_process(child, Signal::TERM);
        }
    }
}
