// SPDX-License-Identifier: Apache-2.0
//! Who may use whom is what the lists of dependencies say. docs/architecture.md shows them, and the pure parts reach neither clock,
//! environment, files, network nor runtime.

use crate::sources::{code, product_texts, root, texts_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Folders whose code decides and carries out nothing: data in, data out.
const PURE: [&str; 9] = [
    "crates/vdo-admin/src/accounts",
    "crates/vdo-admin/src/fixes",
    "crates/vdo-adopt/src",
    "crates/vdo-api/src",
    "crates/vdo-author/src",
    "crates/vdo-core/src",
    "crates/vdo-oci/src/oci",
    "crates/vdo-source/src/signature",
    "crates/vdo-vsphere/src/vsphere",
];

/// What pure code never names.
const EFFECTS: &str =
    "std::fs std::env std::process net::Tcp ToSocketAddrs SystemTime::now Instant::now Timestamp::now kube::Client kube::client tokio";

const LONGEST: usize = 500;

/// The crates of ours that each crate depends on, tests apart.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let crates = fs::read_dir(root().join("crates")).expect("the crates").map(|entry| {
        let path = entry.expect("an entry").path();
        (path.file_name().expect("a name").to_string_lossy().into_owned(), path)
    });
    let crates = crates.chain([("vdo".to_owned(), root().to_path_buf())]);
    let of = |(name, path): (String, std::path::PathBuf)| {
        let text = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        let (_, list) = text.split_once("\n[dependencies]\n").unwrap_or_default();
        let list = list.split("\n[").next().unwrap_or_default();
        let names = list.lines().filter_map(|line| line.split([' ', '=']).next());
        let ours = names.filter(|name| name.starts_with("vdo"));
        (name, ours.map(str::to_owned).collect())
    };
    crates.map(of).collect()
}

/// Everything that a crate is built with.
fn reached(of: &str, all: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![of.to_owned()];
    while let Some(name) = open.pop() {
        for other in &all[&name] {
            if found.insert(other.clone()) {
                open.push(other.clone());
            }
        }
    }
    found
}

/// The operator reads a vCenter and writes no matrix: what can do so is not built into it.
#[test]
fn crates_operator_is_built_without_administration_authoring_and_command_line() {
    let all = dependencies();
    let operator = reached("vdo", &all);
    assert!(operator.contains("vdo-vsphere"), "{operator:?}");
    for other in ["vdo-admin", "vdo-author", "vdoctl"] {
        assert!(
            all.contains_key(other) && !operator.contains(other),
            "the operator depends on {other}"
        );
    }
}

#[test]
fn crates_architecture_page_shows_the_lists_of_dependencies() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let section = page.split("### Which crate may use which crate").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<String>>();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let shown: BTreeMap<String, BTreeSet<String>> = rows.map(|(name, uses)| (name.to_owned(), names(uses))).collect();
    assert_eq!(shown, dependencies());
}

#[test]
fn crates_pure_code_names_no_effect() {
    for folder in PURE {
        let texts = texts_of(folder, &["rs"]);
        assert!(!texts.is_empty(), "{folder} has no sources");
        for (path, text) in texts {
            let code = code(&text);
            let found = EFFECTS.split(' ').find(|effect| code.contains(effect));
            assert_eq!(found, None, "{folder}/{}: pure code takes such things as arguments", path.display());
        }
    }
}

/// Templates of charts are rendered in one place, and the page of `vdoctl report` in another.
#[test]
fn crates_templates_are_rendered_by_chart_and_report_alone() {
    for (path, text) in product_texts() {
        let renders = path.starts_with("crates/vdo-core/src/chart") || path.starts_with("crates/vdoctl/src/report");
        assert!(
            !code(&text).contains("minijinja") || renders,
            "{path} uses the templates' crate; chart and report do"
        );
    }
}

#[test]
fn crates_every_file_is_within_line_limit() {
    let folders = ["src", "crates", "tests", "benches", "examples", "fuzz/src", "fuzz/fuzz_targets"];
    let all = folders
        .into_iter()
        .flat_map(|folder| texts_of(folder, &["rs"]).into_iter().map(move |file| (folder, file)));
    let long = all.filter(|(_, (_, text))| text.lines().count() > LONGEST);
    let names: Vec<String> = long.map(|(folder, (path, _))| format!("{folder}/{}", path.display())).collect();
    assert!(names.is_empty(), "more than {LONGEST} lines; split them: {names:?}");
}

/// Scanners read the licence in each file. Not in what is generated or rendered, and not in the Go programs of the test bed: their text decides
/// whether they are built again.
#[test]
fn crates_every_source_file_names_the_licence() {
    const ROOT: [&str; 7] = [
        "build.rs",
        "Cargo.toml",
        "Makefile",
        "clippy.toml",
        "deny.toml",
        "rust-toolchain.toml",
        "rustfmt.toml",
    ];
    const FOLDERS: [&str; 10] = [
        ".cargo",
        "benches",
        "crates",
        "deploy",
        "docs",
        "examples",
        "fuzz/fuzz_targets",
        "fuzz/src",
        "src",
        "tests",
    ];
    const SINGLE: [&str; 4] = [".ci/run", "deploy/Containerfile", "fuzz/Cargo.toml", ".github/workflows/ci.yaml"];
    let read = |file: &str| (file.to_owned(), fs::read_to_string(root().join(file)).expect("a source file"));
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let licence = manifest
        .split("\nlicense = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a licence");
    let below = FOLDERS.into_iter().flat_map(|folder| {
        let texts = texts_of(folder, &["rs", "sh", "toml"]).into_iter();
        texts.map(move |(path, text)| (format!("{folder}/{}", path.display()), text))
    });
    let all: Vec<(String, String)> = ROOT.into_iter().chain(SINGLE).map(read).chain(below).collect();
    assert!(all.len() > 1000, "only {} files", all.len());
    let header = |mark: &str| format!("{mark} SPDX-License-Identifier: {licence}");
    let lacks = |(file, text): &(String, String)| {
        let header = header(if file.ends_with(".rs") { "//" } else { "#" });
        // A script begins with its interpreter.
        (!text.lines().take(2).any(|line| line == header)).then(|| file.clone())
    };
    let without: Vec<String> = all.iter().filter_map(lacks).collect();
    assert!(without.is_empty(), "the first line names no licence: {without:?}");
}
