// SPDX-License-Identifier: Apache-2.0
//! Measures how long each stage of a reconcile takes.

use std::time::{Duration, Instant};

/// Measures one stage after the other.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    /// The first stage begins.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// A stage is over, and the next one begins: its name, and how long it took.
    pub(super) fn lap(&mut self, stage: &'static str) -> (&'static str, Duration) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.0);
        self.0 = now;
        (stage, took)
    }
}
