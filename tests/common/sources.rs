// SPDX-License-Identifier: Apache-2.0
//! The sources of the repository as texts, for tests that hold them to a rule.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders with what people run: `src` and those of the crates `vdo-*` and `vdoctl`.
pub fn product() -> Vec<String> {
    let crates = fs::read_dir(root().join("crates")).expect("the crates");
    let names = crates.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut all: Vec<String> = names
        .filter(|name| name.starts_with("vdo"))
        .map(|name| format!("crates/{name}/src"))
        .collect();
    all.push("src".into());
    all.sort();
    assert!(all.len() > 9, "only {all:?} were found");
    all
}

/// Every file with one of these extensions below a folder of the repository: its path in the folder, and its text.
pub fn texts_of(folder: &str, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let top = root().join(folder);
    let (mut all, mut folders) = (Vec::new(), vec![top.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|found| extensions.iter().any(|extension| found == *extension))
            {
                let text = fs::read_to_string(&path).expect("text");
                all.push((path.strip_prefix(&top).expect("inside").to_path_buf(), text));
            }
        }
    }
    all
}

/// Every Rust file of what people run: its path in the repository, and its text.
pub fn product_texts() -> Vec<(String, String)> {
    let of = |folder: String| {
        let texts = texts_of(&folder, &["rs"]).into_iter();
        texts.map(move |(path, text)| (format!("{folder}/{}", path.display()), text))
    };
    product().into_iter().flat_map(of).collect()
}

/// The code of a file, without its tests and comments.
pub fn code(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every Rust file of what people run: its path in the repository, and its code.
pub fn product_code() -> impl Iterator<Item = (String, String)> {
    let product = product_texts()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("/tests.rs") && !path.contains("/tests/"));
    product.map(|(path, text)| {
        let code = code(&text);
        (path, code)
    })
}

/// The text of a file without its tests and comments, in which literals of several lines are one line.
pub fn literals(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines
        .map(|line| match line.strip_suffix('\\') {
            Some(begun) => begun.trim_start().to_owned(),
            None => format!("{}\n", line.trim_start()),
        })
        .collect()
}
