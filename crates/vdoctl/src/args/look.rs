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
    /// Goes on showing it until interrupted
    #[arg(long, short = 'w', conflicts_with_all = ["contexts", "all_contexts"])]
    pub watch: bool,
    /// Shows what it was when this support bundle was made; needs no cluster
    #[arg(long = "from", value_name = "FILE", conflicts_with_all = ["watch", "contexts", "all_contexts"])]
    pub from: Option<PathBuf>,
    /// Several clusters.
    #[command(flatten)]
    pub contexts: Contexts,
}

/// Arguments of `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Events {
    /// Shows warnings alone
    #[arg(long)]
    pub warnings: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `logs`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Logs {
    /// Whose: operator, cpi, csi, the name of a driver of spec.drivers, or of a node
    #[arg(value_name = "WHAT", default_value = "operator")]
    pub of: String,
    /// One container of the pods; default: all
    #[arg(long, short = 'c', value_name = "NAME")]
    pub container: Option<String>,
    /// How many lines of the end of each log
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    pub tail: i64,
    /// Those of the containers before their last restart
    #[arg(long, short = 'p')]
    pub previous: bool,
    /// Goes on showing what is logged, also by containers that begin later, until interrupted
    #[arg(long, short = 'f', conflicts_with = "previous")]
    pub follow: bool,
}
