// SPDX-License-Identifier: Apache-2.0
//! `vdoctl support-bundle` and `vdoctl report` as they are typed.

use super::Contexts;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `support-bundle`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct SupportBundle {
    /// The file to write, a tar archive packed by gzip; default: vdo-support-CLUSTER-TIME.tar.gz here; - is stdout
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `report`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Report {
    /// The page to write; default: vdo-report-CLUSTER.html here, vdo-report.html for several clusters; - is stdout
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// A support bundle that it is made from, instead of the cluster
    #[arg(long = "from", value_name = "FILE", conflicts_with_all = ["contexts", "all_contexts"])]
    pub from: Option<PathBuf>,
    /// Several clusters.
    #[command(flatten)]
    pub contexts: Contexts,
}
