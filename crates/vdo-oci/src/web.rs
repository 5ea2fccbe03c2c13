// SPDX-License-Identifier: Apache-2.0
//! HTTPS for all requests to registries, matrix servers and others: trust, credentials, redirects, and limits on size and time (effects).
//!
//! # Guarantees
//! No redirect to plain http is followed, unless the caller requested plain http itself. Credentials reach the server that they are meant for
//! and no other, wherever that server redirects to; the same is true for a client certificate. Every answer is bounded in bytes and in time.

mod client;
mod error;
mod headers;
mod server_credentials;
mod timeouts;

pub(crate) use client::shown;
pub use client::{Client, Follow};
pub use error::{Led, WebError};
pub use headers::{good_for, header, wait};
pub use server_credentials::{Access, AccessError};
pub use timeouts::Clock;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Response, Url};
use std::net::IpAddr;

/// Bytes that are read of what a server says beside a refusal.
const ERROR_BODY: usize = 64 << 10;

/// Credentials as the header `Authorization`, which no log shows.
///
/// # Errors
/// When they have characters that no header can have.
pub fn authorization(value: &vdo_api::types::Secret) -> Result<(reqwest::header::HeaderName, HeaderValue), WebError> {
    let mut value = HeaderValue::from_str(value.expose())
        .map_err(|_| WebError::Asked("the credentials have characters that no HTTP header can have".into()))?;
    value.set_sensitive(true);
    Ok((AUTHORIZATION, value))
}

/// Why a server refused, with what it said: what `said` finds in the body, or else its beginning.
pub async fn refused(mut clock: Clock, response: Response, said: impl FnOnce(&[u8]) -> Option<String>) -> WebError {
    let (code, wait) = (response.status(), wait(response.headers()));
    if code.is_redirection() {
        // Other than those that were followed: to something that is not even HTTP.
        let to = header(response.headers(), &reqwest::header::LOCATION);
        return Led::NotHttps {
            to: to.unwrap_or_else(|| "nowhere".into()),
        }
        .into();
    }
    let body = clock.read(response, ERROR_BODY).await.unwrap_or_default();
    WebError::Status {
        code,
        reported: error::quoted(&said(&body).unwrap_or_else(|| error::first_words(&body))),
        wait,
    }
}

/// Whether an address is one of this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
