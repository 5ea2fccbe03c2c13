// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl report` with their help: `--html` and `--from`.

use super::Contexts;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `report`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Report {
    /// The HTML file to write; default: vdo-report-CLUSTER.html in the current folder, or vdo-report.html for several clusters; - means
    /// stdout
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Creates the report from this support bundle instead of the cluster
    #[arg(long = "from", value_name = "FILE", conflicts_with_all = ["contexts", "all_contexts"])]
    pub from: Option<PathBuf>,
    /// Several clusters.
    #[command(flatten)]
    pub contexts: Contexts,
}
