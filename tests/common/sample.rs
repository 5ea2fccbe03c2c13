// SPDX-License-Identifier: Apache-2.0
//! A few of many, chosen by the seed `VDO_SEED`. `make test` prints it, and the same seed chooses the same again.
#![allow(
    clippy::print_stdout,
    dead_code,
    reason = "a test that fails shows its seed; not every binary takes samples"
)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;

/// One seed for all tests of a run.
pub static SEED: LazyLock<u64> = LazyLock::new(|| {
    let given = setting("VDO_SEED").and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()) % 1_000_000)
});

/// A setting of a test run.
#[expect(clippy::disallowed_methods, reason = "a test has no arguments of its own")]
pub fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether all of what is repeated is wanted, and not a part of it: `VDO_FAULTS=all`.
pub fn all_wanted() -> bool {
    setting("VDO_FAULTS").as_deref() == Some("all")
}

/// The folder with the drivers' own manifests.
pub fn upstream() -> Option<std::path::PathBuf> {
    setting("VDO_UPSTREAM_DIR").map(Into::into)
}

/// `count` of `from` for `what`, in their order. Prints the seed.
pub fn some<T: Clone>(what: &str, from: &[T], count: usize) -> Vec<T> {
    println!("{what}: {} of {}, VDO_SEED={}", count.min(from.len()), from.len(), *SEED);
    chosen(*SEED, what, from.len(), count)
        .into_iter()
        .filter_map(|at| from.get(at).cloned())
        .collect()
}

/// The same, but all of `from` where all is wanted.
pub fn some_or_all<T: Clone>(what: &str, from: &[T], count: usize) -> Vec<T> {
    some(what, from, if all_wanted() { from.len() } else { count })
}

/// `count` of the numbers below `all`, in their order.
fn chosen(seed: u64, what: &str, all: usize, count: usize) -> Vec<usize> {
    let mut state = what
        .bytes()
        .fold(seed ^ 0x9E37_79B9_7F4A_7C15, |state, byte| splitmix(state ^ u64::from(byte)));
    let mut left: Vec<usize> = (0..all).collect();
    let mut taken = Vec::new();
    while taken.len() < count && !left.is_empty() {
        state = splitmix(state);
        let at = usize::try_from(state % left.len() as u64).unwrap_or(0);
        taken.push(left.swap_remove(at));
    }
    taken.sort_unstable();
    taken
}

fn splitmix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[test]
fn sample_of_the_same_seed_is_the_same_and_misses_nothing_for_ever() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let sample = chosen(seed, "list", 40, 3);
        assert_eq!(sample, chosen(seed, "list", 40, 3));
        assert_eq!(sample.len(), 3);
        assert!(sample.is_sorted_by(|a, b| a < b), "{sample:?}");
        seen.extend(sample);
    }
    assert_eq!(seen.len(), 40);
    assert_eq!(chosen(7, "watch", 2, 3), [0, 1]);
}
