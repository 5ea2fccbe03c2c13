// SPDX-License-Identifier: Apache-2.0
//! `vdo-release sums`: writes SHA256SUMS of the files in a folder, in the format of `sha256sum --check`.

use crate::{folder, output};
use anyhow::Result;
use std::fmt::Write;
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
    // Signatures and the list itself are about it.
    let is_about = |name: &str| name == NAME || name.ends_with(".sigstore.json") || name.ends_with(".sig");
    let mut text = String::new();
    for (name, path) in folder::files(folder, |name, is_folder| is_folder || !is_about(name))? {
        let digest = Digest::of(&output::read(&path)?);
        let _ = writeln!(text, "{}  {name}", digest.hex());
    }
    output::write(&folder.join(NAME), text.as_bytes())
}
