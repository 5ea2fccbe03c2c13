// SPDX-License-Identifier: Apache-2.0
//! The flags `--thumbprint`, `--ca-file` and `--insecure` for the certificate of a vCenter, of `vdoctl deploy` and `vdoctl users`.

use clap::Args;
use std::path::PathBuf;
use vdo_api::types::Thumbprint;

/// What proves that a server is the vCenter that was named. The flags that name it are the group `reached`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "vCenter")]
pub struct TypedTrust {
    /// The SHA-256 or SHA-1 thumbprint of the vCenter's certificate
    #[arg(long, value_name = "DIGITS", requires = "reached", conflicts_with_all = ["ca_file", "insecure"])]
    pub thumbprint: Option<Thumbprint>,
    /// A file with the certificate authorities that signed the vCenter's certificate; default: the authorities of this machine
    #[arg(long, value_name = "FILE", requires = "reached", conflicts_with = "insecure")]
    pub ca_file: Option<PathBuf>,
    /// Does not check the vCenter's certificate: the password is sent to any server that answers
    #[arg(long, requires = "reached")]
    pub insecure: bool,
}
