// SPDX-License-Identifier: Apache-2.0
//! `vdoctl support-bundle` and `vdoctl report` as they are typed.

use super::Contexts;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `support-bundle`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SupportBundle {
    /// The tar.gz file to write; default: vdo-support-CLUSTER-TIME.tar.gz in the current folder; - means stdout
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}

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
