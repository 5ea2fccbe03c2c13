// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl adopt` with their help: `--write`, `--move`, `--undo`, `--accept-loss`, `--show-secrets`.

use super::{MatrixFile, Output};
use clap::{ArgGroup, Args};

/// Arguments of `adopt`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(group(ArgGroup::new("changes").args(["write", "moves"])))]
pub struct Adopt {
    /// The name of the VDOConfig
    #[arg(long, value_name = "NAME", default_value = "vdo")]
    pub config: String,
    /// Creates the objects and their Secrets in the cluster after a confirmation; the operator then adopts the drivers
    #[arg(long)]
    pub write: bool,
    /// Replaces drivers that have other names or namespaces than the drivers of VDO: stops their controllers, lets the operator install its
    /// own drivers, and replaces the node plugins node by node. Volumes stay attached; after an interruption, repeat the command to
    /// continue
    #[arg(long = "move")]
    pub moves: bool,
    /// With --move: restores the previous drivers, at any step of the move
    #[arg(long, requires = "moves")]
    pub undo: bool,
    /// Changes nothing; with --move, the command shows the steps of the move
    #[arg(long)]
    pub dry_run: bool,
    /// Accepts the loss of a setting; KEY is the key of the setting in the list of lost settings; may be repeated
    #[arg(long = "accept-loss", value_name = "KEY", requires = "changes")]
    pub accepted: Vec<String>,
    /// Does not ask for confirmation; each lost setting still requires --accept-loss
    #[arg(long, short = 'y', requires = "changes")]
    pub yes: bool,
    /// With -o yaml: also prints the Secrets
    #[arg(long)]
    pub show_secrets: bool,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format; yaml prints the objects.
    #[command(flatten)]
    pub output: Output,
}
