// SPDX-License-Identifier: Apache-2.0
//! How registries are reached, as Helm names it.

use clap::Args;
use std::path::PathBuf;
use vdo_oci::registry::realm_host;

/// How registries are reached, of several owners perhaps: each with the login that is kept for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Registries {
    /// A file with the authorities (PEM) that may have signed the certificate of a registry, instead of those of the machine
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Speaks to registries without TLS
    #[arg(long)]
    pub plain_http: bool,
    /// The file with logins; default: that of helm registry login, then that of docker login
    #[arg(long, env = "VDO_REGISTRY_CONFIG", value_name = "FILE")]
    pub registry_config: Option<PathBuf>,
    /// A host that gives out tokens for a registry and may see its login; may be repeated. Not needed for a host in the domain of the registry
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_parser = realm_host)]
    pub registry_token_realm: Vec<String>,
}

/// How one registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RegistryArgs {
    /// As others are.
    #[command(flatten)]
    pub reach: Registries,
    /// The user of the registry; default: the login that Helm or Docker keeps
    #[arg(long, value_name = "NAME", requires = "password_stdin")]
    pub username: Option<String>,
    /// Reads the password of that user from stdin
    #[arg(long, requires = "username")]
    pub password_stdin: bool,
}

impl From<Registries> for RegistryArgs {
    fn from(reach: Registries) -> Self {
        Self { reach, ..Self::default() }
    }
}
