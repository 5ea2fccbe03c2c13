// SPDX-License-Identifier: Apache-2.0
//! Writes manifests, tags and small blobs to a registry; `upload.rs` has blobs that are sent in pieces.

use super::pull::DIGEST;
use super::{Attempts, Fault, Need, Reference, Registry, RegistryError, Upload, retry};
use crate::oci::{Annotations, BlobError, Descriptor, Manifest};
use crate::web::{Clock, header};
use hyper::body::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderName};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use vdo_api::retry::{REGISTRY, TRANSFER};
use vdo_api::types::{Digest, from_json};

/// What a registry that lists referrers answers to a manifest with a subject.
const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");
/// Bytes that are sent at once.
const PIECE: usize = 16 << 20;

/// What a manifest says of itself to those who list it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct About {
    artifact_type: Option<String>,
    subject: Option<Descriptor>,
    config: Option<Descriptor>,
    annotations: Annotations,
}

impl Registry {
    /// Writes a blob that is in memory, unless the repository has it.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub async fn put_blob(&self, repository: &str, bytes: Bytes) -> Result<Digest, RegistryError> {
        let digest = Digest::of(&bytes);
        let mut attempts = Attempts::new(TRANSFER);
        while !retry(REGISTRY, || self.has_blob(repository, &digest)).await? {
            let upload = self.upload(repository).await?;
            match send_all(upload, &digest, bytes.clone()).await {
                Err(error) if error.is_forgotten() && attempts.wait(None).await => {}
                sent => return sent.map(|()| digest),
            }
        }
        Ok(digest)
    }

    /// Writes a manifest under the tag of the reference, or under its own digest where the reference has none. All that it names has to be there.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub async fn put_manifest(&self, reference: &Reference, manifest: &Manifest) -> Result<Descriptor, RegistryError> {
        let failed = |error: serde_json::Error| {
            let fault = Fault::NotRegistry(error.to_string());
            RegistryError::new(format!("{reference} cannot be written"), fault)
        };
        let bytes = serde_json::to_vec(manifest).map_err(failed)?;
        self.put_bytes(reference, &manifest.media_type, bytes).await
    }

    /// Writes a manifest or an index as it is, and lists it with what it is about where the registry does not.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub async fn put_bytes(&self, reference: &Reference, media_type: &str, bytes: Vec<u8>) -> Result<Descriptor, RegistryError> {
        let about: About = from_json(&bytes).unwrap_or_default();
        let mut descriptor = Descriptor::of(media_type, &bytes);
        let lists = retry(TRANSFER, || self.put_document(reference, media_type, bytes.clone())).await?;
        descriptor.artifact_type = about.artifact_type;
        if let (Some(subject), false) = (about.subject, lists) {
            let mut listed = descriptor.clone();
            // What has no type of its own is of that of its configuration.
            listed.artifact_type = listed.artifact_type.or(about.config.map(|config| config.media_type));
            listed.annotations = about.annotations;
            self.list_by_tag(reference, &subject.digest, listed).await?;
        }
        Ok(descriptor)
    }

    /// Writes the bytes of a manifest or an index as they are, in one attempt. Whether the registry lists it as a referrer of its subject.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub async fn put_document(&self, reference: &Reference, media_type: &str, bytes: Vec<u8>) -> Result<bool, RegistryError> {
        let failed = |fault| RegistryError::new(format!("{reference} cannot be written"), fault);
        let digest = Digest::of(&bytes);
        let pointer = match (&reference.tag, &reference.digest) {
            (Some(tag), _) => tag.clone(),
            (None, Some(expected)) if *expected != digest => {
                return Err(failed(
                    BlobError::Digest {
                        expected: expected.clone(),
                        found: digest,
                    }
                    .into(),
                ));
            }
            (None, _) => digest.to_string(),
        };
        let written = async {
            let url = self.url(&reference.repository, &format!("manifests/{pointer}"))?;
            let count = bytes.len();
            let request = self.request(Method::PUT, url).header(CONTENT_TYPE, media_type).body(bytes);
            let need = (reference.repository.as_str(), Need::Push);
            let (clock, response) = self.ask(need, request, || Clock::sending(count)).await?;
            if response.status() != StatusCode::CREATED {
                return Err(self.refusal((clock, response)).await);
            }
            let found = header(response.headers(), &DIGEST).and_then(|text| text.parse::<Digest>().ok());
            match found.filter(|found| *found != digest) {
                Some(found) => Err(BlobError::Digest { expected: digest, found }.into()),
                None => Ok(response.headers().contains_key(SUBJECT)),
            }
        };
        written.await.map_err(failed)
    }
}

/// Sends the whole content of an upload.
async fn send_all(mut upload: Upload, digest: &Digest, mut bytes: Bytes) -> Result<(), RegistryError> {
    while bytes.len() > PIECE {
        upload.write(bytes.split_to(PIECE)).await?;
    }
    upload.finish_with(digest, bytes).await
}
