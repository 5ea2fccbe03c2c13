// SPDX-License-Identifier: Apache-2.0
//! The flags for the access to OCI registries: `--ca-file`, `--plain-http`, `--registry-config`, `--username`, `--password-stdin`.

use clap::Args;
use std::path::PathBuf;
use vdo_oci::registry::realm_host;

/// How registries are reached, of several owners perhaps: each with the login that is kept for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Registries {
    /// A PEM file with the certificate authorities to trust for registries, instead of the authorities of this machine
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Connects to registries over HTTP, without TLS
    #[arg(long)]
    pub plain_http: bool,
    /// The file with registry logins; default: the file of helm registry login, then the file of docker login
    #[arg(long, env = "VDO_REGISTRY_CONFIG", value_name = "FILE")]
    pub registry_config: Option<PathBuf>,
    /// The host of a token service to which vdoctl is allowed to send the login for a registry (user and password, or identity token); may be
    /// repeated. The flag is not needed for a host in the
    /// domain of the registry
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_parser = realm_host)]
    pub registry_token_realm: Vec<String>,
}

/// How one registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RegistryArgs {
    /// As others are.
    #[command(flatten)]
    pub reach: Registries,
    /// The user for the registry; default: the login that Helm or Docker has stored
    #[arg(long, value_name = "NAME", requires = "password_stdin")]
    pub username: Option<String>,
    /// Reads the password of the --username user from stdin
    #[arg(long, requires = "username")]
    pub password_stdin: bool,
}

impl From<Registries> for RegistryArgs {
    fn from(reach: Registries) -> Self {
        Self { reach, ..Self::default() }
    }
}
