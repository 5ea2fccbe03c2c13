// SPDX-License-Identifier: Apache-2.0
//! Waiting for a thing to become true, never for a time to pass.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// How long anything may take that is not measured: long, for a machine that is busy with something else. What is wrong is mostly seen at once.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks: a tenth of the time waited, within these bounds, so that a long wait costs a busy machine little.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(500);

/// Asks `probe` repeatedly until it gives a value. It fails at once on an error, and after `patience` with what was
/// waited for and the last thing `probe` said was missing.
pub async fn until<T, F>(what: &str, patience: Duration, mut probe: F) -> Result<T>
where
    F: AsyncFnMut() -> Result<Probe<T>>,
{
    let begun = Instant::now();
    let deadline = begun + patience;
    loop {
        let missing = match probe().await? {
            Probe::Ready(value) => return Ok(value),
            Probe::NotYet(missing) => missing,
        };
        if Instant::now() >= deadline {
            bail!("gave up after {patience:?} waiting for {what}: {missing}");
        }
        sleep((begun.elapsed() / 10).clamp(SHORTEST, LONGEST)).await;
    }
}

/// One look at something that is waited for.
#[derive(Debug)]
pub enum Probe<T> {
    /// It is there.
    Ready(T),
    /// It is not; why.
    NotYet(String),
}

impl<T> Probe<T> {
    /// Not there yet, because of this.
    pub fn not_yet(why: impl std::fmt::Display) -> Self {
        Self::NotYet(why.to_string())
    }
}

impl Probe<()> {
    /// There, or missing for this reason.
    pub fn when(ready: bool, otherwise: impl std::fmt::Display) -> Self {
        if ready { Self::Ready(()) } else { Self::not_yet(otherwise) }
    }
}
