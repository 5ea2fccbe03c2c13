// SPDX-License-Identifier: Apache-2.0
//! Opens an OCI registry with the login of `--username`, or with the login that Helm or Docker has stored.

use super::args::RegistryArgs;
use super::password_file::password;
use super::{CliError, Exit};
use std::io;
use std::path::Path;
use vdo_api::types::Secret;
use vdo_oci::registry::{Login, Options, Reference, Registry, RegistryError, TOKEN_REALMS, kept_login, kept_logins};
use vdo_oci::web::{Access, AccessError};

/// The registry of this reference.
pub(super) async fn open(args: &RegistryArgs, reference: &Reference) -> Result<Registry, CliError> {
    with(args, reference, login(args, reference).await?)
}

/// As whom the registry of this reference is asked. A program that keeps logins is asked when a configuration names one.
pub(super) async fn login(args: &RegistryArgs, reference: &Reference) -> Result<Login, CliError> {
    match &args.username {
        Some(user) => {
            let (password, _) = password(Some(Path::new("-")), user)?;
            Ok(Login::Basic {
                user: user.clone(),
                password,
            })
        }
        None => Ok(kept(args, reference).await?.unwrap_or_default()),
    }
}

/// The registry of this reference, with a login.
pub(super) fn with(args: &RegistryArgs, reference: &Reference, login: Login) -> Result<Registry, CliError> {
    let authorities = args.reach.ca_file.as_deref().map(text).transpose()?;
    let realms =
        (!args.reach.registry_token_realm.is_empty()).then(|| (TOKEN_REALMS.to_owned(), args.reach.registry_token_realm.join("\n")));
    let options = Options {
        access: Access::new(
            authorities
                .map(|authorities| ("ca.crt".to_owned(), authorities))
                .into_iter()
                .chain(realms),
        ),
        own: true,
        login,
        plain_http: args.reach.plain_http,
    };
    Registry::new(&reference.host, options).map_err(|error| failed(&error))
}

/// An error of a registry with the exit code for it.
pub(super) fn failed(error: &RegistryError) -> CliError {
    let exit = if error.is_missing() { Exit::NotFound } else { Exit::Refused };
    CliError::of(exit, error)
}

/// A reference as it was typed: `oci://HOST/REPOSITORY`.
pub(super) fn reference(text: &str) -> Result<Reference, CliError> {
    let wrong = |what: String| CliError::new(Exit::Usage, what, "Write oci://HOST/REPOSITORY.");
    if !text.starts_with("oci://") {
        return Err(wrong(format!("{text:?} is not an address in a registry")));
    }
    text.parse()
        .map_err(|error: vdo_oci::registry::ParseReferenceError| wrong(error.to_string()))
}

/// The login that a configuration of Helm or Docker has for a registry.
async fn kept(args: &RegistryArgs, reference: &Reference) -> Result<Option<Login>, CliError> {
    let unusable = |error: &AccessError| {
        CliError::new(
            Exit::Usage,
            error.to_string(),
            "Correct the file, or name another file with --registry-config.",
        )
    };
    let files = match &args.reach.registry_config {
        Some(file) => vec![file.clone()],
        None => kept_logins(),
    };
    for file in files {
        let name = file.display().to_string();
        let login = kept_login(&name, &Secret::new(text(&file)?), reference).await;
        if let Some(login) = login.map_err(|error| unusable(&error))? {
            return Ok(Some(login));
        }
    }
    Ok(None)
}

fn text(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|error| {
        let exit = if error.kind() == io::ErrorKind::NotFound {
            Exit::NotFound
        } else {
            Exit::Usage
        };
        CliError::new(
            exit,
            format!("{} cannot be read: {error}", file.display()),
            "Name a file that exists and may be read.",
        )
    })
}
