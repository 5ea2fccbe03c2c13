// SPDX-License-Identifier: Apache-2.0
//! Pushes and pulls files as an artifact, as `oras` does: each file is a layer with its path as title.
//!
//! A push moves the tag only if the tag still refers to the expected manifest.

use super::{Fault, Fetched, Reference, Registry, RegistryError, retry};
use crate::oci::{Descriptor, Manifest, TITLE, media};
use vdo_api::retry::{REGISTRY, TRANSFER};
use vdo_api::types::Digest;

/// A file of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path in the folder: relative, without `..`.
    pub path: String,
    /// How it is to be read.
    pub media_type: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Files that are published together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Which kind of artifact it is.
    pub artifact_type: String,
    /// The files. The same ones in the same order are the same manifest.
    pub files: Vec<File>,
}

impl Artifact {
    /// The manifest of these files. The empty configuration that it names has to be stored with them.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let layer = |file: &File| {
            let mut layer = Descriptor::of(&file.media_type, &file.bytes);
            layer.annotations.insert(TITLE.into(), file.path.clone());
            layer
        };
        Manifest {
            artifact_type: Some(self.artifact_type.clone()),
            ..Manifest::image(
                Descriptor::of(media::EMPTY, media::EMPTY_JSON),
                self.files.iter().map(layer).collect(),
            )
        }
    }
}

/// Publishes files under the tag of the reference; gives the manifest. The tag is written last, so a reader sees all files or the ones before.
///
/// `before` is the manifest to which the tag led when the publisher began, and `None` where it led nowhere. It is compared right before
/// the tag is written, and the tag is read again afterwards: registries write a tag unconditionally, so two publishers in the same moment
/// cannot be kept apart, but each of them finds out. Where the tag leads to these very files already, nothing is written.
///
/// # Errors
/// When the registry refuses, and [`Fault::Moved`] when the tag leads elsewhere than `before`, or elsewhere afterwards.
pub async fn push_files(
    registry: &Registry,
    to: &Reference,
    artifact: &Artifact,
    before: Option<&Digest>,
) -> Result<Descriptor, RegistryError> {
    let failed = |error: serde_json::Error| RegistryError::new(format!("{to} cannot be written"), Fault::NotRegistry(error.to_string()));
    let manifest = artifact.manifest();
    let bytes = serde_json::to_vec(&manifest).map_err(failed)?;
    let written = Descriptor {
        artifact_type: Some(artifact.artifact_type.clone()),
        ..Descriptor::of(&manifest.media_type, &bytes)
    };
    let moved = |found: Option<Digest>| {
        let fault = Fault::Moved {
            before: before.cloned(),
            found,
        };
        RegistryError::new(format!("{to} was not published"), fault)
    };
    // Asked before anything is sent, and again when everything is there.
    let found = retry(REGISTRY, || current(registry, to)).await?;
    if found.as_ref() != before {
        return Err(moved(found));
    }
    registry.put_blob(&to.repository, media::EMPTY_JSON.into()).await?;
    for file in &artifact.files {
        registry.put_blob(&to.repository, file.bytes.clone().into()).await?;
    }
    retry(TRANSFER, || async {
        let found = current(registry, to).await?;
        if found.as_ref() == Some(&written.digest) {
            // The answer to an earlier attempt did not arrive.
            return Ok(());
        }
        if found.as_ref() != before {
            return Err(moved(found));
        }
        let put = registry.put_document(to, &manifest.media_type, bytes.clone());
        put.await.map(drop)
    })
    .await?;
    let found = retry(REGISTRY, || current(registry, to)).await?;
    match found.as_ref() == Some(&written.digest) {
        true => Ok(written),
        false => Err(moved(found)),
    }
}

/// Where a reference leads to now.
///
/// # Errors
/// When the registry cannot be asked.
pub async fn current(registry: &Registry, at: &Reference) -> Result<Option<Digest>, RegistryError> {
    Ok(found(registry, at).await?.map(|found| found.descriptor.digest))
}

/// The manifest that a reference leads to now; `None` where the registry has none.
///
/// # Errors
/// When the registry cannot be asked.
pub async fn found(registry: &Registry, at: &Reference) -> Result<Option<Fetched>, RegistryError> {
    match registry.manifest(at).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// All files of an artifact of this type, in memory, and its manifest. Together they have at most `limit` bytes.
///
/// # Errors
/// When it is not there, is of another type, names a file outside of the folder or one twice, or is larger.
pub async fn pull_files(
    registry: &Registry,
    from: &Reference,
    artifact_type: &'static str,
    limit: usize,
) -> Result<(Fetched, Artifact), RegistryError> {
    let fetched = registry.manifest(from).await?;
    let mut left = limit;
    let mut files = Vec::new();
    for (path, layer) in layers(from, &fetched, artifact_type)? {
        let bytes = registry.blob_bytes(&from.repository, &layer, left).await?;
        left -= bytes.len();
        files.push(File {
            path,
            media_type: layer.media_type,
            bytes,
        });
    }
    let artifact = Artifact {
        artifact_type: artifact_type.to_owned(),
        files,
    };
    Ok((fetched, artifact))
}

/// The files of an artifact by their paths, as its manifest lists them.
///
/// # Errors
/// When it is of another type, or names a file outside of the folder or one twice.
pub fn layers(from: &Reference, fetched: &Fetched, artifact_type: &'static str) -> Result<Vec<(String, Descriptor)>, RegistryError> {
    let wrong = |found: String| {
        let fault = Fault::Kind {
            expected: artifact_type,
            found,
        };
        RegistryError::new(format!("{from} cannot be used"), fault)
    };
    let manifest = fetched.manifest()?;
    if manifest.kind() != artifact_type {
        return Err(wrong(format!("an artifact of the type {:?}", manifest.kind())));
    }
    manifest.files().map_err(|problem| wrong(format!("an artifact with {problem}")))
}
