//! `vdo-release licences`: the terms of everything that is in the programs, as one text.

use crate::dependencies::{Key, Source};
use crate::output;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How the files with the terms are called.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// The C library of musl targets is in no crate.
const MUSL: &str = "\
The programs contain the standard library of Rust (MIT OR Apache-2.0, copyright The Rust Project contributors) and, on musl targets,
the C library musl (MIT, copyright 2005-2025 Rich Felker, et al.). Both come with the compiler's target. Both licences are below.
";

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// File to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let dependencies = args.source.read()?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for (key, package) in dependencies.packages.iter().filter(|(key, _)| **key != dependencies.root) {
        let found = terms(&package.folder).with_context(|| format!("cannot read the licence files of {} {}", key.0, key.1))?;
        if found.is_empty() {
            without.push(named(key, package.license.as_deref()));
        }
        for text in found {
            texts.entry(text).or_default().push(named(key, package.license.as_deref()));
        }
    }
    let text = page(&texts, &without);
    output::write(&args.output, text.as_bytes())?;
    let all = dependencies.packages.len() - 1;
    output::line(&format!(
        "  licences: {} texts of {all} crates, {} without a file of their own",
        texts.len(),
        without.len()
    ))
}

fn named((name, version): &Key, license: Option<&str>) -> String {
    format!("{name} {version} ({})", license.unwrap_or("no expression"))
}

/// The texts of a crate's licence files, without differences that say nothing.
fn terms(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
        if NAMES.iter().any(|known| name.starts_with(known)) && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let text = |path: &PathBuf| -> std::io::Result<String> {
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok(lines.join("\n").trim_matches('\n').to_owned() + "\n")
    };
    paths.iter().map(text).collect()
}

fn page(texts: &BTreeMap<String, Vec<String>>, without: &[String]) -> String {
    let rule = "=".repeat(100);
    let mut page = format!("VDO is licensed under the Apache License 2.0. It contains the work of others under the terms below.\n\n{MUSL}");
    if !without.is_empty() {
        page.push_str("\nThese crates have no licence file; the expression in their metadata applies:\n");
        page.extend(without.iter().map(|name| format!("  {name}\n")));
    }
    // By the crates, because people look for names.
    let mut sections: Vec<(&Vec<String>, &String)> = texts.iter().map(|(text, names)| (names, text)).collect();
    sections.sort();
    for (names, text) in sections {
        page.push_str(&format!("\n{rule}\n"));
        page.extend(names.iter().map(|name| format!("{name}\n")));
        page.push_str(&format!("{rule}\n\n{text}"));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_by_name_and_equal_texts_are_one() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [
            ("LICENSE-MIT", "\nfree  \r\n"),
            ("license.md", "free"),
            ("README", "no"),
            ("COPYING", "copy"),
        ] {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let found = terms(folder.path()).expect("texts");
        assert_eq!(found, ["copy\n", "free\n", "free\n"]);
    }

    #[test]
    fn page_names_every_crate_with_its_text() {
        let texts = BTreeMap::from([("a text\n".to_owned(), vec!["b 1 (MIT)".to_owned(), "c 2 (MIT)".to_owned()])]);
        let page = page(&texts, &["d 3 (ISC)".to_owned()]);
        for part in ["b 1 (MIT)\nc 2 (MIT)\n====", "\n\na text\n", "  d 3 (ISC)\n"] {
            assert!(page.contains(part), "{page}");
        }
    }
}
