// SPDX-License-Identifier: Apache-2.0
//! The screens of the demonstration that the README shows: recorded as they are printed, for the picture that is made of them.

use crate::pty::plain;
use crate::sources::root;
use std::fs;

const RECORD: &str = "tests/fixtures/demo-screen.txt";

/// The commands of the fault and its remedy with what they print and its styles, as a text without control characters.
pub fn of(written: &str) -> String {
    let shown: Vec<&str> = written
        .lines()
        // A line that moved was overwritten.
        .map(|line| line.rsplit('\r').next().unwrap_or_default().trim_start_matches("\u{1b}[K"))
        .collect();
    let shown = shown.join("\n");
    let (_, fault) = shown.split_once("\n$ kubectl patch secret").expect("a fault");
    let blocks = fault
        .split("\n\n")
        .filter(|block| block.starts_with("$ vdoctl ") && !block.starts_with("$ vdoctl wait"));
    let text = blocks.collect::<Vec<_>>().join("\n\n");
    text.trim_end().replace('\u{1b}', "␛") + "\n"
}

/// What is the same in every run: the words, with one digit for every number, and not where lines are broken.
fn words(record: &str) -> Vec<String> {
    let text = plain(&record.replace('␛', "\u{1b}"));
    text.split_whitespace()
        .map(|word| {
            let mut digits = false;
            let one_for_many = |c: char| {
                let again = digits && c.is_ascii_digit();
                digits = c.is_ascii_digit();
                (!again).then_some(if digits { '0' } else { c })
            };
            word.chars().filter_map(one_for_many).collect()
        })
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no argument parser; the page on testing names the variable"
)]
fn shall_write() -> bool {
    std::env::var("VDO_RECORD").is_ok_and(|value| value == "write")
}

/// Fails where the screens are others than those recorded; with `VDO_RECORD=write` they are recorded.
pub fn assert_same(now: &str) {
    let file = root().join(RECORD);
    if shall_write() {
        return fs::write(&file, now).expect("the record");
    }
    let recorded = fs::read_to_string(&file).expect("the record");
    assert_eq!(
        words(&recorded),
        words(now),
        "{RECORD} is not what the demonstration shows; where that is right: \
         VDO_RECORD=write cargo test --workspace --test cluster -- demo_installs && make generate\n{now}"
    );
}
