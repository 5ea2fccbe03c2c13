//! HTTPS as every port speaks it: whose certificate is believed, what is sent to whom, how much is read and how long it may take (effects).
//!
//! # Guarantees
//! Nothing is followed to plain http, unless the caller asked for plain http itself. Credentials reach the server that they are meant for and
//! no other. Every answer is bounded in bytes and in time.

mod access;
mod clock;
mod error;
mod headers;

pub use access::{Access, AccessError};
pub use clock::Clock;
pub use error::{Led, WebError};
pub use headers::{good_for, header, retry_after, wait};

use error::{REDIRECTS, chain};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, Response, Url};
use std::net::IpAddr;
use std::time::Duration;

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);

/// Bytes that are read of what a server says beside a refusal.
const ERROR_BODY: usize = 64 << 10;

/// Where a client may be led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// To https, up to five times.
    Https,
    /// To plain http as well, because the server itself is asked by it.
    Plain,
    /// Nowhere: what is sent holds credentials that no header names. `plain` permits a server by plain http.
    Nowhere {
        /// Whether the server may be asked by plain http.
        plain: bool,
    },
}

/// A client for a server, with headers that every request to it has; `own` says whether it is the server that a client certificate is for. The
/// proxy is the one in the credentials, or else one of the environment, which never serves loopback addresses.
///
/// # Errors
/// When the authorities, the client certificate or the proxy cannot be used.
pub fn client(server: &Url, (access, own): (&Access, bool), headers: HeaderMap, to: Follow) -> Result<Client, WebError> {
    let builder = match access.proxy()? {
        Some(proxy) => Client::builder().no_proxy().proxy(proxy),
        None if is_loopback(server) => Client::builder().no_proxy(),
        None => Client::builder(),
    };
    builder
        .user_agent(concat!("vdo/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .tls_backend_preconfigured(access.tls(own)?)
        .https_only(matches!(to, Follow::Https | Follow::Nowhere { plain: false }))
        .connect_timeout(CONNECT)
        .redirect(match to {
            Follow::Nowhere { .. } => Policy::none(),
            _ => Policy::custom(move |attempt| follow(attempt, to == Follow::Plain)),
        })
        .build()
        .map_err(|error| WebError::Asked(chain(error)))
}

/// Credentials as the header `Authorization`, which no log shows.
///
/// # Errors
/// When they have characters that no header can have.
pub fn authorization(value: &crate::types::Secret) -> Result<(reqwest::header::HeaderName, HeaderValue), WebError> {
    let mut value = HeaderValue::from_str(value.expose()).map_err(|_| WebError::Asked("the credentials fit into no header".into()))?;
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

/// Follows to https, and not for ever.
fn follow(attempt: Attempt<'_>, plain: bool) -> Action {
    let to = attempt.url();
    if to.scheme() != "https" && !(plain && to.scheme() == "http") {
        let to = format!("{}://{}{}", to.scheme(), to.host_str().unwrap_or_default(), to.path());
        return attempt.error(Led::NotHttps { to });
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error(Led::TooOften);
    }
    attempt.follow()
}

/// A proxy never serves loopback addresses: from there they would mean another machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
