// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl configure connection`, `drivers` and `matrix`, and the flags of all writing verbs (`--ignore-checks`, `--wait`).

use super::{MatrixFile, Output, Preview};
use crate::wait::After;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use vdo_api::types::Thumbprint;
use vdo_source::fetch::MatrixSource;

/// Arguments of `configure`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Configure {
    /// What is configured.
    #[command(subcommand)]
    pub verb: ConfigureVerb,
}

/// What can be configured.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum ConfigureVerb {
    /// Adds or changes a vSphere connection
    ///
    /// Fields that you do not name keep their values. Before vdoctl writes an object, it makes all checks that the operator would make in
    /// the vCenter, and the API server tries the objects in a dry run. The objects are the Secret of the account, the certificate
    /// authorities and the connection.
    Connection(Box<ConfigureConnection>),
    /// Changes the VDOConfig: versions, policies, values
    ///
    /// First, the API server tries the change and the resulting plan in a dry run. Then vdoctl writes the change. To see only the plan, use
    /// vdoctl plan --set.
    Drivers(ConfigureDrivers),
    /// Sets the source of the operator's compatibility matrix
    ///
    /// Before vdoctl writes the setting, vdoctl itself reads the matrix and makes a plan with this matrix. To set the keys and credentials
    /// of the source, use vdoctl deploy, because the operator's pod mounts these files.
    Matrix(ConfigureMatrix),
}

/// What every one of them takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Writing {
    /// Writes nothing; makes every check and shows the objects that would be written
    #[arg(long)]
    pub dry_run: bool,
    /// Writes the changes even if checks fail, or if the vCenter cannot be reached from this machine
    #[arg(long)]
    pub ignore_checks: bool,
    /// Waits until the drivers are healthy after the change
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

impl Writing {
    /// What is waited for after it.
    pub(crate) fn waits(self) -> Option<After> {
        self.wait.then_some(After::Healthy)
    }
}

/// Arguments of `configure connection`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ConfigureConnection {
    /// The name of the connection; default: the only connection, or vc1 if there is no connection
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The host name or address of the vCenter, with the port if it is not 443
    #[arg(long, value_name = "HOST[:PORT]")]
    pub vcenter: Option<String>,
    /// The user that the drivers log in as, for example k8s@vsphere.local
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A file with the password, readable only by you; - means stdin, /dev/fd/3 means file descriptor 3; default with --user: a prompt on
    /// the terminal
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A Secret with the user and the password, for example from vdoctl users create
    #[arg(long, value_name = "NAME", conflicts_with_all = ["user", "password_file", "interactive"])]
    pub credentials_secret: Option<String>,
    /// A datacenter in which to search for virtual machines, by name or inventory path; may be repeated; an empty value means all
    /// datacenters
    #[arg(long, value_name = "NAME")]
    pub datacenter: Vec<String>,
    /// The SHA-256 or SHA-1 thumbprint of the vCenter's certificate
    #[arg(long, value_name = "DIGITS", conflicts_with_all = ["ca_file", "insecure", "fetch_certificate"])]
    pub thumbprint: Option<Thumbprint>,
    /// A file with the certificate authorities that signed the vCenter's certificate
    #[arg(long, value_name = "FILE", conflicts_with_all = ["insecure", "fetch_certificate"])]
    pub ca_file: Option<PathBuf>,
    /// Does not check the vCenter's certificate: the password is sent to any server that answers
    #[arg(long, conflicts_with = "fetch_certificate")]
    pub insecure: bool,
    /// Fetches the current certificate of the vCenter, and trusts this certificate after you have confirmed it
    #[arg(long)]
    pub fetch_certificate: bool,
    /// Asks for each value on the terminal
    #[arg(long, short = 'i')]
    pub interactive: bool,
    /// Accepts the certificate of --fetch-certificate without asking; also allows the connection to use another vCenter than before
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// How it is written.
    #[command(flatten)]
    pub writing: Writing,
}

/// Arguments of `configure drivers`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ConfigureDrivers {
    /// The name of the vSphere storage policy for the default StorageClass; the class is created if the cluster has no default StorageClass
    #[arg(long, value_name = "NAME")]
    pub storage_policy: Option<String>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// How it is written.
    #[command(flatten)]
    pub writing: Writing,
    /// The change.
    #[command(flatten)]
    pub change: Preview,
}

/// Arguments of `configure matrix`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ConfigureMatrix {
    /// The source: embedded (the operator's built-in matrix), a folder with index.yaml, or an https://, oci:// or configmap:// address
    #[arg(value_name = "SOURCE")]
    pub source: MatrixSource,
    /// How it is written.
    #[command(flatten)]
    pub writing: Writing,
}
