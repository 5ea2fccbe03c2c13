// SPDX-License-Identifier: Apache-2.0
//! `vdo-release notes`: writes the release notes of a version from its section of CHANGELOG.md, or from the section Unreleased.

use crate::output;
use anyhow::{Result, bail};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Version of the release, without the letter v
    #[arg(long, value_name = "VERSION")]
    version: String,
    /// The changelog
    #[arg(long, value_name = "FILE", default_value = "CHANGELOG.md")]
    changelog: PathBuf,
    /// File to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let text = String::from_utf8(output::read(&args.changelog)?)?;
    let notes = match (section(&text, &args.version), section(&text, "Unreleased")) {
        (Some(section), _) => format!("# VDO {}\n\n{section}\n", args.version),
        (None, Some(section)) => format!(
            "# VDO {}, not released yet\n\nThe changelog has no section for this version. These are the changes since the last version.\n\n{section}\n",
            args.version
        ),
        (None, None) => bail!(
            "{} has neither a section ## [{}] nor ## [Unreleased]",
            args.changelog.display(),
            args.version
        ),
    };
    output::write(&args.output, notes.as_bytes())
}

/// What is below `## [NAME]`, up to the next version.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let title = format!("## [{name}]");
    let is_title = |line: &str| line.starts_with(&title);
    let mut at = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        match start {
            Some(start) if line.starts_with("## ") => return Some(text.get(start..at)?.trim()),
            None if is_title(line) => start = Some(at + line.len()),
            _ => {}
        }
        at += line.len();
    }
    Some(text.get(start?..)?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_ends_before_the_next_version() {
        let text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- b\n\n## [0.1.0] - 2026-11-23\n\n- a\n";
        assert_eq!(section(text, "Unreleased"), Some("### Added\n\n- b"));
        assert_eq!(section(text, "0.1.0"), Some("- a"));
        assert_eq!(section(text, "0.1"), None);
    }
}
