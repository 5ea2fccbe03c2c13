//! An index and charts on a web server (effects). What a server does wrong is an error with its address; nothing of it is believed.

use super::access::AccessError;
use super::directory::{INDEX_LIMIT, SMALL_LIMIT};
use super::look::{Validators, good_for, retry_after};
use super::{Access, FetchError, Look, Signed, verified};
use crate::chart::archive::PACKED_LIMIT;
use crate::signature::Form;
use crate::types::{ChartRef, Remedy};
use flate2::read::MultiGzDecoder;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, LOCATION, RETRY_AFTER,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, StatusCode, Url};
use std::borrow::Cow;
use std::fmt;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// As many as a mirror with a login in front needs; browsers follow twenty.
const REDIRECTS: usize = 5;
/// Until the first byte of an answer.
const CONNECT: Duration = Duration::from_secs(10);
/// What a server may be late with, and the bytes of each second after that.
const GRACE: Duration = Duration::from_secs(10);
const RATE: u32 = 4 * 1024;
/// For all of an answer.
const WHOLE: Duration = Duration::from_secs(120);

/// The address of an index.
#[derive(Clone, PartialEq, Eq)]
pub struct Web {
    url: Url,
    /// As it was written.
    text: String,
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A web server did not give what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The credentials cannot be used.
    #[error("the credentials for it cannot be used: {0}")]
    Access(#[from] AccessError),
    /// It could not be asked, or broke off.
    #[error("{0}")]
    Asked(String),
    /// It refuses.
    #[error("the server answers with HTTP status {code}{told}")]
    Status {
        /// What it answered.
        code: StatusCode,
        /// The beginning of what it said.
        told: String,
        /// How long it asks to wait.
        wait: Option<Duration>,
    },
    /// It leads elsewhere.
    #[error("{0}")]
    Redirect(#[from] Led),
    /// It sends more than anything of its kind has.
    #[error("the answer is larger than {limit} bytes, so it was broken off")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It sends too slowly.
    #[error("the answer came too slowly: {bytes} bytes in {seconds} s, so it was broken off")]
    TooSlow {
        /// What had come.
        bytes: usize,
        /// In which time.
        seconds: u64,
    },
    /// It is compressed, and cannot be read.
    #[error("the answer is compressed and damaged")]
    Damaged,
}

/// A redirect that is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Led {
    /// Anyone on the way could change what comes from there.
    #[error("the server redirects to {to}, which is not https")]
    NotHttps {
        /// Where to, without what follows the path.
        to: String,
    },
    /// It does not end.
    #[error("the server redirects more than {REDIRECTS} times")]
    TooOften,
}

impl Remedy for WebError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Access(_) => "Correct the files of --matrix-credentials.".into(),
            Self::Asked(_) => "Check the address, the proxy and ca.crt in --matrix-credentials.".into(),
            Self::Status { code, .. } => match *code {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    "Check username and password, bearerToken, or tls.crt and tls.key in --matrix-credentials.".into()
                }
                StatusCode::PROXY_AUTHENTICATION_REQUIRED => "Put the credentials of the proxy into HTTPS_PROXY.".into(),
                StatusCode::NOT_FOUND | StatusCode::GONE => "Correct the address, or publish the file there.".into(),
                _ => "Look into the log of the server; it is asked again.".into(),
            },
            Self::Redirect(_) => "Name the address that it leads to, if you trust it.".into(),
            Self::TooLarge { .. } | Self::TooSlow { .. } | Self::Damaged => {
                "Check that the server is the right one; it is asked again.".into()
            }
        })
    }
}

