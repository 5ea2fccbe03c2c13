// SPDX-License-Identifier: Apache-2.0
//! Reads manifests, tags and blobs of a registry, checks their digests, and resumes a blob after a broken connection.

use super::attempts::Attempts;
use super::{Fault, Need, Reference, Registry, RegistryError};
use crate::oci::{BlobError, Descriptor, Manifest, media};
use crate::web::{Clock, WebError, header};
use hyper::body::Bytes;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, LINK, RANGE};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use vdo_api::retry::TRANSFER;
use vdo_api::types::{Digest, Hasher, from_json};

/// Bytes of a manifest or a list, as registries limit them.
pub(super) const DOCUMENT: usize = 4 << 20;
/// What a registry says of the content of its answer. It is a hint: the digest of what is read is computed.
pub(super) const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// The manifests that are understood. Docker's own are as those of OCI.
const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                        application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";
/// Pages of a list: a thousand names each.
const PAGES: usize = 100;

/// A manifest as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its type, its digest (which was computed) and its size.
    pub descriptor: Descriptor,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a registry says of a manifest without giving it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The digest by its word, which proves nothing.
    pub digest: Option<Digest>,
}

impl Fetched {
    /// As a manifest of an image or artifact.
    ///
    /// # Errors
    /// When it is a list or something else.
    pub fn manifest(&self) -> Result<Manifest, RegistryError> {
        let wrong = |found: String| {
            let fault = Fault::Kind {
                expected: "a manifest of an artifact",
                found,
            };
            RegistryError::new(format!("{} cannot be used", self.descriptor.digest), fault)
        };
        if self.descriptor.media_type == media::INDEX {
            return Err(wrong("a list of manifests".into()));
        }
        from_json(&self.bytes).map_err(|error| wrong(format!("no manifest ({error})")))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    #[serde(default)]
    media_type: String,
}

impl Registry {
    /// A manifest.
    ///
    /// # Errors
    /// When it is not there, cannot be had, or has another digest than the reference.
    pub async fn manifest(&self, reference: &Reference) -> Result<Fetched, RegistryError> {
        let read = self
            .read_manifest(&reference.repository, &reference.pointer(), reference.digest.as_ref())
            .await;
        read.map_err(|fault| RegistryError::new(format!("{reference} cannot be read"), fault))
    }

    async fn read_manifest(&self, repository: &str, pointer: &str, expected: Option<&Digest>) -> Result<Fetched, Fault> {
        let url = self.url(repository, &format!("manifests/{pointer}"))?;
        let request = self.request(Method::GET, url).header(ACCEPT, ACCEPTED);
        let (mut clock, response) = self.ask((repository, Need::Pull), request, Clock::start).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal((clock, response)).await);
        }
        let kind = header(response.headers(), &CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
        let bytes = clock.read(response, DOCUMENT).await?;
        let digest = Digest::of(&bytes);
        if let Some(expected) = expected.filter(|expected| **expected != digest) {
            return Err(BlobError::Digest {
                expected: expected.clone(),
                found: digest,
            }
            .into());
        }
        let typed: Typed = document(&bytes)?;
        // What a manifest says of itself is under its digest, what a header says is not.
        let kind = if typed.media_type.is_empty() { kind } else { typed.media_type };
        let descriptor = Descriptor::new(&kind, digest, bytes.len() as u64);
        Ok(Fetched { descriptor, bytes })
    }

    /// Whether a manifest is there, and what the registry says of it; `None` when it is not.
    ///
    /// # Errors
    /// When the registry cannot be asked.
    pub async fn head(&self, reference: &Reference) -> Result<Option<Seen>, RegistryError> {
        let seen = self
            .look_at(&reference.repository, &format!("manifests/{}", reference.pointer()))
            .await;
        seen.map_err(|fault| RegistryError::new(format!("{reference} cannot be looked up"), fault))
    }

    /// Whether a repository has a blob.
    ///
    /// # Errors
    /// When the registry cannot be asked.
    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, RegistryError> {
        let seen = self.look_at(repository, &format!("blobs/{digest}")).await;
        let seen =
            seen.map_err(|fault| RegistryError::new(format!("blob {digest} of {}/{repository} cannot be looked up", self.host()), fault));
        Ok(seen?.is_some())
    }

