// SPDX-License-Identifier: Apache-2.0
//! The arguments of `vdoctl history` with their help: the driver and the revision.

use super::Output;
use clap::Args;

/// Arguments of `history`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct History {
    /// The driver: vsphere-cpi (or cpi) or vsphere-csi (or csi); default: all drivers
    #[arg(value_name = "DRIVER")]
    pub driver: Option<String>,
    /// Shows the details of this revision of the driver; with -o yaml: the objects of the revision
    #[arg(value_name = "REVISION", requires = "driver")]
    pub revision: Option<u64>,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
