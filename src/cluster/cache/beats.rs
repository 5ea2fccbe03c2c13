// SPDX-License-Identifier: Apache-2.0
//! The heartbeats of the watches of the cache, for the liveness probe.

use super::{Cache, lock};
use std::time::{Duration, Instant};
use tokio::time::{Interval, MissedTickBehavior};

/// How often the task of a watch gives a sign when no event comes.
const TICK: Duration = Duration::from_secs(10);

pub(super) fn ticks() -> Interval {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl Cache {
    /// When the task of each watch last gave a sign of life. One that has ended gives none any more. Whether the API server answers makes
    /// no difference: a watch that fails, or waits for an answer, goes on giving signs.
    #[must_use]
    pub fn beats(&self) -> Vec<(String, Instant)> {
        let watches = lock(&self.watches);
        let beats = watches.values().map(|running| (running.id.to_string(), *lock(&running.beat)));
        beats.collect()
    }
}
