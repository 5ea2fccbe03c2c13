//! `vdo-release sums`: SHA256SUMS, as sha256sum --check reads it.

use crate::output;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use vdo_api::types::Digest;

const NAME: &str = "SHA256SUMS";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder whose files are listed
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    write(&args.folder)
}

/// Writes the list of a folder into it.
pub fn write(folder: &Path) -> Result<()> {
    let mut files = BTreeMap::new();
    collect(folder, "", &mut files)?;
    let mut text = String::new();
    for (name, digest) in files {
        let _ = writeln!(text, "{}  {name}", digest.hex());
    }
    output::write(&folder.join(NAME), text.as_bytes())
}

/// Each file of the folder and of those in it, by its path. Bundles with signatures and the list itself are left out: they are about it.
fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, Digest>) -> Result<()> {
    let cannot = || format!("cannot read the folder {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            bail!("{} is not a name for a release", path.display());
        };
        if path.is_dir() {
            collect(&path, &format!("{below}{name}/"), files)?;
        } else if name != NAME && !name.ends_with(".sigstore.json") {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(format!("{below}{name}"), Digest::of(&bytes));
        }
    }
    Ok(())
}
