// SPDX-License-Identifier: Apache-2.0
//! `vdo-release archive`: packs a program and its text files into a reproducible `.tar.gz` (`layer.rs`) or `.zip` (`zip.rs`).

use crate::layer::{self, File};
use crate::{executable, output, zip};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vdo_oci::oci::Platform;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The platform of the program
    #[arg(long)]
    platform: Platform,
    /// The program; a program for Linux must be statically linked
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// A text file to add to the archive
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The archive to write; the end of its name selects the format
    #[arg(long, value_name = "FILE.tar.gz|FILE.zip")]
    output: PathBuf,
    /// Time stamp of all files, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    created: u64,
}

pub fn run(args: &Args) -> Result<()> {
    let program = output::read(&args.program)?;
    executable::check(&program, &args.platform)
        .with_context(|| format!("{} cannot be the program of {}", args.program.display(), args.platform))?;
    let size = program.len() as u64;
    let mut files = BTreeMap::from([(
        name(&args.program)?,
        File {
            bytes: program,
            executable: true,
        },
    )]);
    for path in &args.files {
        let bytes = output::read(path)?;
        let twice = files.insert(name(path)?, File { bytes, executable: false });
        if twice.is_some() {
            bail!("two files are called {}", name(path)?);
        }
    }
    let packed = write(&files, args.created, &args.output)?;
    output::line(&format!(
        "  {}: program {}, packed {}",
        name(&args.output)?,
        output::size(size),
        output::size(packed)
    ))
}

fn name(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| anyhow!("{} has no name", path.display()))
}

pub fn write(files: &BTreeMap<String, File>, created: u64, to: &Path) -> Result<u64> {
    let bytes = match to.extension().is_some_and(|end| end == "zip") {
        true => zip::write(files, created)?,
        false => {
            let mut bytes = Vec::new();
            layer::write(files, created, &mut bytes)?;
            bytes
        }
    };
    output::write(to, &bytes)?;
    Ok(bytes.len() as u64)
}
