// SPDX-License-Identifier: Apache-2.0
//! The flag of `vdoctl support-bundle` with its help: the file of `--output`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `support-bundle`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SupportBundle {
    /// The tar.gz file to write; default: vdo-support-CLUSTER-TIME.tar.gz in the current folder; - means stdout
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}
