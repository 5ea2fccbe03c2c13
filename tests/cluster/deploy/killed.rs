// SPDX-License-Identifier: Apache-2.0
//! Killed at any write, or while it waits, the next one completes the installation.

use super::{Deploy, administrator, err, operate, out};
use crate::common::interrupt::{interrupt, interrupted};
use crate::common::{NS, PATIENCE, sample};
use crate::fixture::BARE;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use vdo_testbed::{Act, Probe, until};

#[test]
#[ignore = "long"]
fn deploy_killed_at_writes_and_while_waiting_is_completed_by_the_next() -> Result<()> {
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
        interrupt(&waiting)?;
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

/// Interrupted while it writes, it ends before the next write, says how many objects are written, and leaves no Lease that the next one waits for.
#[test]
#[ignore = "long"]
fn deploy_interrupted_says_what_was_written_and_releases_its_lease() -> Result<()> {
    BARE.run(async |bed| {
        const HELD: usize = 4;
        let (proxy, through) = administrator(bed).await?;
        let deploy = Deploy::to(bed)?;
        let first = deploy
            .command(bed, &["--no-wait", "--kubeconfig", &through, "--dry-run=client"])
            .output()?;
        let all = err(&first).matches("would be applied").count() + out(&first).matches("would be applied").count();
        let mut command = deploy.command(bed, &["--no-wait", "--kubeconfig", &through]);
        // However many writes it still makes until it hears the signal, it says that number.
        let output = interrupted(&proxy, Some(HELD), &mut command).await?;
        let said = err(&output);
        let written = proxy.handled().iter().filter(|handled| handled.call.write.is_some()).count();
        ensure!(
            output.status.code() == Some(130) && said.contains(&format!("interrupted: {written} of {all} objects written")),
            "{}: {written} of {all}: {said}",
            output.status
        );
        ensure!(said.contains("Run the same command again"), "{said}");
        let lease = bed.get("coordination.k8s.io/v1", "Lease", "kube-system", "vdoctl").await?;
        ensure!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty(), "{lease}");
        proxy.begin(|_| Act::Pass);
        let again = deploy.run(bed, &["--no-wait", "--kubeconfig", &through])?;
        let said = format!("{}{}", out(&again), err(&again));
        ensure!(again.status.success() && !said.contains("another vdoctl"), "{said}");
        Ok(())
    })
}
