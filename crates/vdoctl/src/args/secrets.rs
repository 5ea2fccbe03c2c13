// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl secrets list` and `vdoctl secrets set` with their help.

use super::{Output, Writing};
use clap::{Args, Subcommand};
use std::path::PathBuf;

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
    /// Shows the Secret of each vSphere connection, and whether the vCenter accepts the credentials in the Secret; never shows a password
    List(SecretsList),
    /// Sets the password of a vSphere connection, or the user and the password
    ///
    /// vdoctl tests the new credentials with one login from this machine. The new credentials replace the old credentials in the Secret
    /// only after the vCenter has accepted the login.
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
    /// The vSphere connection; default: the only connection
    #[arg(value_name = "CONNECTION")]
    pub connection: Option<String>,
    /// The user; default: the user in the Secret
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A file with the password, readable only by you; - means stdin, /dev/fd/3 means file descriptor 3; default: a prompt on the terminal
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// How it is written.
    #[command(flatten)]
    pub writing: Writing,
}
