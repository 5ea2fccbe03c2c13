// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl release` with their help: `--to manifests` or `--to helm`, and `--output-dir`.

use super::MatrixFile;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Who manages the drivers after VDO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewOwner {
    /// Manifests for kubectl apply, or for another tool that applies a folder
    Manifests,
    /// A Helm release
    Helm,
}

/// Arguments of `release`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Release {
    /// The format of the files: manifests (for kubectl apply) or helm (a Helm chart)
    #[arg(long, value_enum, value_name = "OWNER", hide_possible_values = true, default_value = "manifests")]
    pub to: NewOwner,
    /// The folder for the files; only you can read the files, because they contain the Secrets of the drivers
    #[arg(long, value_name = "DIR")]
    pub output_dir: PathBuf,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
}
