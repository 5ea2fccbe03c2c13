// SPDX-License-Identifier: Apache-2.0
//! `vdoctl history` and `vdoctl rollback` as they are typed.

use super::Output;
use clap::Args;

/// Arguments of `history`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct History {
    /// The driver: vsphere-cpi or cpi, vsphere-csi or csi; default: all
    #[arg(value_name = "DRIVER")]
    pub driver: Option<String>,
    /// A revision of it, of which everything is shown; with -o yaml its objects
    #[arg(value_name = "REVISION", requires = "driver")]
    pub revision: Option<u64>,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `rollback`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Rollback {
    /// The driver: vsphere-cpi or cpi, vsphere-csi or csi
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The revision, as vdoctl history shows it; default: the last one before this that worked
    #[arg(value_name = "REVISION", conflicts_with = "lift")]
    pub revision: Option<u64>,
    /// Keeps the driver at no revision any longer: it goes on to what the VDOConfig asks for
    #[arg(long)]
    pub lift: bool,
    /// Waits until the drivers are healthy with it
    #[arg(long)]
    pub wait: bool,
}
