// SPDX-License-Identifier: Apache-2.0
//! The source `https://`: downloads a matrix index, its signature and charts from a web server, with conditional requests (effects).

use super::directory::SMALL_LIMIT;
use super::{Access, FetchError, Signed, SourceState, Validators, verified};
use crate::signature::Form;
use flate2::read::MultiGzDecoder;
use reqwest::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{Method, StatusCode, Url};
use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vdo_api::types::Digest;
use vdo_core::chart::archive::PACKED_LIMIT;
use vdo_core::matrix::INDEX_LIMIT;
use vdo_oci::web::{Client, Clock, Follow, WebError, authorization, good_for, header, refused};

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

impl Web {
    /// The index at this address.
    ///
    /// # Errors
    /// When it is none, or has credentials in it, which the status would show.
    pub(super) fn at(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("this is not an address of a matrix: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address must not contain credentials; put them into --matrix-credentials".into());
        }
        if url.fragment().is_some() {
            return Err("the address of a matrix must not contain #".into());
        }
        Ok(Self {
            url,
            text: text.to_owned(),
        })
    }

    /// What is there now. Where the server says that nothing has changed, `known`.
    pub(super) async fn fetch(&self, access: &Access, known: Option<&SourceState>) -> Result<SourceState, FetchError> {
        let server = self.server(access, &self.url)?;
        let validators = known.map(|known| &known.validators);
        let answer = server.get(&self.url, INDEX_LIMIT, validators).await?;
        let (index, validators, good_for) = match (answer, known) {
            (Answer::Same { good_for }, Some(known)) => {
                return Ok(SourceState { good_for, ..known.clone() });
            }
            (Answer::Same { .. }, None) => {
                return Err(self.failed(
                    &self.url,
                    WebError::Asked("the server reports an unchanged index, although no index was read before".into()),
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
        Ok(SourceState {
            signed: Arc::new(Signed {
                index,
                signature: self.signature(&server).await?,
                lock: None,
            }),
            validators,
            good_for,
        })
    }

    /// The signature, asked for at every look: an index may be signed again by another key without being changed.
    async fn signature(&self, server: &Server<'_>) -> Result<Option<Vec<u8>>, FetchError> {
        for form in Form::ALL {
            let mut url = self.url.clone();
            url.set_path(&form.file_of(Path::new(self.url.path())).to_string_lossy());
            if let Some(signature) = server.file(&url, SMALL_LIMIT).await? {
                return Ok(Some(signature));
            }
        }
        Ok(None)
    }

    /// A file in the folder of the index.
    pub(super) async fn beside(&self, access: &Access, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FetchError> {
        let Some(url) = self.place(name) else { return Ok(None) };
        self.server(access, &url)?.file(&url, limit).await
    }

    /// The bytes of the chart at a location, if they are the promised ones. `None` for another kind of location.
    pub(super) async fn chart(&self, access: &Access, location: &str, digest: &Digest) -> Option<Result<Vec<u8>, FetchError>> {
        let url = self.place(location)?;
        let server = match self.server(access, &url) {
            Ok(server) => server,
            Err(error) => return Some(Err(error)),
        };
        match server.get(&url, PACKED_LIMIT, None).await {
            Ok(Answer::New { bytes, .. }) => Some(verified(|| url.to_string(), bytes, digest)),
            Ok(Answer::Same { .. }) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Where a location of a chart leads to: beside the index, or to an https address of its own.
    fn place(&self, location: &str) -> Option<Url> {
        let url = self.url.join(location).ok()?;
        (url.scheme() == "https" && url.username().is_empty() && url.password().is_none()).then_some(url)
    }

    /// A client for this address. Credentials are for the server of the index alone.
    fn server<'a>(&'a self, access: &'a Access, url: &Url) -> Result<Server<'a>, FetchError> {
        let own = url.origin() == self.url.origin();
        Server::new(self, access, own, url).map_err(|error| self.failed(url, error))
    }

    fn failed(&self, url: &Url, error: WebError) -> FetchError {
        FetchError::Web {
            url: url.to_string(),
            source: Box::new(error),
        }
    }
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
    fn new(web: &'a Web, access: &Access, own: bool, url: &Url) -> Result<Self, WebError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(value) = access.authorization()?.filter(|_| own) {
            headers.extend([authorization(&value)?]);
        }
        let client = Client::new(url, (access, own), headers, Follow::Https)?;
        Ok(Self { web, client })
    }

    async fn get(&self, url: &Url, limit: usize, known: Option<&Validators>) -> Result<Answer, FetchError> {
        self.ask(url, limit, known).await.map_err(|error| self.web.failed(url, error))
    }

    /// A file, where there is one.
    async fn file(&self, url: &Url, limit: usize) -> Result<Option<Vec<u8>>, FetchError> {
        match self.get(url, limit, None).await {
            Ok(Answer::New { bytes, .. }) => Ok(Some(bytes)),
            Ok(Answer::Same { .. }) => Ok(None),
            Err(FetchError::Web { source, .. }) if matches!(&*source, WebError::Status { code, .. } if *code == StatusCode::NOT_FOUND) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn ask(&self, url: &Url, limit: usize, known: Option<&Validators>) -> Result<Answer, WebError> {
        let mut request = self.client.request(Method::GET, url.clone());
        for (name, value) in [
            (IF_NONE_MATCH, known.and_then(|known| known.etag.as_ref())),
            (IF_MODIFIED_SINCE, known.and_then(|known| known.modified.as_ref())),
        ] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let mut clock = Clock::start();
        let response = clock.within(self.client.execute(request.build()?)).await??;
        let text = |name| header(response.headers(), &name);
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
            _ => Err(refused(clock, response, |_| None).await),
        }
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
