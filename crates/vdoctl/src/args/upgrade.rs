// SPDX-License-Identifier: Apache-2.0
//! `vdoctl upgrade`, `pause`, `resume`, `reconcile` and `wait` as they are typed.

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
    /// Shows what an upgrade would do: of the drivers, or of Kubernetes or a vCenter
    ///
    /// Without a flag, every driver goes to the newest version that fits. The plan of that is made and tried in the API server as if it were
    /// asked for: steps, pods that restart, preconditions, what is in the way. Changes nothing. Ends with 0 when there is nothing to
    /// upgrade, with 1 when there is.
    ///
    /// Use it when VDO is deployed: it knows what is installed, and the API server tries it. matrix resolve only chooses versions.
    Plan(UpgradePlan),
    /// Upgrades the drivers, and waits until they are healthy
    ///
    /// Shows the plan and asks. Each driver is pinned to its version until it is healthy there; then the pin is lifted, unless there was one
    /// before. When it was interrupted, run it again to go on.
    Apply(UpgradeApply),
    /// Tries a change once more that failed and was rolled back
    Retry,
}

/// Arguments of `upgrade plan`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct UpgradePlan {
    /// A driver and the version it goes to, for example csi=3.7.3; may be repeated; default: every driver to the newest that fits
    #[arg(long, value_name = "DRIVER=VERSION", value_delimiter = ',')]
    pub to: Vec<DriverArg>,
    /// A Kubernetes version that the cluster is upgraded to, for example 1.35
    #[arg(long, value_name = "VERSION", conflicts_with = "to")]
    pub kubernetes: Option<KubernetesVersion>,
    /// A version of OpenShift that the cluster is upgraded to, for example 4.21: the same as the version of Kubernetes in it
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["to", "kubernetes"])]
    pub openshift: Option<OpenShiftVersion>,
    /// A version that a vCenter is upgraded to, for example 9.0 or vc1=9.0; may be repeated
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
    /// A driver and the version it goes to, for example csi=3.7.3; may be repeated; default: every driver to the newest that fits
    #[arg(long, value_name = "DRIVER=VERSION", value_delimiter = ',')]
    pub to: Vec<DriverArg>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// Does not ask; needed without a terminal
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Ends when the upgrade is asked for, without waiting for it; the pins stay until the command is run again
    #[arg(long)]
    pub no_wait: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `pause` and `resume`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Manage {
    /// The driver: cpi, csi, or the name of a further one; default: all
    #[arg(value_name = "DRIVER")]
    pub driver: Option<String>,
    /// Waits until the operator has acted on it; with resume, until everything is healthy
    #[arg(long)]
    pub wait: bool,
}

/// Arguments of `wait`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Wait {
    /// What is waited for: healthy, deleted, or a condition of the VDOConfig such as MatrixFresh or UpgradeAvailable=False; condition=NAME as kubectl wait has it
    /// is the same
    #[arg(long = "for", value_name = "WHAT", default_value = "healthy")]
    pub what: String,
    /// Ends as soon as something is wrong, although the operator keeps trying; without the flag only where a person has to act
    #[arg(long)]
    pub fail_fast: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
