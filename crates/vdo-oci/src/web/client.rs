// SPDX-License-Identifier: Apache-2.0
//! The HTTP client: proxy, headers and redirects, and which credentials are removed when a server redirects to another origin.

use super::error::chain;
use super::timeouts::CONNECT;
use super::{Access, Led, WebError, is_loopback};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, LOCATION, PROXY_AUTHORIZATION};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Method, Request, RequestBuilder, Response, Url};

/// As many as a mirror with a login in front needs; browsers follow twenty.
pub(super) const REDIRECTS: usize = 5;

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

/// A client for one server. Clones share its connections.
///
/// # Guarantees
/// To another origin, to which the server redirects, neither its client certificate nor a header with credentials is sent.
#[derive(Debug, Clone)]
pub struct Client {
    own: reqwest::Client,
    /// For redirects to another origin, where `own` has a client certificate: a client shows that to every server that asks for one.
    elsewhere: Option<reqwest::Client>,
    plain: bool,
}

impl Client {
    /// A client with headers that every request to the server has; `own` says whether it is the server that a client certificate is for. The
    /// proxy is the one in the credentials, or else one of the environment, which never serves loopback addresses: from there they would mean
    /// another machine.
    ///
    /// # Errors
    /// When the authorities, the client certificate or the proxy cannot be used.
    pub fn new(server: &Url, (access, own): (&Access, bool), headers: HeaderMap, to: Follow) -> Result<Self, WebError> {
        let plain = to == Follow::Plain;
        let shows_certificate = own && access.value("tls.crt").is_some() && !matches!(to, Follow::Nowhere { .. });
        let elsewhere = match shows_certificate {
            true => Some(built(
                server,
                (access, false),
                public(headers.clone()),
                to,
                following(plain, false),
            )?),
            false => None,
        };
        let policy = match to {
            Follow::Nowhere { .. } => Policy::none(),
            _ => following(plain, shows_certificate),
        };
        Ok(Self {
            own: built(server, (access, own), headers, to, policy)?,
            elsewhere,
            plain,
        })
    }

    /// A request that [`Self::execute`] sends.
    pub fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.own.request(method, url)
    }

    /// Sends a request, and follows where the server redirects to.
    ///
    /// # Errors
    /// When there is no answer, or it redirects to where it is not followed.
    pub async fn execute(&self, request: Request) -> Result<Response, WebError> {
        let Some(elsewhere) = &self.elsewhere else {
            return Ok(self.own.execute(request).await?);
        };
        let (method, headers) = (request.method().clone(), public(request.headers().clone()));
        let response = self.own.execute(request).await?;
        let Some(to) = redirected(&response).filter(|to| to.origin() != response.url().origin()) else {
            return Ok(response);
        };
        if !is_allowed(&to, self.plain) {
            return Err(Led::NotHttps { to: shown(&to) }.into());
        }
        if !matches!(method, Method::GET | Method::HEAD) {
            return Err(Led::Elsewhere { to: shown(&to) }.into());
        }
        Ok(elsewhere.request(method, to).headers(headers).send().await?)
    }
}

fn built(
    server: &Url,
    (access, own): (&Access, bool),
    headers: HeaderMap,
    to: Follow,
    policy: Policy,
) -> Result<reqwest::Client, WebError> {
    let builder = match access.proxy()? {
        Some(proxy) => reqwest::Client::builder().no_proxy().proxy(proxy),
        None if is_loopback(server) => reqwest::Client::builder().no_proxy(),
        None => reqwest::Client::builder(),
    };
    builder
        .user_agent(concat!("vdo/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .tls_backend_preconfigured(access.tls(own)?)
        .https_only(matches!(to, Follow::Https | Follow::Nowhere { plain: false }))
        .connect_timeout(CONNECT)
        .redirect(policy)
        .build()
        .map_err(|error| WebError::Asked(chain(error)))
}

/// Headers without those that only the server itself may see.
fn public(mut headers: HeaderMap) -> HeaderMap {
    for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
        headers.remove(name);
    }
    headers
}

/// Follows to https, and not for ever. Where the client shows a certificate, it stays at the origin.
fn following(plain: bool, stays: bool) -> Policy {
    Policy::custom(move |attempt| follow(attempt, plain, stays))
}

fn follow(attempt: Attempt<'_>, plain: bool, stays: bool) -> Action {
    let to = attempt.url();
    if !is_allowed(to, plain) {
        let to = shown(to);
        return attempt.error(Led::NotHttps { to });
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error(Led::TooOften);
    }
    let leaves = attempt.previous().last().is_some_and(|from| from.origin() != to.origin());
    match stays && leaves {
        true => attempt.stop(),
        false => attempt.follow(),
    }
}

fn is_allowed(to: &Url, plain: bool) -> bool {
    to.scheme() == "https" || plain && to.scheme() == "http"
}

/// Where an answer redirects to.
fn redirected(response: &Response) -> Option<Url> {
    let to = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    response.url().join(to.to_str().ok()?).ok()
}

/// An address without the parts that may hold secrets: user, password, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}
