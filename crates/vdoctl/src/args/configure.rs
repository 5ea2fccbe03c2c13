// SPDX-License-Identifier: Apache-2.0
//! `vdoctl configure` and `vdoctl secrets` as they are typed.

use super::{MatrixFile, Output, Preview};
use crate::waiting::After;
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
    /// Adds a vSphere connection, or changes one
    ///
    /// What is not named stays as it is. The vCenter is asked everything that the operator would ask, and the API server tries the objects,
    /// before the first is written: the Secret of the account, the certificate authorities, the connection.
    Connection(Box<ConfigureConnection>),
    /// Changes the VDOConfig: versions, policies, values
    ///
    /// The API server tries the change, and the whole plan after it; only then it is written. vdoctl plan --set shows the plan alone.
    Drivers(ConfigureDrivers),
    /// Names where the operator takes its compatibility matrix from
    ///
    /// It is read from here, and the plan with it is made, before it is written. Keys and credentials are mounted into the operator, so
    /// vdoctl deploy sets them up.
    Matrix(ConfigureMatrix),
}

/// What every one of them takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Writing {
    /// Writes nothing: makes every check, and shows what would be written
    #[arg(long)]
    pub dry_run: bool,
    /// Writes although checks fail, or the vCenter cannot be reached from here
    #[arg(long)]
    pub ignore_checks: bool,
    /// Waits until the drivers are healthy with it
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
    /// The connection; default: the only one, or vc1 where there is none
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The host name or address of the vCenter, and its port if it is not 443
    #[arg(long, value_name = "HOST[:PORT]")]
    pub vcenter: Option<String>,
    /// The user that the drivers log in as, for example k8s@vsphere.local
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A file with the password, which no other user can read; - is stdin, /dev/fd/3 a descriptor; default with --user: it is asked for on the terminal
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A Secret with the user and the password, as vdoctl users create makes it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["user", "password_file", "interactive"])]
    pub credentials_secret: Option<String>,
    /// A datacenter to look in, by name or inventory path; may be repeated; an empty one means all
    #[arg(long, value_name = "NAME")]
    pub datacenter: Vec<String>,
    /// The SHA-256 or SHA-1 thumbprint of the vCenter's certificate
    #[arg(long, value_name = "DIGITS", conflicts_with_all = ["ca_file", "insecure", "fetch_certificate"])]
    pub thumbprint: Option<Thumbprint>,
    /// A file with the certificate authorities that sign it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["insecure", "fetch_certificate"])]
    pub ca_file: Option<PathBuf>,
    /// Sends the password to any server that answers, without checking its certificate
    #[arg(long, conflicts_with = "fetch_certificate")]
    pub insecure: bool,
    /// Takes the certificate that the vCenter shows now, after you have confirmed it
    #[arg(long)]
    pub fetch_certificate: bool,
    /// Asks for each value on the terminal
    #[arg(long, short = 'i')]
    pub interactive: bool,
    /// Confirms the certificate of --fetch-certificate, and another vCenter behind a connection
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// How it is written.
    #[command(flatten)]
    pub writing: Writing,
}

/// Arguments of `configure drivers`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ConfigureDrivers {
    /// The vSphere storage policy of the default StorageClass, by name; the class is created where the cluster has no default
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
    /// The source: embedded, a folder with index.yaml, or an address with https://, oci:// or configmap://
    #[arg(value_name = "SOURCE")]
    pub source: MatrixSource,
    /// How it is written.
    #[command(flatten)]
    pub writing: Writing,
}

/// Arguments of `secrets`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Secrets {
    /// The verb.
    #[command(subcommand)]
    pub verb: SecretsVerb,
}

/// The verbs of `secrets`.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum SecretsVerb {
    /// Shows which Secret each vSphere connection uses, and whether its vCenter accepts it; never what is in it
    List(SecretsList),
    /// Sets the password of a vSphere connection, or the user and the password
    ///
    /// Tests the new credentials with one login from this machine. They replace the old ones in the Secret only after the vCenter has accepted them.
    Set(SecretsSet),
}

/// Arguments of `secrets list`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SecretsList {
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `secrets set`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SecretsSet {
    /// The vSphere connection; default: the only one
    #[arg(value_name = "CONNECTION")]
    pub connection: Option<String>,
    /// The user; default: the one that is in the Secret
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A file with the password, which no other user can read; - is stdin, /dev/fd/3 a descriptor; default: it is asked for on the terminal
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// How it is written.
    #[command(flatten)]
    pub writing: Writing,
}
