// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl rights` with their help: `--missing`, `--openshift`, `--admission-policy`, `--service-account`.

use super::{DriverArg, MatrixFile, Output};
use clap::Args;

/// Arguments of `rights`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Rights {
    /// Prints only the rights of this driver, for example csi or csi=3.7.3; may be repeated; default: CPI and CSI, and with --missing also
    /// the drivers in spec.drivers
    #[arg(long, value_name = "NAME[=VERSION]", value_delimiter = ',')]
    pub driver: Vec<DriverArg>,
    /// Prints only the objects that the cluster lacks
    #[arg(long)]
    pub missing: bool,
    /// Also prints the rights for OpenShift: the SecurityContextConstraints that the pods of the drivers may use
    #[arg(long)]
    pub openshift: bool,
    /// Also prints the ValidatingAdmissionPolicy that limits the content that the operator may write (Kubernetes 1.30 or newer)
    #[arg(long)]
    pub admission_policy: bool,
    /// The ServiceAccount of the operator; default: vdo-operator, or with --missing the ServiceAccount of the operator's Deployment
    #[arg(long, value_name = "NAME")]
    pub service_account: Option<String>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format; yaml by default.
    #[command(flatten)]
    pub output: Output,
}
