//! Uploads that go on after a connection broke off.

use super::error::may_pass;
use super::{Fault, Need, Registry, RegistryError};
use crate::web::{Clock, WebError, header};
use hyper::body::Bytes;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE};
use reqwest::{Method, Response, StatusCode, Url};
use vdo_api::types::Digest;

/// How often a piece is sent: the connection may break off each time.
const TRIES: u32 = 5;
const STREAM: &str = "application/octet-stream";

/// An upload that has begun. The registry forgets one that is not finished.
#[derive(Debug)]
pub struct Upload {
    registry: Registry,
    repository: String,
    place: Url,
    sent: u64,
}

impl Registry {
    /// Begins to write a blob that is too large to be sent at once.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub async fn upload(&self, repository: &str) -> Result<Upload, RegistryError> {
        let begun = self.begin_upload(repository, "blobs/uploads/").await;
        match begun.map_err(|fault| RegistryError::new(writing(self, repository), fault))? {
            Some(upload) => Ok(upload),
            None => Err(RegistryError::new(
                writing(self, repository),
                Fault::NotRegistry("it says that nothing was stored".into()),
            )),
        }
    }

    /// Takes a blob over from another repository of the same registry. Where the registry does not, the upload that it has begun instead.
    ///
    /// # Errors
    /// When the registry does neither.
    pub async fn mount(&self, repository: &str, digest: &Digest, from: &str) -> Result<Option<Upload>, RegistryError> {
        let path = format!("blobs/uploads/?mount={digest}&from={from}");
        let begun = self.begin_upload(repository, &path).await;
        begun.map_err(|fault| RegistryError::new(writing(self, repository), fault))
    }

    async fn begin_upload(&self, repository: &str, path: &str) -> Result<Option<Upload>, Fault> {
        let request = self.request(Method::POST, self.url(repository, path)?).header(CONTENT_LENGTH, 0);
        let (clock, response) = self.ask((repository, Need::Push), request, Clock::start).await?;
        match response.status() {
            StatusCode::CREATED => Ok(None),
            StatusCode::ACCEPTED => Ok(Some(Upload {
                registry: self.clone(),
                repository: repository.to_owned(),
                place: place(&response)?,
                sent: 0,
            })),
            _ => Err(self.refusal((clock, response)).await),
        }
    }
}

fn writing(registry: &Registry, repository: &str) -> String {
    format!("a blob cannot be written to {}/{repository}", registry.host())
}

/// Where an upload goes on: an absolute address or a relative one, perhaps with a query that is to be kept.
fn place(response: &Response) -> Result<Url, Fault> {
    let location = header(response.headers(), &LOCATION);
    let place = location.and_then(|location| response.url().join(&location).ok());
    place.ok_or_else(|| Fault::NotRegistry("it names no address for the upload".into()))
}

impl Upload {
    fn failed(&self, fault: impl Into<Fault>) -> RegistryError {
        RegistryError::new(writing(&self.registry, &self.repository), fault)
    }

    /// Sends the next bytes.
    ///
    /// # Errors
    /// When the registry does not take them, in several attempts.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), RegistryError> {
        let (start, end) = (self.sent, self.sent + bytes.len() as u64);
        let mut tries = 1;
        while self.sent < end {
            let Err(fault) = self.send(start, &bytes).await else { continue };
            if tries == TRIES || !goes_on(&fault) {
                return Err(self.failed(fault));
            }
            tries += 1;
            let has = self.state().await.map_err(|fault| self.failed(fault))?;
            if has < start || has > end {
                return Err(self.failed(Fault::Upload { has, sent: end }));
            }
            self.sent = has;
        }
        Ok(())
    }

    /// Sends what is missing of bytes that begin at `start`.
    async fn send(&mut self, start: u64, bytes: &Bytes) -> Result<(), Fault> {
        let rest = bytes.slice(usize::try_from(self.sent - start).unwrap_or(bytes.len())..);
        let (first, count) = (self.sent, rest.len());
        let request = self.registry.request(Method::PATCH, self.place.clone());
        let request = request
            .header(CONTENT_TYPE, STREAM)
            .header(CONTENT_RANGE, format!("{first}-{}", first + count as u64 - 1))
            .body(rest);
        let need = (self.repository.as_str(), Need::Push);
        let (clock, response) = self.registry.ask(need, request, || Clock::sending(count)).await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                self.place = place(&response)?;
                self.sent = first + count as u64;
                Ok(())
            }
            _ => Err(self.registry.refusal((clock, response)).await),
        }
    }

    /// How many bytes the registry has.
    async fn state(&mut self) -> Result<u64, Fault> {
        let request = self.registry.request(Method::GET, self.place.clone());
        let need = (self.repository.as_str(), Need::Push);
        let (clock, response) = self.registry.ask(need, request, Clock::start).await?;
        if response.status() != StatusCode::NO_CONTENT {
            return Err(self.registry.refusal((clock, response)).await);
        }
        if response.headers().contains_key(LOCATION) {
            self.place = place(&response)?;
        }
        let range = header(response.headers(), &RANGE).unwrap_or_default();
        let last = range.rsplit('-').next().and_then(|last| last.parse::<u64>().ok());
        // Registries write 0-0 for nothing and for one byte. What was not confirmed is sent again.
        Ok(last.filter(|last| *last > 0).map_or(0, |last| last.saturating_add(1)))
    }

    /// Stores what was sent under its digest.
    ///
    /// # Errors
    /// When the registry has something else, or does not take it.
    pub async fn finish(self, digest: &Digest) -> Result<(), RegistryError> {
        self.put(digest, Bytes::new()).await
    }

    /// Sends these bytes as the end and stores everything under its digest.
    pub(super) async fn put(mut self, digest: &Digest, bytes: Bytes) -> Result<(), RegistryError> {
        self.place.query_pairs_mut().append_pair("digest", &digest.to_string());
        let count = bytes.len();
        let request = self.registry.request(Method::PUT, self.place.clone());
        let request = request.header(CONTENT_TYPE, STREAM).header(CONTENT_LENGTH, count).body(bytes);
        let need = (self.repository.as_str(), Need::Push);
        let answered = self.registry.ask(need, request, || Clock::sending(count)).await;
        let answered = answered.map_err(|fault| self.failed(fault))?;
        match answered.1.status() {
            StatusCode::CREATED => Ok(()),
            _ => {
                let fault = self.registry.refusal(answered).await;
                Err(self.failed(fault))
            }
        }
    }
}

/// Whether it is worth to go on: the connection broke off, or the registry counts otherwise than we do.
fn goes_on(fault: &Fault) -> bool {
    let counts = |fault: &Fault| matches!(fault, Fault::Web(WebError::Status { code, .. }) if *code == StatusCode::RANGE_NOT_SATISFIABLE);
    may_pass(fault) || counts(fault)
}
