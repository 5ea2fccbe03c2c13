// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl status` with their help: `--watch` and `--from`.

use super::{Contexts, Output};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `status`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Status {
    /// The format.
    #[command(flatten)]
    pub output: Output,
    /// Shows the status continuously until interrupted
    #[arg(long, short = 'w', conflicts_with_all = ["contexts", "all_contexts"])]
    pub watch: bool,
    /// Shows the status that is stored in this support bundle; needs no cluster
    #[arg(long = "from", value_name = "FILE", conflicts_with_all = ["watch", "contexts", "all_contexts"])]
    pub from: Option<PathBuf>,
    /// Several clusters.
    #[command(flatten)]
    pub contexts: Contexts,
}
