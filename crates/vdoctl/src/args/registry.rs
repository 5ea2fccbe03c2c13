//! How a registry is reached, as Helm names it.

use clap::Args;
use clap::builder::FalseyValueParser;
use std::path::PathBuf;
use vdo_oci::registry::realm_host;

/// How a registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RegistryArgs {
    /// A file with the authorities (PEM) that may have signed the registry's certificate, instead of those of the machine
    #[arg(long, env = "VDO_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Speaks to the registry without TLS
    #[arg(long, env = "VDO_PLAIN_HTTP", value_parser = FalseyValueParser::new())]
    pub plain_http: bool,
    /// The user of the registry; default: the login that Helm or Docker keeps
    #[arg(long, env = "VDO_USERNAME", value_name = "NAME", requires = "password_stdin")]
    pub username: Option<String>,
    /// Reads the password of that user from stdin
    #[arg(long, env = "VDO_PASSWORD_STDIN", value_parser = FalseyValueParser::new(), requires = "username")]
    pub password_stdin: bool,
    /// The file with logins; default: that of helm registry login, then that of docker login
    #[arg(long, env = "VDO_REGISTRY_CONFIG", value_name = "FILE")]
    pub registry_config: Option<PathBuf>,
    /// A host that gives out tokens for the registry and may see its login; may be repeated. Not needed for a host in the domain of the registry
    #[arg(long, env = "VDO_REGISTRY_TOKEN_REALM", value_name = "HOST", value_delimiter = ',', value_parser = realm_host)]
    pub registry_token_realm: Vec<String>,
}
