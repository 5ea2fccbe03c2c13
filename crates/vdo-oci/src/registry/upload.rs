// SPDX-License-Identifier: Apache-2.0
//! Uploads a blob to a registry in pieces, or mounts it from another repository; continues after a broken connection.

use super::attempts::{Attempts, retry};
use super::{Fault, Need, Registry, RegistryError};
use crate::web::{Clock, WebError, header};
use hyper::body::Bytes;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE};
use reqwest::{Method, Response, StatusCode, Url};
use vdo_api::retry::TRANSFER;
use vdo_api::types::Digest;

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
        let fault = match self.begin_upload(repository, "blobs/uploads/").await? {
            Some(upload) => return Ok(upload),
            None => Fault::NotRegistry("it reports that nothing was stored".into()),
        };
        Err(RegistryError::new(writing(self, repository), fault))
    }

    /// Takes a blob over from another repository of the same registry. Where the registry does not, the upload that it has begun instead.
    ///
    /// # Errors
    /// When the registry does neither.
    pub async fn mount(&self, repository: &str, digest: &Digest, from: &str) -> Result<Option<Upload>, RegistryError> {
        let path = format!("blobs/uploads/?mount={digest}&from={from}");
        self.begin_upload(repository, &path).await
    }

    async fn begin_upload(&self, repository: &str, path: &str) -> Result<Option<Upload>, RegistryError> {
        retry(TRANSFER, || async {
            let begun = self.try_to_begin(repository, path).await;
            begun.map_err(|fault| RegistryError::new(writing(self, repository), fault))
        })
        .await
    }

    async fn try_to_begin(&self, repository: &str, path: &str) -> Result<Option<Upload>, Fault> {
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
    fn failed(&self, fault: Fault) -> RegistryError {
        let fault = match fault {
            Fault::Web(WebError::Status {
                code: StatusCode::NOT_FOUND,
                ..
            }) => Fault::Forgotten,
            fault => fault,
        };
        RegistryError::new(writing(&self.registry, &self.repository), fault)
    }

    /// Sends the next bytes.
    ///
    /// # Errors
    /// When the registry does not take them, in several attempts, or has forgotten the upload ([`RegistryError::is_forgotten`]).
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), RegistryError> {
        self.deliver(bytes, None).await
    }

    /// Stores what was sent under its digest.
    ///
    /// # Errors
    /// When the registry has something else, or does not take it, in several attempts.
    pub async fn finish(self, digest: &Digest) -> Result<(), RegistryError> {
        self.finish_with(digest, Bytes::new()).await
    }

    /// Sends these bytes as the end and stores everything under its digest.
    pub(super) async fn finish_with(mut self, digest: &Digest, bytes: Bytes) -> Result<(), RegistryError> {
        self.deliver(bytes, Some(digest)).await
    }

    /// Sends bytes, as the end where there is a digest. After a failure no one knows what arrived, so the registry is asked before the rest is
    /// sent.
    async fn deliver(&mut self, bytes: Bytes, digest: Option<&Digest>) -> Result<(), RegistryError> {
        let (start, end) = (self.sent, self.sent + bytes.len() as u64);
        let mut attempts = Attempts::new(TRANSFER);
        let mut sent = self.send((start, &bytes), digest).await;
        while let Err(error) = &sent {
            // With 416 the registry reports that it counts otherwise than we do.
            let goes_on = match error.is_of_range() {
                true => attempts.wait(None).await,
                false => attempts.goes_on(error).await,
            };
            if !goes_on {
                break;
            }
            sent = match self.is_done((start, end), digest).await {
                Ok(true) => Ok(()),
                Ok(false) => self.send((start, &bytes), digest).await,
                Err(error) => Err(error),
            };
        }
        sent
    }

    /// Finds out what the registry has of the bytes from `start` to `end`. Whether nothing is to be sent any more.
    async fn is_done(&mut self, (start, end): (u64, u64), digest: Option<&Digest>) -> Result<bool, RegistryError> {
        // What was stored is not an upload any more.
        if let Some(digest) = digest
            && self.registry.has_blob(&self.repository, digest).await?
        {
            return Ok(true);
        }
        let has = self.state().await.map_err(|fault| self.failed(fault))?;
        if has < start || has > end {
            return Err(self.failed(Fault::Upload { has, sent: end }));
        }
        self.sent = has;
        Ok(digest.is_none() && has == end)
    }

    /// Sends what is missing of bytes that begin at `start`.
    async fn send(&mut self, (start, bytes): (u64, &Bytes), digest: Option<&Digest>) -> Result<(), RegistryError> {
        let rest = bytes.slice(usize::try_from(self.sent - start).unwrap_or(bytes.len())..);
        let sent = match digest {
            Some(digest) => self.put(digest, rest).await,
            None if rest.is_empty() => Ok(()),
            None => self.patch(rest).await,
        };
        sent.map_err(|fault| self.failed(fault))
    }

    async fn patch(&mut self, rest: Bytes) -> Result<(), Fault> {
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

    async fn put(&self, digest: &Digest, bytes: Bytes) -> Result<(), Fault> {
        let (mut place, count) = (self.place.clone(), bytes.len());
        place.query_pairs_mut().append_pair("digest", &digest.to_string());
        let request = self.registry.request(Method::PUT, place);
        let request = request.header(CONTENT_TYPE, STREAM).header(CONTENT_LENGTH, count).body(bytes);
        let need = (self.repository.as_str(), Need::Push);
        let (clock, response) = self.registry.ask(need, request, || Clock::sending(count)).await?;
        match response.status() {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.registry.refusal((clock, response)).await),
        }
    }
}
