// SPDX-License-Identifier: Apache-2.0
//! docs/security.md names a test for every attack, and each of them exists.

use crate::sources::{root, texts_of};
use std::collections::BTreeSet;
use std::fs;

/// The names of all functions that are tests.
pub(crate) fn tests() -> BTreeSet<String> {
    let all: String = ["src", "tests", "crates"]
        .into_iter()
        .flat_map(|folder| texts_of(folder, &["rs"]))
        .map(|(_, text)| text)
        .collect();
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for line in all.lines().map(str::trim) {
        is_test |= line.starts_with("#[") && !line.contains("cfg(") && (line.contains("test]") || line.contains("test("));
        if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            found.extend(rest.split('(').next().map(str::to_owned));
            is_test = false;
        }
    }
    found
}

#[test]
fn security_page_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/security.md")).expect("docs/security.md");
    let (_, table) = page.split_once("| attack |").expect("the table of attacks");
    let named: Vec<&str> = table
        .lines()
        .skip(2)
        .map(|line| line.trim_end_matches(" |").rsplit("| ").next().expect("a cell").trim_matches('`'))
        .collect();
    assert!(named.len() > 20, "only {} lines were read", named.len());
    let tests = tests();
    let absent: Vec<&str> = named.into_iter().filter(|name| !tests.contains(*name)).collect();
    assert!(absent.is_empty(), "docs/security.md names tests that do not exist: {absent:?}");
}
