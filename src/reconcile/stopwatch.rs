//! How long the stages of a reconcile take.

use crate::status::Report;
use std::time::Instant;

/// Measures one stage after the other.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    /// The first stage begins.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// A stage is over, and the next one begins.
    pub(super) fn lap(&mut self, report: &mut Report, stage: &'static str) {
        let now = Instant::now();
        report.stages.push((stage, now.saturating_duration_since(self.0)));
        self.0 = now;
    }
}
