// SPDX-License-Identifier: Apache-2.0
//! The verbs of `vdoctl matrix`, and the flags of those that publish nothing (resolve, list, lint, sign, …); `--matrix` of all other verbs.
//! The flags of init, publish, withdraw, deprecate and diff are in `publish.rs`.

use super::{DriverArg, Init, Mark, MatrixDiff, Output, Publish, Vcenter};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use vdo_api::types::{KubernetesVersion, VcenterVersion};
use vdo_source::fetch::{ChartRepository, ConfigMaps, MatrixSource};

/// Arguments of `matrix`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Matrix {
    /// The verb.
    #[command(subcommand)]
    pub verb: MatrixVerb,
}

/// The verbs of `matrix`.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum MatrixVerb {
    /// Chooses a version of every driver, and shows the reasons
    ///
    /// The command needs no cluster when --kubernetes and --vcenter are given. Values that are not given are read from the cluster: its
    /// Kubernetes version, its vSphere connections, its VDOConfig and the installed driver versions. When no version fits, the command
    /// lists the reasons for the rejections (-o wide lists every candidate), and the exit code is 1.
    ///
    /// With --what-if-kubernetes or --what-if-vcenter, the command shows step by step how the drivers change in an upgrade of the platform.
    ///
    /// Use this command when there is no cluster yet, or when you want the reasons for a choice. Where VDO is deployed, vdoctl upgrade plan
    /// also shows objects and pod restarts.
    Resolve(Resolve),
    /// Shows the chosen versions, the facts behind the choice, and why the remaining versions were not chosen
    Explain(Explain),
    /// Shows the reasons that prevent the choice of a version; the exit code is 1 when there is such a reason
    WhyNot(WhyNot),
    /// Shows a bar for each driver version, with the Kubernetes minor versions that this version supports
    ///
    /// If the kubeconfig names a cluster that answers at once, the Kubernetes minor version of this cluster is marked. -o wide prints a
    /// table with one line for each driver version.
    List(List),
    /// Shows all data of the matrix about one driver version
    Show(Show),
    /// Finds every mistake in a matrix index; needs no cluster
    ///
    /// vdoctl searches for the charts first next to the index, and then among the charts that are built into vdoctl. The exit code is 1
    /// when there is a mistake.
    Lint(Lint),
    /// Copies a matrix (index, signature and charts) from a folder into ConfigMaps, from which the operator reads the matrix
    ///
    /// vdoctl checks the index and every chart before it writes anything. The new matrix replaces an earlier matrix of the same name as a
    /// whole, and vdoctl deletes ConfigMaps of the earlier matrix that are no longer needed.
    Load(MatrixLoad),
    /// Signs a matrix index with a private key; needs no cluster
    ///
    /// Writes the signature next to the index in the two formats of cosign: index.yaml.sig, and for P-256 keys also the bundle
    /// index.yaml.sigstore.json. The command can sign any other file in the same way.
    Sign(Sign),
    /// Shows the source of the operator's matrix, and the setting that names this source
    Source(MatrixSourceArgs),
    /// Checks the signature of a matrix index; needs no cluster
    ///
    /// The exit code is 4 when none of the keys has signed the index.
    Verify(Verify),
    /// Creates your own matrix in a folder: a copy of an existing matrix with its charts, or an empty matrix; needs no cluster
    ///
    /// The folder is a complete matrix source. You can name the folder with --matrix, or copy the folder to a web server or to another
    /// machine.
    Init(Init),
    /// Adds driver versions to a matrix in a folder
    ///
    /// vdoctl lints every chart, renders the chart for each supported Kubernetes minor version, and compares the chart with its previous
    /// version. With --kubeconfig or --context, vdoctl also sends the objects of the chart to the API server of that cluster in a dry run. The new matrix entry
    /// contains the images, the digest of the chart and the versions from which an upgrade is possible. vdoctl also updates the version,
    /// the date and the expiry date of the matrix, and signs the matrix. If a chart has a problem, nothing is written, and the exit code
    /// is 4.
    Publish(Box<Publish>),
    /// Withdraws a version: the operator no longer chooses this version, and replaces this version where it is installed
    Withdraw(Mark),
    /// Deprecates a version: the operator chooses this version only if no other version fits
    Deprecate(Mark),
    /// Compares two matrices, and shows where an operator would choose different versions
    ///
    /// The exit code is 0 when an operator would act in the same way with both matrices, and 1 otherwise.
    Diff(MatrixDiff),
}

/// Arguments of `matrix sign`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Sign {
    /// A matrix index, or a folder with index.yaml
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A file with the private key (PEM, PKCS #8), readable only by you; - means stdin
    #[arg(long, env = "VDO_SIGNING_KEY_FILE", value_name = "FILE")]
    pub key_file: PathBuf,
}

