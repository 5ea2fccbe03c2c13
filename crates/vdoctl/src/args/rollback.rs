// SPDX-License-Identifier: Apache-2.0
//! The arguments of `vdoctl rollback` with their help: the driver, the revision, `--lift` and `--wait`.

use clap::Args;

/// Arguments of `rollback`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Rollback {
    /// The driver: vsphere-cpi (or cpi) or vsphere-csi (or csi)
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The revision number from vdoctl history; default: the newest earlier revision that worked
    #[arg(value_name = "REVISION", conflicts_with = "lift")]
    pub revision: Option<u64>,
    /// Ends the rollback: the operator again installs the driver as the VDOConfig describes
    #[arg(long)]
    pub lift: bool,
    /// Waits until the drivers are healthy after the change
    #[arg(long)]
    pub wait: bool,
}
