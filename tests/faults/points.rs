// SPDX-License-Identifier: Apache-2.0
//! Where a scenario is disturbed, and how.

use crate::common::sample::{all_wanted, setting};
use vdo_testbed::{Act, Call};

/// How a write is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The operator is killed when it has sent the write, which never arrives.
    Before,
    /// The operator is killed when the write is stored, before it gets the answer.
    After,
    /// The write is stored, the answer is lost, and the operator lives.
    Lost,
}

pub const MODES: [Mode; 3] = [Mode::Before, Mode::After, Mode::Lost];

/// One disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The number of the write; the first is 1.
    pub write: usize,
    pub mode: Mode,
}

impl Point {
    /// What the proxy does about it.
    pub fn judge(self) -> impl Fn(&Call) -> Act + Send + Sync + 'static {
        move |call| match self.mode {
            _ if call.write != Some(self.write) => Act::Pass,
            Mode::Before => Act::StopBefore,
            Mode::After => Act::StopAfter,
            Mode::Lost => Act::LoseAnswer,
        }
    }
}

/// All points of a scenario of this many writes.
pub fn all(writes: usize) -> Vec<Point> {
    (1..=writes).flat_map(|write| MODES.map(|mode| Point { write, mode })).collect()
}

/// Whether all points of a scenario are wanted: of all with `VDO_FAULTS=all`, or of those that it names.
pub fn wanted(scenario: &str) -> bool {
    all_wanted() || setting("VDO_FAULTS").is_some_and(|value| value.split(',').any(|name| name == scenario))
}
