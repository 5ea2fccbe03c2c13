// SPDX-License-Identifier: Apache-2.0
//! Finds the login files of Helm and Docker on this machine, and reads the login for a reference, also from a credential helper.

use super::{Keychain, Login, Reference, ask_helper};
use crate::web::AccessError;
use std::path::PathBuf;
use vdo_api::types::Secret;

/// Where Helm and Docker keep logins: those files that exist, in the order in which they are asked.
#[must_use]
pub fn kept_logins() -> Vec<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "these variables have the same meaning as in helm and docker")]
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let helm = named("HELM_REGISTRY_CONFIG")
        .or_else(|| Some(named("HELM_CONFIG_HOME")?.join("registry/config.json")))
        .or_else(|| Some(vdo_system::config_folder()?.join("helm/registry/config.json")));
    let docker = named("DOCKER_CONFIG").or_else(|| Some(std::env::home_dir()?.join(".docker")));
    let files = helm.into_iter().chain(docker.map(|folder| folder.join("config.json")));
    files.filter(|file| file.is_file()).collect()
}

/// The login for a reference in a configuration of Helm or Docker. A program that keeps logins is asked when the configuration names one.
///
/// # Errors
/// When it is no such configuration, or the program fails. The text is not repeated; `name` is what errors call it.
pub async fn kept_login(name: &str, text: &Secret, reference: &Reference) -> Result<Option<Login>, AccessError> {
    let keychain = Keychain::parse(name, text)?;
    match keychain.login(&reference.host, &reference.repository) {
        Some(login) => Ok(Some(login.clone())),
        None => match keychain.helper(&reference.host) {
            Some(helper) => ask_helper(helper, &reference.host).await,
            None => Ok(None),
        },
    }
}
