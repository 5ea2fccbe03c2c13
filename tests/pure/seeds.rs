// SPDX-License-Identifier: Apache-2.0
//! The seeds of the fuzzer through what the fuzzer does with them. Those whose names begin with `good` are what is meant; the others
//! are refused.

#![allow(clippy::panic, reason = "tests")]

use crate::fuzz;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Far more than any seed takes in a debug build beside other tests.
const LONGEST: Duration = Duration::from_secs(20);

fn each_ends_as_its_name_says(target: &str, run: fn(&[u8]) -> fuzz::Outcome) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut seeds: Vec<_> = std::fs::read_dir(folder)
        .expect("seeds")
        .map(|entry| entry.expect("a seed").path())
        .collect();
    seeds.sort();
    let (mut good, mut refused) = (0, 0);
    for seed in seeds {
        let name = seed.file_name().expect("a name").to_string_lossy().into_owned();
        let bytes = std::fs::read(&seed).expect("a seed");
        let (done, outcome) = mpsc::channel();
        std::thread::spawn(move || done.send(run(&bytes)));
        let outcome = outcome.recv_timeout(LONGEST);
        let outcome = outcome.unwrap_or_else(|error| panic!("{target}/{name} panicked or did not end: {error}"));
        assert_eq!(outcome.is_ok(), name.starts_with("good"), "{target}/{name}: {outcome:?}");
        *if outcome.is_ok() { &mut good } else { &mut refused } += 1;
    }
    assert!(good > 0 && refused > 5, "{target}: {good} good seeds and {refused} others");
}

#[test]
fn seed_of_archive_ends_as_its_name_says() {
    each_ends_as_its_name_says("archive", fuzz::archive);
}

#[test]
fn seed_of_index_ends_as_its_name_says() {
    each_ends_as_its_name_says("index", fuzz::index);
}

#[test]
fn seed_of_config_ends_as_its_name_says() {
    each_ends_as_its_name_says("config", fuzz::config);
}
