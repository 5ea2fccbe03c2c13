// SPDX-License-Identifier: Apache-2.0
//! The flags for access to the registry that is published to (certificate authorities, plain HTTP, logins), and the client for it.

use anyhow::{Context, Result};
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use vdo_api::types::Secret;
use vdo_oci::registry::{Login, Options, Reference, Registry, TOKEN_REALMS, kept_login, kept_logins, realm_host};
use vdo_oci::web::Access;

/// How the registry is reached.
#[derive(Debug, clap::Args)]
pub struct Reach {
    /// A file with the certificate authorities (PEM) for the registry, instead of the certificate authorities of this machine
    #[arg(long, env = "VDO_REGISTRY_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Connects to the registry without TLS
    #[arg(long, env = "VDO_REGISTRY_PLAIN_HTTP", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    plain_http: bool,
    /// The file with logins; default: the file of helm registry login, then the file of docker login
    #[arg(long, env = "VDO_REGISTRY_CONFIG", value_name = "FILE")]
    registry_config: Option<PathBuf>,
    /// A host that issues tokens for the registry and may receive the user and the password
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_parser = realm_host)]
    registry_token_realm: Vec<String>,
}

impl Reach {
    /// The registry of a reference. It is not asked yet.
    pub async fn open(&self, at: &Reference) -> Result<Registry> {
        let read = |file: &PathBuf| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        let authorities = self.ca_file.as_ref().map(read).transpose()?;
        let authorities = authorities.map(|text| ("ca.crt".to_owned(), text));
        let realms = self.registry_token_realm.join("\n");
        let realms = (!realms.is_empty()).then(|| (TOKEN_REALMS.to_owned(), realms));
        let mut login = None;
        for file in self.registry_config.clone().map_or_else(kept_logins, |file| vec![file]) {
            login = kept_login(&file.display().to_string(), &Secret::new(read(&file)?), at).await?;
            if login.is_some() {
                break;
            }
        }
        let options = Options {
            access: Access::new(authorities.into_iter().chain(realms)),
            own: true,
            login: login.unwrap_or(Login::Anonymous),
            plain_http: self.plain_http,
        };
        Ok(Registry::new(&at.host, options)?)
    }
}

/// Waits for what is asked of a registry.
pub fn wait<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot start")?.block_on(asked)
}
