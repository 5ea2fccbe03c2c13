// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix` as it is typed.

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
    /// Chooses a version of every driver, and says why this one
    ///
    /// Needs no cluster when --kubernetes and --vcenter are given. What is not given is taken from the cluster: its version,
    /// its vSphere connections, its VDOConfig and what is installed. When nothing fits, every candidate is listed with the
    /// reason it was rejected, and the exit code is 1.
    ///
    /// With --what-if-kubernetes or --what-if-vcenter it tells what an upgrade of the platform would do, step by step.
    ///
    /// Use it when there is no cluster yet, or for the reasons of a choice. Where VDO is deployed, upgrade plan shows objects and restarts, too.
    Resolve(Resolve),
    /// Shows the choice, the facts it is based on, and why every other version was not chosen
    Explain(Explain),
    /// Says what keeps a version from being chosen; the exit code is 1 when something does
    WhyNot(WhyNot),
    /// Shows which Kubernetes minors the versions support, as bars
    ///
    /// The minor of the cluster is marked where a kubeconfig leads to one that answers at once. -o wide is a table with one line for each version.
    List(List),
    /// Shows everything that is known of a version
    Show(Show),
    /// Finds every mistake in an index; needs no cluster
    ///
    /// Charts are looked for beside the index, and in this vdoctl. The exit code is 1 when there is a mistake.
    Lint(Lint),
    /// Puts a folder with an index, its signature and its charts into ConfigMaps, from where the operator takes them
    ///
    /// Nothing is written before the index and every chart were checked. An earlier matrix of the same name is replaced as a whole; its
    /// ConfigMaps that are not needed any more are deleted.
    Load(MatrixLoad),
    /// Signs an index with a private key; needs no cluster
    ///
    /// Writes the signature next to the index in the two forms of cosign: index.yaml.sig, and the bundle index.yaml.sigstore.json for keys on
    /// P-256. Signs any other file as well.
    Sign(Sign),
    /// Shows where the operator takes the matrix from, and what names that source
    Source(MatrixSourceArgs),
    /// Checks the signature of an index; needs no cluster
    ///
    /// The exit code is 4 when none of the keys has signed it.
    Verify(Verify),
    /// Begins a matrix of your own in a folder: a copy of this one with its charts, or an empty one; needs no cluster
    ///
    /// The folder is a source as it is: for --matrix, copied to a web server, or copied to another machine.
    Init(Init),
    /// Adds versions of drivers to a matrix in a folder
    ///
    /// Every chart is linted, rendered for each Kubernetes minor that it supports, and compared with the version before it; with --kubeconfig
    /// or --context it is also tried in the API server of that cluster. Images, digest and upgrade edges are written into the entry; version,
    /// date and expiry of the matrix are raised, and it is signed. A chart with a problem is refused with 4, and nothing is written.
    Publish(Box<Publish>),
    /// Withdraws a version: it is never chosen any more, and left where it is installed
    Withdraw(Mark),
    /// Deprecates a version: it is chosen only where nothing better fits
    Deprecate(Mark),
    /// Compares two matrices: what differs in them, and what an operator would do differently
    ///
    /// Ends with 0 when an operator would do the same, with 1 when it would not.
    Diff(MatrixDiff),
}

/// Arguments of `matrix sign`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Sign {
    /// A matrix index, or a folder with index.yaml
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A file with the private key (PEM, PKCS #8) that no other user can read; - is stdin
    #[arg(long, env = "VDO_SIGNING_KEY_FILE", value_name = "FILE")]
    pub key_file: PathBuf,
}

/// Arguments of `matrix load`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MatrixLoad {
    /// A folder with index.yaml and the charts that it names, or an index file with charts beside it
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The Secret that is going to list the files, as a source names it: configmap://NAMESPACE/NAME
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
    /// Another matrix than the operator's: embedded, an index file, a folder with index.yaml, or an address with https://, oci:// or configmap://; default:
    /// the one that the operator of the cluster decides with, and without a cluster the one of this vdoctl
    #[arg(long, env = "VDO_MATRIX", value_name = "SOURCE", global = true)]
    pub matrix: Option<MatrixSource>,
    /// A file with public keys (PEM), or a folder of such files: a matrix that none of them has signed is refused
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH", global = true)]
    pub matrix_keys: Option<PathBuf>,
    /// A folder with the files of a Secret for that address: username and password, or bearerToken; tls.crt and tls.key; ca.crt; .dockerconfigjson
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
    /// A vCenter version, for example 8.0.3, vc1=8.0.3, or with its build 6.7.0-14367737; may be repeated
    #[arg(long, value_name = "[NAME=]VERSION", value_delimiter = ',')]
    pub vcenter: Vec<Vcenter>,
    /// A driver to choose, perhaps pinned, for example csi or csi=3.7.3; may be repeated; default: all
    #[arg(long, value_name = "NAME[=VERSION]", value_delimiter = ',')]
    pub driver: Vec<DriverArg>,
    /// A version that is installed, for example csi=3.6.3; may be repeated; default: what the cluster has
    #[arg(long, value_name = "NAME=VERSION", value_delimiter = ',')]
    pub installed: Vec<DriverArg>,
    /// Something the storage driver must be able to do, for example snapshots; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub feature: Vec<String>,
}

/// Arguments of `matrix resolve`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Resolve {
    /// The platform.
    #[command(flatten)]
    pub platform: Platform,
    /// Looks ahead to this Kubernetes version, for example 1.35
    #[arg(long, value_name = "VERSION")]
    pub what_if_kubernetes: Option<KubernetesVersion>,
    /// Looks ahead to this vCenter version, for example 8.0.4 or vc1=8.0.4; may be repeated
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
    /// The driver: vsphere-cpi or cpi, vsphere-csi or csi
    #[arg(value_name = "DRIVER")]
    pub name: String,
    /// Its version, for example 3.5.1
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
    /// Only this driver
    #[arg(value_name = "DRIVER")]
    pub driver: Option<String>,
    /// Only versions that support this Kubernetes version, for example 1.34
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<KubernetesVersion>,
    /// Only versions that support this vCenter version, for example 8.0.3
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
    /// The driver: vsphere-cpi or cpi, vsphere-csi or csi
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// Its version, for example 3.7.3; without it the error names the newest
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
    /// The index; default: the one of this vdoctl
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}
