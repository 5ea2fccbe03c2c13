//! docs/security.md names a test for every attack, and each of them exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The text of every source in a folder.
pub(crate) fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&fs::read_to_string(path).expect("a source"));
        }
    }
}

/// The names of all functions that are tests.
pub(crate) fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    for folder in ["src", "tests", "crates"] {
        sources(&root.join(folder), &mut all);
    }
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
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md");
    let page = fs::read_to_string(page).expect("docs/security.md");
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