/// Arguments of `matrix load`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MatrixLoad {
    /// A folder with index.yaml and its charts, or an index file with its charts in the same folder
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The matrix source to write, configmap://NAMESPACE/NAME; the files are written into ConfigMaps, and their list into the Secret NAME
    #[arg(value_name = "CONFIGMAP")]
    pub place: ConfigMaps,
}

/// Arguments of `matrix source`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MatrixSourceArgs {
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix verify`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Verify {
    /// A matrix index, or a folder with index.yaml
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A file with public keys (PEM), or a folder of such files
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH")]
    pub keys: PathBuf,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Another index than the one that the operator of the cluster decides with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct MatrixFile {
    /// The compatibility matrix to use: embedded (the built-in matrix), an index file, a folder with index.yaml, or an https://, oci:// or
    /// configmap:// address; default: the matrix that the operator in the cluster uses; without a cluster, the matrix that is built into
    /// vdoctl
    #[arg(long, env = "VDO_MATRIX", value_name = "SOURCE", global = true)]
    pub matrix: Option<MatrixSource>,
    /// A file with public keys (PEM), or a folder of such files; only a matrix that one of these keys has signed is accepted
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH", global = true)]
    pub matrix_keys: Option<PathBuf>,
    /// A folder with the credentials for the address of the matrix: one or more of the files username and password, bearerToken, tls.crt
    /// and tls.key, ca.crt, or .dockerconfigjson
    #[arg(long, env = "VDO_MATRIX_CREDENTIALS", value_name = "FOLDER", global = true)]
    pub matrix_credentials: Option<PathBuf>,
}

impl MatrixFile {
    /// The index and its charts.
    #[must_use]
    pub fn repository(&self) -> ChartRepository {
        ChartRepository::at(self.matrix.clone(), self.matrix_keys.clone(), self.matrix_credentials.clone())
    }
}

/// What a choice is made for.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Platform {
    /// The Kubernetes version, for example 1.34
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<KubernetesVersion>,
    /// A vCenter version, for example 8.0.3, vc1=8.0.3 (with the name of the connection) or 6.7.0-14367737 (with the build); may be
    /// repeated
    #[arg(long, value_name = "[NAME=]VERSION", value_delimiter = ',')]
    pub vcenter: Vec<Vcenter>,
    /// Chooses a version only for this driver, for example csi; csi=3.7.3 pins the version; may be repeated; default: all drivers
    #[arg(long, value_name = "NAME[=VERSION]", value_delimiter = ',')]
    pub driver: Vec<DriverArg>,
    /// An installed driver version, for example csi=3.6.3; may be repeated; default: the driver versions in the cluster
    #[arg(long, value_name = "NAME=VERSION", value_delimiter = ',')]
    pub installed: Vec<DriverArg>,
    /// A feature that the storage driver must support, for example snapshots; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub feature: Vec<String>,
}

/// Arguments of `matrix resolve`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Resolve {
    /// The platform.
    #[command(flatten)]
    pub platform: Platform,
    /// Shows the effects of an upgrade to this Kubernetes version, for example 1.35
    #[arg(long, value_name = "VERSION")]
    pub what_if_kubernetes: Option<KubernetesVersion>,
    /// Shows the effects of an upgrade to this vCenter version, for example 8.0.4 or vc1=8.0.4; may be repeated
    #[arg(long, value_name = "[NAME=]VERSION", value_delimiter = ',')]
    pub what_if_vcenter: Vec<Vcenter>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix explain`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Explain {
    /// The platform.
    #[command(flatten)]
    pub platform: Platform,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix why-not`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct WhyNot {
    /// The driver: vsphere-cpi (or cpi) or vsphere-csi (or csi)
    #[arg(value_name = "DRIVER")]
    pub name: String,
    /// The version of the driver, for example 3.5.1
    #[arg(value_name = "VERSION")]
    pub version: String,
    /// The platform.
    #[command(flatten)]
    pub platform: Platform,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix list`.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct List {
    /// Lists only this driver
    #[arg(value_name = "DRIVER")]
    pub driver: Option<String>,
    /// Lists only versions that support this Kubernetes version, for example 1.34
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<KubernetesVersion>,
    /// Lists only versions that support this vCenter version, for example 8.0.3
    #[arg(long, value_name = "VERSION")]
    pub vcenter: Option<VcenterVersion>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix show`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Show {
    /// The driver: vsphere-cpi (or cpi) or vsphere-csi (or csi)
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The version of the driver, for example 3.7.3. Without a version, the command fails, and its message lists the newest versions
    #[arg(value_name = "VERSION")]
    pub version: Option<String>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix lint`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Lint {
    /// The index, or a folder with index.yaml; default: the index that is built into vdoctl
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
