//! Where a scenario is disturbed, and how.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use vdo_testbed::{Act, Call};

/// How a write is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The operator is killed when it has sent the write, which never arrives.
    Before,
    /// The operator is killed when the write is stored, before it is told.
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

/// A setting of whoever runs the tests.
#[expect(clippy::disallowed_methods, reason = "a test has no arguments of its own")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether all points of a scenario are wanted: of all with `VDO_FAULTS=all`, or of those that it names; of this one, if nothing
/// is said, when it is `usual`.
pub fn wanted(scenario: &str, usual: bool) -> bool {
    setting("VDO_FAULTS").map_or(usual, |value| value == "all" || value.split(',').any(|name| name == scenario))
}

/// Chooses a few of many, the same for the same seed.
pub struct Dice(u64);

impl Dice {
    /// With the seed of `VDO_FAULTS_SEED`, or a new one.
    pub fn new() -> Self {
        let given = setting("VDO_FAULTS_SEED").and_then(|text| text.parse().ok());
        Self(given.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()) % 1_000_000))
    }

    pub fn seed(&self) -> u64 {
        self.0
    }

    /// `count` of `from` for `what`, in their order.
    pub fn some<T: Clone>(&self, what: &str, from: &[T], count: usize) -> Vec<T> {
        let mut state = what
            .bytes()
            .fold(self.0 ^ 0x9E37_79B9_7F4A_7C15, |state, byte| splitmix(state ^ u64::from(byte)));
        let mut left: Vec<usize> = (0..from.len()).collect();
        let mut taken = Vec::new();
        while taken.len() < count && !left.is_empty() {
            state = splitmix(state);
            let at = usize::try_from(state % left.len() as u64).unwrap_or(0);
            taken.push(left.swap_remove(at));
        }
        taken.sort_unstable();
        taken.into_iter().map(|at| from[at].clone()).collect()
    }
}

fn splitmix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
