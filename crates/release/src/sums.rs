//! `vdo-release sums`: SHA256SUMS, as sha256sum --check reads it.

use crate::output;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use vdo::types::Digest;

const NAME: &str = "SHA256SUMS";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder whose files are listed
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let text = list(&args.folder)?;
    output::write(&args.folder.join(NAME), text.as_bytes())
}

/// A line for each file of the folder, by name. Signatures and the list itself are left out: they are about it.
fn list(folder: &Path) -> Result<String> {
    let mut names = Vec::new();
    let cannot = || format!("cannot read the folder {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let Ok(name) = entry.file_name().into_string() else {
            bail!("{} is not a name for a release", entry.path().display());
        };
        if entry.path().is_file() && name != NAME && !name.ends_with(".sigstore.json") {
            names.push(name);
        }
    }
    names.sort();
    let mut text = String::new();
    for name in names {
        let path = folder.join(&name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let _ = writeln!(text, "{}  {name}", Digest::of(&bytes).hex());
    }
    Ok(text)
}
