// SPDX-License-Identifier: Apache-2.0
//! A client of OCI registries, by version 1.1 of the distribution specification: requests with login, manifests, blobs, uploads, referrers.
//!
//! # Guarantees
//! Everything that is read has the requested digest; for a tag, the digest is computed from the bytes and never taken from a
//! header. Credentials are sent to the registry, and to the service that it names for tokens where that is in its domain or allowed, by https
//! only, unless plain http was requested. Every answer is bounded in bytes and in time.

mod attempts;
mod challenge;
mod chart;
mod error;
mod files;
pub mod fuzz;
mod helm_docker_logins;
mod helper;
mod keychain;
mod matrix;
mod pull;
mod push;
mod realm;
mod reference;
mod referrers;
mod session;
#[cfg(test)]
mod tests;
mod token;
mod upload;

pub(crate) use attempts::Attempts;
pub use attempts::retry;
pub use chart::{chart_manifest, pull_chart, push_chart};
pub use error::{Fault, RegistryError};
pub use files::{Artifact, File, current, found, layers, pull_files, push_files};
pub use helm_docker_logins::{kept_login, kept_logins};
pub use helper::ask as ask_helper;
pub use keychain::{Keychain, Login};
pub use matrix::{matrix_artifact, pull_matrix, push_matrix};
pub use pull::{BlobReader, Fetched, Seen};
pub use realm::{TOKEN_REALMS, host as realm_host};
pub use reference::{ParseReferenceError, Reference};
pub use upload::Upload;

use crate::web::{Access, Client, Clock, Follow, WebError, refused};
use error::said;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use session::Session;
use std::sync::Arc;

/// How a registry is asked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Authorities, a client certificate, a proxy, and the hosts that may see the login; of the rest of it nothing is used.
    pub access: Access,
    /// Whether it is the registry that the client certificate is for.
    pub own: bool,
    /// As whom.
    pub login: Login,
    /// Without TLS.
    pub plain_http: bool,
}

/// One registry. Clones share its connections and its login.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    host: String,
    base: Url,
    http: Client,
    options: Options,
    session: Session,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry({})", self.0.host)
    }
}

/// What a request is for, as tokens are given for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Pull,
    Push,
}

impl Registry {
    /// A registry at a host. Nothing is sent yet.
    ///
    /// # Errors
    /// When the host is none, or the authorities or the client certificate cannot be used.
    pub fn new(host: &str, options: Options) -> Result<Self, RegistryError> {
        let wrong = |source: Fault| RegistryError::new(format!("the registry {host} cannot be used"), source);
        // Where the images of this name really are.
        let server = if host == "docker.io" { "registry-1.docker.io" } else { host };
        let scheme = if options.plain_http { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{server}/v2/"));
        let base = base.map_err(|error| wrong(WebError::Asked(format!("{host} is not a host: {error}")).into()))?;
        let follow = if options.plain_http { Follow::Plain } else { Follow::Https };
        let http = Client::new(&base, (&options.access, options.own), HeaderMap::new(), follow).map_err(|error| wrong(error.into()))?;
        Ok(Self(Arc::new(Inner {
            host: host.to_owned(),
            base,
            http,
            session: Session::default(),
            options,
        })))
    }

    /// Its host, as it was named.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// The address of something in a repository.
    fn url(&self, repository: &str, path: &str) -> Result<Url, Fault> {
        let joined = self.0.base.join(&format!("{repository}/{path}"));
        joined.map_err(|error| WebError::Asked(format!("{path} is not an address: {error}")).into())
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.0.http.request(method, url)
    }

    /// Sends a request, and again after a login where the registry asks for one. Credentials go to the registry alone, wherever it leads.
    async fn ask(
        &self,
        (repository, need): (&str, Need),
        request: RequestBuilder,
        clock: impl Fn() -> Clock,
    ) -> Result<(Clock, Response), Fault> {
        let request = request.build().map_err(WebError::from)?;
        let own = request.url().origin() == self.0.base.origin();
        let mut may_log_in = own;
        loop {
            // What is sent is in memory, so that it can be sent again.
            let mut sent = request
                .try_clone()
                .ok_or_else(|| WebError::Asked("the request cannot be sent twice".into()))?;
            let mut authorized = false;
            if own {
                let authorization = self.0.session.authorization(&self.0.options.login, repository, need)?;
                authorized = authorization.is_some();
                sent.headers_mut().extend(authorization);
            }
            let clock = clock();
            let response = clock.within(self.0.http.execute(sent)).await??;
            let asks = response.status() == StatusCode::UNAUTHORIZED && response.url().origin() == self.0.base.origin();
            if !asks || !may_log_in || !self.log_in((repository, need), authorized, &response).await? {
                return Ok((clock, response));
            }
            may_log_in = false;
        }
    }

    /// What an answer that is not the right one means.
    async fn refusal(&self, (clock, response): (Clock, Response)) -> Fault {
        if response.status().is_success() {
            return Fault::NotRegistry(format!("HTTP status {}", response.status()));
        }
        refused(clock, response, said).await.into()
    }
}