    async fn look_at(&self, repository: &str, path: &str) -> Result<Option<Seen>, Fault> {
        let request = self.request(Method::HEAD, self.url(repository, path)?).header(ACCEPT, ACCEPTED);
        let (clock, response) = self.ask((repository, Need::Pull), request, Clock::start).await?;
        match response.status() {
            StatusCode::OK => Ok(Some(Seen {
                digest: header(response.headers(), &DIGEST).and_then(|text| text.parse().ok()),
            })),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refusal((clock, response)).await),
        }
    }

    /// A blob, piece by piece. It ends without an error only if size and digest are those of the descriptor.
    ///
    /// # Errors
    /// When it is not there or cannot be had.
    pub async fn blob(&self, repository: &str, descriptor: &Descriptor) -> Result<BlobReader, RegistryError> {
        self.rest_of_blob(repository, descriptor, (0, Hasher::default())).await
    }

    /// The rest of a blob of which so many bytes were read already, and this computed of them. It ends as [`Registry::blob`] does: the whole
    /// is compared.
    ///
    /// # Errors
    /// When it is not there or cannot be had.
    pub async fn rest_of_blob(
        &self,
        repository: &str,
        descriptor: &Descriptor,
        (read, hasher): (u64, Hasher),
    ) -> Result<BlobReader, RegistryError> {
        let mut reader = BlobReader {
            registry: self.clone(),
            repository: repository.to_owned(),
            descriptor: descriptor.clone(),
            hasher,
            read,
            skip: 0,
            attempts: Attempts::new(TRANSFER),
            open: None,
        };
        let begun = match read {
            // There is no rest that could be asked for.
            read if read > 0 && read == descriptor.size => reader.compare().map_err(Fault::from),
            _ => reader.begin().await,
        };
        begun.map_err(|fault| reader.failed(fault))?;
        Ok(reader)
    }

    /// A blob as a whole.
    ///
    /// # Errors
    /// As [`Registry::blob`], and when it has more bytes than `limit`.
    pub async fn blob_bytes(&self, repository: &str, descriptor: &Descriptor, limit: usize) -> Result<Vec<u8>, RegistryError> {
        if descriptor.size > limit as u64 {
            let what = format!("blob {} of {}/{repository} is not read", descriptor.digest, self.host());
            return Err(RegistryError::new(what, WebError::TooLarge { limit }));
        }
        let mut reader = self.blob(repository, descriptor).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = reader.next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// A blob of which only the digest is known, as a whole.
    ///
    /// # Errors
    /// When it is not there or cannot be had, or has more bytes than `limit`, or another digest.
    pub async fn blob_by_digest(&self, repository: &str, digest: &Digest, limit: usize) -> Result<Vec<u8>, RegistryError> {
        let read = async {
            let request = self.request(Method::GET, self.url(repository, &format!("blobs/{digest}"))?);
            let (mut clock, response) = self.ask((repository, Need::Pull), request, Clock::start).await?;
            if response.status() != StatusCode::OK {
                return Err(self.refusal((clock, response)).await);
            }
            let bytes = clock.read(response, limit).await?;
            Descriptor::new("", digest.clone(), bytes.len() as u64).check(&bytes)?;
            Ok(bytes)
        };
        read.await
            .map_err(|fault| RegistryError::new(format!("blob {digest} of {}/{repository} cannot be read", self.host()), fault))
    }

    /// All pages of a list.
    pub(super) async fn pages<T: DeserializeOwned>(&self, repository: &str, first: Url) -> Result<Vec<T>, Fault> {
        let (mut pages, mut next) = (Vec::new(), Some(first));
        while let Some(url) = next.take().filter(|_| pages.len() < PAGES) {
            let request = self
                .request(Method::GET, url)
                .header(ACCEPT, media::INDEX)
                .header(ACCEPT, "application/json");
            let (mut clock, response) = self.ask((repository, Need::Pull), request, Clock::start).await?;
            if response.status() != StatusCode::OK {
                return Err(self.refusal((clock, response)).await);
            }
            next = header(response.headers(), &LINK)
                .and_then(|link| following(&link, response.url()))
                .filter(|url| url.origin() == self.0.base.origin());
            pages.push(document(&clock.read(response, DOCUMENT).await?)?);
        }
        Ok(pages)
    }
}

