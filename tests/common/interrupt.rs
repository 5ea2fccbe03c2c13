// SPDX-License-Identifier: Apache-2.0
//! A person presses Ctrl-C while a program writes.

use super::PATIENCE;
use anyhow::Result;
use std::process::{Child, Command, Output, Stdio};
use vdo_testbed::{Act, Probe, Proxy, until};

/// Starts a program whose requests go through this proxy, interrupts it while the write of this number is under way, and gives what it says. The
/// write comes to its end. Without a number the program is interrupted after its first write.
pub async fn interrupted(proxy: &Proxy, held: Option<usize>, command: &mut Command) -> Result<Output> {
    proxy.begin(move |call| match call.write {
        Some(_) if call.write == held => Act::Hold,
        _ => Act::Pass,
    });
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    until("the write at which the program is interrupted", PATIENCE, async || {
        let seen = proxy.writes();
        Ok(Probe::when(seen >= held.unwrap_or(1), format!("{seen} writes were seen")))
    })
    .await?;
    interrupt(&child)?;
    proxy.pass_held();
    Ok(child.wait_with_output()?)
}

/// Sends what Ctrl-C sends.
pub fn interrupt(child: &Child) -> Result<()> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id())?);
    Ok(nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT)?)
}
