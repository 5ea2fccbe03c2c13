// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl wait` with their help: `--for` and `--fail-fast`.

use super::Output;
use clap::Args;

/// Arguments of `wait`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Wait {
    /// The state to wait for: healthy, deleted, or a condition of the VDOConfig such as MatrixFresh or UpgradeAvailable=False; the form
    /// condition=NAME of kubectl wait is also accepted
    #[arg(long = "for", value_name = "WHAT", default_value = "healthy")]
    pub what: String,
    /// Exits at the first problem, even if the operator still retries; without the flag, the command exits early only if a person must act
    #[arg(long)]
    pub fail_fast: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
