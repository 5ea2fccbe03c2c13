// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl logs` with their help: `--container`, `--tail`, `--previous`, `--follow`.

use clap::Args;

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
