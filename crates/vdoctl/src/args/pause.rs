// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl pause` and `vdoctl resume` with their help: the driver and `--wait`.

use clap::Args;

/// Arguments of `pause` and `resume`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Manage {
    /// The driver: cpi, csi, or the name of another driver; default: all drivers
    #[arg(value_name = "DRIVER")]
    pub driver: Option<String>,
    /// With pause: waits until the operator has paused. With resume: waits until the drivers are healthy
    #[arg(long)]
    pub wait: bool,
}
