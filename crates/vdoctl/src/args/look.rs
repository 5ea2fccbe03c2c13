// SPDX-License-Identifier: Apache-2.0
//! `vdoctl status`, `events` and `logs` as they are typed.

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

/// Arguments of `logs`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Logs {
    /// The source of the logs: operator, cpi, csi, the name of a driver in spec.drivers, or the name of a node
    #[arg(value_name = "WHAT", default_value = "operator")]
    pub of: String,
    /// Shows only this container of the pods; default: all containers
    #[arg(long, short = 'c', value_name = "NAME")]
    pub container: Option<String>,
    /// The number of lines to show from the end of each log
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    pub tail: i64,
    /// Shows the logs of the containers before their last restart
    #[arg(long, short = 'p')]
    pub previous: bool,
    /// Shows new log lines until interrupted, also from containers that start later
    #[arg(long, short = 'f', conflicts_with = "previous")]
    pub follow: bool,
}
