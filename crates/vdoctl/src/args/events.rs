// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl events` with their help: `--warnings`.

use super::Output;
use clap::Args;

/// Arguments of `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Events {
    /// Shows only warnings
    #[arg(long)]
    pub warnings: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
