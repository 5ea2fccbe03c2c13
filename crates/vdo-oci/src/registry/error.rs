// SPDX-License-Identifier: Apache-2.0
//! Why a request to a registry failed (`RegistryError`), with the remedy, and which failures mean missing or wrong content.

use crate::oci::BlobError;
use crate::web::{AccessError, WebError};
use reqwest::StatusCode;
use serde::Deserialize;
use std::borrow::Cow;
use vdo_api::types::{Digest, Remedy, from_json};

/// A registry did not give or take something.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct RegistryError {
    what: String,
    #[source]
    fault: Box<Fault>,
}

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It cannot be asked, or refuses.
    #[error(transparent)]
    Web(#[from] WebError),
    /// What comes is not what was asked for.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The service for tokens does not give one.
    #[error("the token service {realm} issued no token")]
    Token {
        /// The service, without what follows its path.
        realm: String,
        /// Why.
        #[source]
        source: WebError,
    },
    /// Anyone on the way could read the credentials.
    #[error("the token service {0} of the registry does not use https, so nothing was sent to the token service")]
    Realm(String),
    /// The registry sends its clients far away for a token, and no one has allowed that.
    #[error("the token service {host} of the registry is in another domain, so the credentials were not sent to the token service")]
    FarRealm {
        /// The host of the service.
        host: String,
    },
    /// It is something else, such as a login page in front.
    #[error("the server does not answer like a registry: {0}")]
    NotRegistry(String),
    /// It is another kind of artifact.
    #[error("expected {expected}, found {found}")]
    Kind {
        /// What was asked for.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Another publisher was faster.
    #[error("{}; another publisher writes to the same tag", moved(before.as_ref(), found.as_ref()))]
    Moved {
        /// What was there when the publisher began.
        before: Option<Digest>,
        /// What is there now.
        found: Option<Digest>,
    },
    /// An upload cannot go on.
    #[error("the registry has stored {has} bytes of an upload, but {sent} bytes were sent")]
    Upload {
        /// What it has.
        has: u64,
        /// What it was sent.
        sent: u64,
    },
    /// An upload is not there any more, so it has to begin once more.
    #[error("the registry no longer has the upload")]
    Forgotten,
}

fn moved(before: Option<&Digest>, found: Option<&Digest>) -> String {
    match (before, found) {
        (None, Some(found)) => format!("the tag now points to {found}, and did not exist before"),
        (Some(before), None) => format!("the tag no longer exists, and pointed to {before} before"),
        (Some(before), Some(found)) => format!("the tag now points to {found}, and pointed to {before} before"),
        (None, None) => "the tag does not exist, although it was written".into(),
    }
}

impl RegistryError {
    /// An error of a registry: what was not possible, and why.
    pub fn new(what: impl Into<String>, fault: impl Into<Fault>) -> Self {
        Self {
            what: what.into(),
            fault: Box::new(fault.into()),
        }
    }

    /// Why.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Whether the registry says that there is no such thing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(&*self.fault, Fault::Web(WebError::Status { code, .. }) if *code == StatusCode::NOT_FOUND)
    }

    /// Whether an upload has to begin once more.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        matches!(&*self.fault, Fault::Forgotten)
    }

    /// Whether the registry has another part of something than we believe.
    pub(super) fn is_of_range(&self) -> bool {
        matches!(&*self.fault, Fault::Web(WebError::Status { code, .. }) if *code == StatusCode::RANGE_NOT_SATISFIABLE)
    }

    /// Whether the bytes that came are wrong, and not the way to them.
    #[must_use]
    pub fn is_content(&self) -> bool {
        matches!(&*self.fault, Fault::Blob(_) | Fault::NotRegistry(_) | Fault::Kind { .. })
    }

    /// Whether what was read before may be what is wrong: the whole has another digest, or there is no such rest of it.
    #[must_use]
    pub fn is_of_rest(&self) -> bool {
        self.is_content() || self.is_of_range()
    }
}

impl From<AccessError> for Fault {
    fn from(error: AccessError) -> Self {
        Self::Web(error.into())
    }
}

impl Remedy for RegistryError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let of_web = |error: &WebError| match error {
            WebError::Status { code, .. } => match *code {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    "Check the credentials for this registry and their rights in this repository."
                }
                StatusCode::NOT_FOUND => "Correct the reference, or publish the artifact under this reference.",
                StatusCode::TOO_MANY_REQUESTS => "Wait, and try again.",
                StatusCode::PROXY_AUTHENTICATION_REQUIRED => "Put the credentials of the proxy into HTTPS_PROXY.",
                _ => "Check the log of the registry, and try again.",
            },
            WebError::Asked(_) => "Check the address, the proxy and the certificate authorities.",
            WebError::Access(_) => "Correct the credentials for this registry.",
            WebError::Redirect(_) => "Use the registry that the redirect leads to, if you trust that registry.",
            WebError::TooLarge { .. } | WebError::TooSlow { .. } | WebError::Damaged => {
                "Check that the registry is the right one, and try again."
            }
        };
        if let Fault::FarRealm { host } = &*self.fault {
            let text = format!(
                "If {host} belongs to the registry, allow it: --registry-token-realm {host}, or the key tokenRealms in the credentials."
            );
            return Some(text.into());
        }
        Some(Cow::Borrowed(match &*self.fault {
            Fault::Web(error) => of_web(error),
            Fault::Token { source, .. } => of_web(source),
            Fault::Blob(_) => "Publish the artifact again; its content in the registry was changed.",
            // Named above, with its host.
            Fault::FarRealm { .. } => return None,
            Fault::Realm(_) => "Ask the administrator of the registry for a token service with https.",
            Fault::NotRegistry(_) => "Check the address, and whether a proxy in front of the registry requires a login.",
            Fault::Kind { .. } => "Correct the reference.",
            Fault::Moved { .. } => "Pull the current content of the tag, apply your change to this content, and publish again.",
            Fault::Upload { .. } | Fault::Forgotten => "Try again.",
        }))
    }
}

#[derive(Deserialize)]
struct Errors {
    errors: Vec<Reported>,
}

#[derive(Deserialize)]
struct Reported {
    code: String,
    #[serde(default)]
    message: String,
}

/// What a registry says in the form of the specification.
pub(super) fn said(body: &[u8]) -> Option<String> {
    let reported: Errors = from_json(body).ok()?;
    let reported = reported.errors.into_iter().next()?;
    Some(match reported.message.is_empty() {
        true => reported.code,
        false => format!("{}: {}", reported.code, reported.message),
    })
}
