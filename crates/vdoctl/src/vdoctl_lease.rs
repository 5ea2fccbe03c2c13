// SPDX-License-Identifier: Apache-2.0
//! Lets only one vdoctl at a time write to a cluster, by a Lease: waits for another vdoctl, and reports the written objects after a signal.

use super::context::Context;
use super::progress::Progress;
use super::{CliError, Exit, stopping};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use vdo::cluster::{ClusterError, Election, Fence, Writer};
use vdo_api::types::count;
use vdo_core::install::VDOCTL;

/// How long another vdoctl may write. Its Lease runs out sooner where it was killed.
const TURN: Duration = Duration::from_secs(40);

/// Writes while no other vdoctl does.
pub(super) struct Alone<'a> {
    writer: Writer,
    fence: Fence,
    progress: &'a mut Progress,
    written: usize,
    of: usize,
}

impl Alone<'_> {
    /// Makes one write. The Lease runs out where the API server answers late; then its turn is waited for again, because nothing was written.
    ///
    /// A verb that is stopped ends before its next write, so that what was written is known.
    pub(super) async fn write<T>(&mut self, write: impl AsyncFn(&Writer) -> Result<T, ClusterError>) -> Result<T, CliError> {
        loop {
            go_on()?;
            match write(&self.writer).await {
                Err(ClusterError::NotLeading { .. }) => turn(&self.fence, self.progress).await?,
                result => return Ok(result?),
            }
        }
    }

    /// One object more is written.
    pub(super) fn wrote(&mut self) {
        self.written += 1;
        self.say();
    }

    /// What is said when the verb is stopped here.
    fn say(&self) {
        let what = format!("{} of {} written", self.written, count(self.of, "object"));
        stopping::when_stopped(what, "Run the same command again to write the remaining objects.");
    }
}

/// Ends a verb that was asked to stop.
pub(super) fn go_on() -> Result<(), CliError> {
    stopping::is_asked().map_or(Ok(()), |exit| Err(stopping::failure(exit)))
}

/// Does this while no other vdoctl writes to the cluster; `of` is the number of objects that are written. Stopped, it says how many were, and
/// releases the Lease.
pub(super) async fn alone(
    context: &Context,
    progress: &mut Progress,
    of: usize,
    work: impl AsyncFnOnce(&mut Alone<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let _armed = stopping::arm();
    let client = context.ports.client.clone();
    let fence = Fence::shut();
    let writer = Writer::new(client.clone(), |_, _| {}).named(VDOCTL).behind(fence.clone());
    let mut election = Election::new(client, VDOCTL, holder(), fence.clone());
    let result = {
        let campaign = election.run(|_| {});
        let work = async {
            let mut alone = Alone {
                writer,
                fence,
                progress,
                written: 0,
                of,
            };
            alone.say();
            turn(&alone.fence, alone.progress).await?;
            work(&mut alone).await
        };
        tokio::select! {
            result = work => result,
            () = campaign => Ok(()),
        }
    };
    // One that runs out by itself delays the next vdoctl, and nothing else.
    let _ = election.release().await;
    if result.is_ok() {
        stopping::forget();
    }
    result
}

/// Who holds the Lease, for people who look at it.
fn holder() -> String {
    format!("vdoctl-{}-{}", vdo_system::host_name(), std::process::id())
}

/// Waits until no other vdoctl writes.
async fn turn(fence: &Fence, progress: &mut Progress) -> Result<(), CliError> {
    let begun = Instant::now();
    while !fence.is_open() {
        go_on()?;
        if begun.elapsed() > TURN {
            return Err(CliError::new(
                Exit::Refused,
                format!("another vdoctl has been writing to this cluster for {} s", TURN.as_secs()),
                format!("The Lease shows who runs the other vdoctl: kubectl -n kube-system get lease {VDOCTL}. Nothing was written."),
            ));
        }
        if begun.elapsed() > Duration::from_secs(2) {
            progress.waiting(&["another vdoctl writes to this cluster".into()]);
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
