// SPDX-License-Identifier: Apache-2.0
//! Registries: real ones, which store what they are given, and a server of our own for what those never do.

mod client;
mod login;
mod matrix;
mod signed;

use anyhow::Result;
use hyper::body::Bytes;
use std::path::PathBuf;
use vdo_api::types::Secret;
use vdo_oci::registry::{Login, Options, Reference, Registry};
use vdo_oci::web::Access;
use vdo_testbed::{LOGIN, RegistryAuth, RegistryKind, RegistryServer};

/// Both kinds of registry: one that lists referrers, and one that does not and wants a login.
async fn both() -> Result<[RegistryServer; 2]> {
    Ok([
        RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?,
        RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?,
    ])
}

fn login() -> Login {
    Login::Basic {
        user: LOGIN.0.into(),
        password: Secret::new(LOGIN.1),
    }
}

/// A client that trusts a registry's authority.
fn client(server: &RegistryServer, login: Login) -> Result<Registry> {
    let options = Options {
        access: Access::new([("ca.crt".to_owned(), server.ca())]),
        own: true,
        login,
        plain_http: false,
    };
    Ok(Registry::new(&server.host(), options)?)
}

fn reference(server: &RegistryServer, rest: &str) -> Result<Reference> {
    Ok(format!("{}/{rest}", server.host()).parse()?)
}

/// Bytes that do not compress, and differ from place to place.
fn noise(count: usize) -> Bytes {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..count).map(|_| next()).collect::<Vec<u8>>().into()
}

/// What an error and its causes say.
fn chain(error: &vdo_oci::registry::RegistryError) -> String {
    vdo_api::api::chain(error)
}

/// A folder with the files of credentials.
struct Credentials(tempfile::TempDir);

impl Credentials {
    fn new(files: &[(&str, &str)]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content)?;
        }
        Ok(Self(folder))
    }

    /// Of someone whom a registry lets in.
    fn of(server: &RegistryServer) -> Result<Self> {
        Self::new(&[("ca.crt", &server.ca()), ("username", LOGIN.0), ("password", LOGIN.1)])
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }
}
