// SPDX-License-Identifier: Apache-2.0
//! The verbs and flags of `vdoctl upgrade plan`, `apply` and `retry` with their help: `--to`, `--kubernetes`, `--openshift`, `--vcenter`.

use super::{DriverArg, MatrixFile, Output, Vcenter};
use clap::{Args, Subcommand};
use vdo_api::types::KubernetesVersion;
use vdo_core::openshift::OpenShiftVersion;

/// Arguments of `upgrade`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Upgrade {
    /// What about the upgrade.
    #[command(subcommand)]
    pub verb: UpgradeVerb,
}

/// What about an upgrade.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum UpgradeVerb {
    /// Shows the effects of an upgrade of the drivers, of Kubernetes or of a vCenter
    ///
    /// Without a flag, the command plans the upgrade of every driver to its newest compatible version. The API server tries this plan in a
    /// dry run. The plan shows the steps, the pod restarts, the preconditions and the obstacles. The command changes nothing. The exit code
    /// is 0 when there is nothing to upgrade, 1 when there is an upgrade, and 4 when the upgrade cannot be made, for example because a
    /// driver cannot be upgraded to its new version or the API server refuses an object.
    ///
    /// Use this command when VDO is deployed: the plan starts from the installed versions, and the API server tries the plan. vdoctl matrix
    /// resolve only chooses versions.
    Plan(UpgradePlan),
    /// Upgrades the drivers, and waits until they are healthy
    ///
    /// The command shows the plan and asks for confirmation. vdoctl pins each driver to its new version, and removes the pin when the
    /// driver is healthy. A driver that was pinned before the upgrade stays pinned. After an interruption, run the command again to
    /// continue.
    Apply(UpgradeApply),
    /// Retries a change of a driver that failed and was rolled back
    Retry,
}

/// Arguments of `upgrade plan`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct UpgradePlan {
    /// A driver and its new version, for example csi=3.7.3; may be repeated; default: the newest compatible version of every driver
    #[arg(long, value_name = "DRIVER=VERSION", value_delimiter = ',')]
    pub to: Vec<DriverArg>,
    /// Shows the effects of an upgrade of the cluster to this Kubernetes version, for example 1.35
    #[arg(long, value_name = "VERSION", conflicts_with = "to")]
    pub kubernetes: Option<KubernetesVersion>,
    /// Shows the effects of an upgrade of the cluster to this OpenShift version, for example 4.21; same as --kubernetes with the Kubernetes
    /// version of that release
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["to", "kubernetes"])]
    pub openshift: Option<OpenShiftVersion>,
    /// Shows the effects of an upgrade of a vCenter to this version, for example 9.0 or vc1=9.0; may be repeated
    #[arg(long, value_name = "[NAME=]VERSION", value_delimiter = ',', conflicts_with = "to")]
    pub vcenter: Vec<Vcenter>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `upgrade apply`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct UpgradeApply {
    /// A driver and its new version, for example csi=3.7.3; may be repeated; default: the newest compatible version of every driver
    #[arg(long, value_name = "DRIVER=VERSION", value_delimiter = ',')]
    pub to: Vec<DriverArg>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// Does not ask for confirmation; required if there is no terminal
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Exits when the upgrade is requested, without waiting for the drivers; the pins stay until you run the command again
    #[arg(long)]
    pub no_wait: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