impl Web {
    /// The index at this address.
    ///
    /// # Errors
    /// When it is none, or has credentials in it, which the status would show.
    pub(super) fn at(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("this is no address of a matrix: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address must not hold credentials; put them into --matrix-credentials".into());
        }
        if url.fragment().is_some() {
            return Err("the address of a matrix is one without #".into());
        }
        Ok(Self {
            url,
            text: text.to_owned(),
        })
    }

    /// What is there now. Where the server says that nothing has changed, `known`.
    pub(super) async fn look(&self, access: &Access, known: Option<&Look>) -> Result<Look, FetchError> {
        let server = self.server(access, &self.url)?;
        let validators = known.map(|known| &known.validators);
        let answer = server.get(&self.url, INDEX_LIMIT, validators).await?;
        let (index, validators, good_for) = match (answer, known) {
            (Answer::Same { good_for }, Some(known)) => {
                return Ok(Look { good_for, ..known.clone() });
            }
            (Answer::Same { .. }, None) => {
                return Err(self.failed(
                    &self.url,
                    WebError::Asked("the server says that what we do not have is unchanged".into()),
                ));
            }
            (
                Answer::New {
                    bytes,
                    validators,
                    good_for,
                },
                _,
            ) => (bytes, validators, good_for),
        };
        Ok(Look {
            signed: Arc::new(Signed {
                index,
                signature: self.signature(&server).await?,
            }),
            validators,
            good_for,
        })
    }

    /// What is there now, with the signature asked for anew: an index may be signed again by another key without being changed.
    async fn signature(&self, server: &Server<'_>) -> Result<Option<Vec<u8>>, FetchError> {
        for form in Form::ALL {
            let mut url = self.url.clone();
            url.set_path(&form.file_of(Path::new(self.url.path())).to_string_lossy());
            match server.get(&url, SMALL_LIMIT, None).await {
                Ok(Answer::New { bytes, .. }) => return Ok(Some(bytes)),
                Ok(Answer::Same { .. }) => {}
                Err(FetchError::Web { source, .. }) if matches!(&*source, WebError::Status { code, .. } if *code == StatusCode::NOT_FOUND) =>
                    {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The bytes of a chart, if they are the promised ones.
    pub(super) async fn chart(&self, access: &Access, chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
        let mut last = None;
        for url in &chart.urls {
            let Some(url) = self.place(url) else { continue };
            let server = self.server(access, &url)?;
            let answer = match server.get(&url, PACKED_LIMIT, None).await {
                Ok(Answer::New { bytes, .. }) => verified(|| url.to_string(), bytes, &chart.digest),
                Ok(Answer::Same { .. }) => continue,
                Err(error) => Err(error),
            };
            match answer {
                Ok(bytes) => return Ok(bytes),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| FetchError::NotFound {
            store: format!("a file beside {self}, or an address with https://"),
            locations: chart.urls.join(", "),
        }))
    }

    /// Where a location of a chart leads to: beside the index, or to an https address of its own.
    fn place(&self, location: &str) -> Option<Url> {
        let url = self.url.join(location).ok()?;
        (url.scheme() == "https" && url.username().is_empty() && url.password().is_none()).then_some(url)
    }

    /// A client for this address. Credentials are for the server of the index alone.
    fn server<'a>(&'a self, access: &'a Access, url: &Url) -> Result<Server<'a>, FetchError> {
        let own = url.origin() == self.url.origin();
        Server::new(self, access, own, is_loopback(url)).map_err(|error| self.failed(url, error))
    }

    fn failed(&self, url: &Url, error: WebError) -> FetchError {
        FetchError::Web {
            url: url.to_string(),
            source: Box::new(error),
        }
    }
}

/// A proxy never serves loopback addresses: from there they would mean another machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// What a server answers.
enum Answer {
    /// What it had before.
    Same { good_for: Option<Duration> },
    /// This.
    New {
        bytes: Vec<u8>,
        validators: Validators,
        good_for: Option<Duration>,
    },
}

/// A client for one look.
struct Server<'a> {
    web: &'a Web,
    client: Client,
}

impl<'a> Server<'a> {
    fn new(web: &'a Web, access: &Access, own: bool, direct: bool) -> Result<Self, WebError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(value) = access.authorization()?.filter(|_| own) {
            let mut value =
                HeaderValue::from_str(value.expose()).map_err(|_| WebError::Asked("the credentials fit into no header".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let builder = Client::builder();
        let client = if direct { builder.no_proxy() } else { builder }
            .user_agent(concat!("vdo/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .tls_backend_preconfigured(access.tls(own)?)
            .https_only(true)
            .connect_timeout(CONNECT)
            .redirect(Policy::custom(follow))
            .build()
            .map_err(|error| WebError::Asked(chain(error)))?;
        Ok(Self { web, client })
    }

    async fn get(&self, url: &Url, limit: usize, known: Option<&Validators>) -> Result<Answer, FetchError> {
        self.ask(url, limit, known).await.map_err(|error| self.web.failed(url, error))
    }

    async fn ask(&self, url: &Url, limit: usize, known: Option<&Validators>) -> Result<Answer, WebError> {
        let mut request = self.client.get(url.clone());
        for (name, value) in [
            (IF_NONE_MATCH, known.and_then(|known| known.etag.as_ref())),
            (IF_MODIFIED_SINCE, known.and_then(|known| known.modified.as_ref())),
        ] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let mut clock = Clock::start();
        let response = clock.within(request.send()).await??;
        let text = |name: HeaderName| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let good_for = text(CACHE_CONTROL).as_deref().and_then(good_for);
        let validators = Validators {
            etag: text(ETAG),
            modified: text(LAST_MODIFIED),
        };
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(Answer::Same { good_for }),
            StatusCode::OK => {
                let packed = text(CONTENT_ENCODING).is_some_and(|encoding| encoding.eq_ignore_ascii_case("gzip"));
                let bytes = clock.read(response, limit).await?;
                let bytes = if packed { unpacked(&bytes, limit)? } else { bytes };
                Ok(Answer::New {
                    bytes,
                    validators,
                    good_for,
                })
            }
            // Other than those that were followed: to something that is not even HTTP.
            code if code.is_redirection() => Err(Led::NotHttps {
                to: text(LOCATION).unwrap_or_else(|| "nowhere".into()),
            }
            .into()),
            code => {
                let wait = text(RETRY_AFTER).and_then(|value| retry_after(&value, now()));
                let told = clock
                    .read(response, SMALL_LIMIT)
                    .await
                    .map(|body| first_words(&body))
                    .unwrap_or_default();
                Err(WebError::Status { code, told, wait })
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock enters here, for a date in Retry-After")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// How much time is left for an answer: the more has come, the more.
struct Clock {
    start: Instant,
    bytes: usize,
}

impl Clock {
    fn start() -> Self {
        Self {
            start: Instant::now(),
            bytes: 0,
        }
    }

    async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, WebError> {
        let earned = GRACE + Duration::from_secs(self.bytes as u64) / RATE;
        let end = self.start + earned.min(WHOLE);
        tokio::time::timeout_at(end, work).await.map_err(|_| WebError::TooSlow {
            bytes: self.bytes,
            seconds: self.start.elapsed().as_secs(),
        })
    }

    async fn read(&mut self, mut response: Response, limit: usize) -> Result<Vec<u8>, WebError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.within(response.chunk()).await?? {
            if bytes.len() + chunk.len() > limit {
                return Err(WebError::TooLarge { limit });
            }
            bytes.extend_from_slice(&chunk);
            self.bytes = bytes.len();
        }
        Ok(bytes)
    }
}

fn unpacked(packed: &[u8], limit: usize) -> Result<Vec<u8>, WebError> {
    let mut bytes = Vec::new();
    let read = MultiGzDecoder::new(packed).take(limit as u64 + 1).read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() <= limit => Ok(bytes),
        Ok(_) => Err(WebError::TooLarge { limit }),
        Err(_) => Err(WebError::Damaged),
    }
}

/// Follows to https, and not for ever.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let to = attempt.url();
    if to.scheme() != "https" {
        let to = format!("{}://{}{}", to.scheme(), to.host_str().unwrap_or_default(), to.path());
        return attempt.error(Led::NotHttps { to });
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error(Led::TooOften);
    }
    attempt.follow()
}

impl From<reqwest::Error> for WebError {
    fn from(error: reqwest::Error) -> Self {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(this) = cause {
            if let Some(led) = this.downcast_ref::<Led>() {
                return Self::Redirect(led.clone());
            }
            cause = this.source();
        }
        Self::Asked(chain(error))
    }
}

/// What happened, without the address, which is named already.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let what = if error.is_connect() {
        "it cannot be reached"
    } else {
        "it did not answer properly"
    };
    let mut text = what.to_owned();
    let mut cause = std::error::Error::source(&error);
    while let Some(this) = cause {
        let said = this.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = this.source();
    }
    text
}

/// The beginning of what a server said beside a refusal, on one line.
fn first_words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let is_page = text.trim_start().starts_with('<');
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|c| !c.is_control()).take(120).collect();
    match line.is_empty() || is_page {
        true => String::new(),
        false => format!(" and says {line:?}"),
    }
}