/// The address of the next page (RFC 8288): `<ADDRESS>; rel="next"`.
fn following(link: &str, from: &Url) -> Option<Url> {
    let (address, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    (parameters.contains("rel=\"next\"") || parameters.contains("rel=next")).then(|| from.join(address).ok())?
}

/// JSON of a registry. A login page in front of it is named as one.
pub(super) fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    from_json(bytes).map_err(|error| {
        Fault::NotRegistry(match bytes.trim_ascii_start().starts_with(b"<") {
            true => "it answers with a web page".into(),
            false => format!("its answer is not understood ({error})"),
        })
    })
}

/// A blob that is being read. When the connection breaks off, the rest is asked for.
#[derive(Debug)]
pub struct BlobReader {
    registry: Registry,
    repository: String,
    descriptor: Descriptor,
    hasher: Hasher,
    read: u64,
    /// What is sent a second time by a registry that cannot begin in the middle.
    skip: u64,
    attempts: Attempts,
    open: Option<(Clock, Response)>,
}

impl BlobReader {
    fn failed(&self, fault: impl Into<Fault>) -> RegistryError {
        let what = format!(
            "blob {} of {}/{} cannot be read",
            self.descriptor.digest,
            self.registry.host(),
            self.repository
        );
        RegistryError::new(what, fault)
    }

    async fn begin(&mut self) -> Result<(), Fault> {
        let url = self.registry.url(&self.repository, &format!("blobs/{}", self.descriptor.digest))?;
        let mut request = self.registry.request(Method::GET, url);
        if self.read > 0 {
            request = request.header(RANGE, format!("bytes={}-", self.read));
        }
        let (clock, response) = self.registry.ask((&self.repository, Need::Pull), request, Clock::unlimited).await?;
        self.skip = match response.status() {
            StatusCode::OK => self.read,
            StatusCode::PARTIAL_CONTENT if self.read > 0 => 0,
            _ => return Err(self.registry.refusal((clock, response)).await),
        };
        let length = header(response.headers(), &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        if let Some(found) = length.filter(|length| response.status() == StatusCode::OK && *length != self.descriptor.size) {
            return Err(self.wrong_size(found).into());
        }
        self.open = Some((clock, response));
        Ok(())
    }

    /// Asks for the rest after this error, several times if need be.
    async fn resume(&mut self, mut error: RegistryError) -> Result<(), RegistryError> {
        let mut goes_on = self.attempts.wait(None).await;
        while goes_on {
            match self.begin().await {
                Ok(()) => return Ok(()),
                Err(fault) => error = self.failed(fault),
            }
            goes_on = self.attempts.goes_on(&error).await;
        }
        Err(error)
    }

    fn wrong_size(&self, found: u64) -> BlobError {
        BlobError::Size {
            digest: self.descriptor.digest.clone(),
            expected: self.descriptor.size,
            found,
        }
    }

    /// Whether everything that was read is what the descriptor names.
    fn compare(&mut self) -> Result<(), BlobError> {
        let found = std::mem::take(&mut self.hasher).finish();
        let expected = self.descriptor.digest.clone();
        match found == expected {
            true => Ok(()),
            false => Err(BlobError::Digest { expected, found }),
        }
    }

    /// The next piece; none at the end, when everything that came is what the descriptor names.
    ///
    /// # Errors
    /// When the rest cannot be had, or what came is something else.
    pub async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            let Some((clock, response)) = &mut self.open else { return Ok(None) };
            match clock.piece(response).await {
                Ok(Some(mut piece)) => {
                    let skipped = self.skip.min(piece.len() as u64);
                    self.skip -= skipped;
                    // No piece is larger than what fits into memory.
                    drop(piece.split_to(usize::try_from(skipped).unwrap_or(piece.len())));
                    if piece.is_empty() {
                        continue;
                    }
                    self.read += piece.len() as u64;
                    if self.read > self.descriptor.size {
                        self.open = None;
                        return Err(self.failed(self.wrong_size(self.read)));
                    }
                    self.hasher.update(&piece);
                    return Ok(Some(piece));
                }
                Ok(None) if self.read == self.descriptor.size => {
                    self.open = None;
                    return self.compare().map(|()| None).map_err(|error| self.failed(error));
                }
                ended => {
                    self.open = None;
                    let fault = ended.err().map_or_else(|| self.wrong_size(self.read).into(), Fault::from);
                    self.resume(self.failed(fault)).await?;
                }
            }
        }
    }
}
