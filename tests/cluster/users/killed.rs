// SPDX-License-Identifier: Apache-2.0
//! Killed at any call, the next run goes on. `VDO_FAULTS=all` kills at every call.

use super::{SECRET, command, done, ended, planted, start, two, user_in_secret};
use crate::common::sample::{self, setting};
use crate::common::{Bed, NS, PATIENCE};
use crate::deploy::administrator;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use vdo_testbed::{Act, Probe, until};

fn all() -> bool {
    setting("VDO_FAULTS").as_deref() == Some("all")
}

/// Runs a verb until it is done, and kills each run before one of its changes in the vCenter: the second one of its own where all are
/// wanted, since each run begins with a new password for an account whose Secret is not written yet.
pub async fn until_done(bed: &Bed, verb: &str) -> Result<()> {
    let pace = match all() {
        true => 2,
        false => sample::some(&format!("changes that each run of users {verb} makes"), &[3, 4, 5, 6, 7, 8, 9], 1)[0],
    };
    for kills in 0.. {
        ensure!(kills < 60, "{verb} does not end");
        bed.vcenter.close_gate(pace).await?;
        let mut child = start(bed, &mut command(bed, verb, &["--yes"])?)?;
        let over = until("the command to be stopped or to end", PATIENCE, async || {
            let waiting = bed.vcenter.gate().await?.waiting > 0;
            Ok(match (waiting, child.try_wait()?.is_some()) {
                (true, _) => Probe::Ready(false),
                (_, true) => Probe::Ready(true),
                _ => Probe::not_yet("it runs"),
            })
        })
        .await?;
        if !over {
            planted::is_not_around(bed, child.id())?;
            child.kill()?;
            child.wait()?;
            until("the call to end with its client", PATIENCE, async || {
                let gate = bed.vcenter.gate().await?;
                Ok(Probe::when(gate.waiting == 0, format!("{gate:?}")))
            })
            .await?;
            continue;
        }
        bed.vcenter.open_gate().await?;
        let (code, text) = ended(bed, child)?;
        ensure!(code == 0, "users {verb} after {kills} kills: exit {code}\n{text}");
        ensure!(kills > 0, "users {verb} was never killed");
        return Ok(());
    }
    Ok(())
}

/// Where a rotation is killed.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At changes in the vCenter.
    Changes,
    /// At a write of the Secret.
    Write(usize, Act),
    /// Nowhere: another administrator rotates at the same time.
    Two,
}

/// Rotates with kills; gives the account in the end.
pub async fn rotated(bed: &Bed) -> Result<String> {
    let places = [
        Place::Two,
        Place::Changes,
        Place::Write(1, Act::StopBefore),
        Place::Write(1, Act::StopAfter),
        Place::Write(2, Act::StopBefore),
        Place::Write(2, Act::StopAfter),
    ];
    let chosen = match all() {
        true => places.to_vec(),
        false => sample::some("places at which a rotation is killed", &places, 1),
    };
    for place in chosen {
        let before = user_in_secret(bed).await?;
        match place {
            Place::Two => two::at_the_first_change(bed, "rotate", &["--yes"]).await.context("two at once")?,
            Place::Changes => until_done(bed, "rotate").await?,
            Place::Write(number, act) => {
                killed_at_write(bed, number, act).await.with_context(|| format!("{place:?}"))?;
                // Once it is over, there is nothing to go on with.
                if number == 1 || remembers(bed).await? {
                    done(bed, "rotate", &["--yes"])?;
                }
            }
        }
        let after = user_in_secret(bed).await?;
        ensure!(after != before && !remembers(bed).await?, "{place:?}: {after} after {before}");
    }
    user_in_secret(bed).await
}

/// Whether the Secret names an account that is to be deleted.
async fn remembers(bed: &Bed) -> Result<bool> {
    let secret = bed.get("v1", SECRET.0, NS, SECRET.1).await?;
    Ok(secret["metadata"]["annotations"]["users.vdo.vmware.com/rotated-from"] != Value::Null)
}

async fn killed_at_write(bed: &Bed, number: usize, act: Act) -> Result<()> {
    let (proxy, through) = administrator(bed).await?;
    proxy.begin(move |call| if call.write == Some(number) { act } else { Act::Pass });
    let mut command = command(bed, "rotate", &["--yes"])?;
    let mut child = start(bed, command.env("VDO_KUBECONFIG", through))?;
    let stopped = until("the command to be stopped", PATIENCE, async || {
        ensure!(child.try_wait()?.is_none(), "it ended");
        Ok(Probe::when(proxy.is_stopped(), format!("{} writes", proxy.writes())))
    })
    .await;
    // An end of its own is in the message below.
    let _ = child.kill();
    let output = child.wait_with_output()?;
    stopped.with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    proxy.resume();
    Ok(())
}
