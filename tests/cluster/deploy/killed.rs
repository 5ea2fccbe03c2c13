//! Killed at any write, or while it waits, the next one completes the installation.

use super::{Deploy, administrator, err, operate, out};
use crate::common::{NS, PATIENCE, sample};
use crate::fixture::BARE;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use vdo_testbed::{Act, Probe, until};

#[test]
fn deploy_killed_at_writes_and_while_waiting_is_completed_by_the_next() -> Result<()> {
    if !sample::is_drawn(&sample::KILLS, 0, 2) {
        return Ok(());
    }
    BARE.run(async |bed| {
        let (proxy, through) = administrator(bed).await?;
        let deploy = Deploy::to(bed)?;
        // The next run writes only what is left, so late numbers come of themselves.
        let writes: Vec<usize> = (1..=5).collect();
        let mut kills = sample::some("writes at which deploy is killed", &writes, 4);
        kills.sort_unstable();
        let last = (kills.last().copied().unwrap_or_default(), Act::StopAfter);
        for number in kills {
            for act in [Act::StopBefore, Act::StopAfter] {
                proxy.begin(move |call| if call.write == Some(number) { act } else { Act::Pass });
                let command = deploy.command(bed, &["--no-wait", "--kubeconfig", &through]);
                let mut child = tokio::process::Command::from(command).spawn()?;
                let stopped = tokio::select! {
                    stopped = proxy.stopped(PATIENCE) => stopped,
                    ended = child.wait() => Err(anyhow!("it ended: {}", ended?)),
                };
                // An end of its own is in the message below.
                let _ = child.start_kill();
                let output = child.wait_with_output().await?;
                stopped.with_context(|| format!("write {number}, {act:?}: {}{}", out(&output), err(&output)))?;
                proxy.resume();
                if (number, act) != last {
                    // What a killed vdoctl holds runs out after 15 s; the last one is waited for.
                    bed.delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdoctl").await?;
                }
            }
        }
        proxy.begin(|_| Act::Pass);

        // SIGINT while it waits: the operator has everything, and goes on alone.
        let waiting = deploy.command(bed, &[]).spawn()?;
        operate(bed).await?;
        until("everything to be written", PATIENCE, async || {
            let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            Ok(Probe::when(config != Value::Null, "no VDOConfig"))
        })
        .await?;
        let waiting_pid = nix::unistd::Pid::from_raw(i32::try_from(waiting.id())?);
        nix::sys::signal::kill(waiting_pid, nix::sys::signal::Signal::SIGINT)?;
        let waited = waiting.wait_with_output()?;
        // It may have been done by then.
        ensure!(
            matches!(waited.status.code(), Some(130 | 0)),
            "{}: {}{}",
            waited.status,
            out(&waited),
            err(&waited)
        );
        bed.until_ready().await?;
        let again = deploy.run(bed, &[])?;
        ensure!(
            again.status.success() && out(&again).contains("installed and healthy"),
            "{}{}",
            out(&again),
            err(&again)
        );
        Ok(())
    })
}
