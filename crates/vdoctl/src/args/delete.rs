// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl delete` with their help: `--keep-drivers`, `--drivers-only`, `--dry-run`, `--yes`.

use super::DryRun;
use clap::Args;

/// Arguments of `delete`.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Delete {
    /// Removes the operator and keeps the drivers running, with their service accounts and rights
    #[arg(long, conflicts_with = "drivers_only")]
    pub keep_drivers: bool,
    /// Removes the VDOConfig and the drivers, and keeps the operator and its connections
    #[arg(long)]
    pub drivers_only: bool,
    /// Does not ask for confirmation; required if there is no terminal
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Removes nothing. --dry-run=client lists the objects that would be removed; --dry-run=server, or --dry-run without a value, tries the
    /// removal in the API server
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        hide_possible_values = true,
        num_args = 0..=1,
        default_missing_value = "server",
        default_value = "none"
    )]
    pub dry_run: DryRun,
    /// The format of the progress output: table or json
    #[arg(
        long,
        short = 'o',
        env = "VDO_OUTPUT",
        value_enum,
        value_name = "FORMAT",
        hide_possible_values = true
    )]
    pub output: Option<super::Format>,
}
