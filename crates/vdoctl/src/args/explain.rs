// SPDX-License-Identifier: Apache-2.0
//! The argument of `vdoctl explain` with its help: a reason, a condition or an exit code.

use super::Output;
use clap::Args;

/// Arguments of `explain`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ExplainReason {
    /// A reason, a condition or an exit code of vdoctl, in upper or lower case; without this argument, vdoctl lists all of them
    #[arg(value_name = "REASON|CONDITION|CODE")]
    pub word: Option<String>,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
