// SPDX-License-Identifier: Apache-2.0
//! `vdoctl adopt` as it is typed.

use super::{MatrixFile, Output};
use clap::{ArgGroup, Args};

/// Arguments of `adopt`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(group(ArgGroup::new("changes").args(["write", "moves"])))]
pub struct Adopt {
    /// The name of the VDOConfig
    #[arg(long, value_name = "NAME", default_value = "vdo")]
    pub config: String,
    /// Creates the objects with their Secrets in the cluster, after asking; the operator then adopts the drivers
    #[arg(long)]
    pub write: bool,
    /// Moves drivers that run in another place to VDO: stops their controllers, lets the operator install its own, and replaces the node plugins node
    /// by node. Volumes stay attached. Repeated after an interruption it goes on
    #[arg(long = "move")]
    pub moves: bool,
    /// With --move: leads back to the drivers that were there before, from any step
    #[arg(long, requires = "moves")]
    pub undo: bool,
    /// Changes nothing; with --move shows the steps
    #[arg(long)]
    pub dry_run: bool,
    /// Confirms that a setting is not taken along, by its key in the list of losses; may be repeated
    #[arg(long = "accept-loss", value_name = "KEY", requires = "changes")]
    pub accepted: Vec<String>,
    /// Goes on without asking; a loss has to be confirmed anyway
    #[arg(long, short = 'y', requires = "changes")]
    pub yes: bool,
    /// Prints the Secrets, too, with -o yaml
    #[arg(long)]
    pub show_secrets: bool,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format; yaml prints the objects.
    #[command(flatten)]
    pub output: Output,
}
