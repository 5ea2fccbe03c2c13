//! The matrix of a mirror in a registry.

use super::super::{CliError, Exit, registry as login};
use super::bundle::Matrix;
use std::collections::BTreeMap;
use vdo_api::retry::REGISTRY;
use vdo_api::types::Digest;
use vdo_core::lock::{FILE, Lock};
use vdo_oci::oci::{Descriptor, media};
use vdo_oci::registry::{Reference, Registry, RegistryError, retry};
use vdo_source::fetch::INDEX_FILE;

/// The largest file of a matrix.
const BLOB: usize = 64 << 20;

/// The tags of matrices that were replaced by others.
const BEFORE: &str = "before-";

/// A matrix in a registry, with its files in memory.
pub(super) struct Remote {
    pub(super) matrix: Matrix,
    files: Files,
}

/// Files by their digests. One that cannot be had is a fault of what needs it.
struct Files(BTreeMap<Digest, Result<Vec<u8>, CliError>>);

impl Files {
    fn read(&self, blob: &Descriptor) -> Result<Vec<u8>, CliError> {
        let missing = || CliError::new(Exit::Refused, format!("blob {} is not there", blob.digest), "");
        self.0.get(&blob.digest).cloned().unwrap_or_else(|| Err(missing()))
    }
}

impl Remote {
    pub(super) async fn open(registry: &Registry, at: &Reference, place: &str) -> Result<Self, CliError> {
        let found = retry(REGISTRY, || registry.manifest(at))
            .await
            .map_err(|error| login::failed(&error))?;
        let manifest = found.manifest().map_err(|error| login::failed(&error))?;
        let mut files = Files(BTreeMap::new());
        for (_, blob) in manifest.files().unwrap_or_default() {
            let read = registry.blob_bytes(&at.repository, &blob, BLOB).await;
            files.0.insert(blob.digest.clone(), read.map_err(|error| login::failed(&error)));
        }
        let matrix = Matrix::of(&manifest, place, |blob| files.read(blob))?;
        Ok(Self { matrix, files })
    }

    /// One of its files.
    pub(super) fn read(&self, blob: &Descriptor) -> Result<Vec<u8>, CliError> {
        self.files.read(blob)
    }
}

/// Keeps the matrix that is going to be replaced under a tag of its own, so that it stays known what only it needs. Gives its digest.
pub(super) async fn remember(registry: &Registry, at: &Reference, next: &Digest) -> Result<Option<Digest>, CliError> {
    let found = match retry(REGISTRY, || registry.manifest(at)).await {
        Ok(found) => found,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(login::failed(&error)),
    };
    let digest = found.descriptor.digest;
    if digest != *next {
        let kept = at.at_tag(&format!("{BEFORE}{}", digest.short()));
        let written = retry(REGISTRY, || {
            registry.put_bytes(&kept, &found.descriptor.media_type, found.bytes.clone())
        });
        written.await.map_err(|error| login::failed(&error))?;
    }
    Ok(Some(digest))
}

/// The matrices that were replaced: what each of them holds, as far as it can be read, and where it is.
pub(super) async fn replaced(registry: &Registry, at: &Reference) -> Result<Vec<(Option<Lock>, Reference)>, RegistryError> {
    let mut all = Vec::new();
    for tag in registry.tags(&at.repository).await?.iter().filter(|tag| tag.starts_with(BEFORE)) {
        let tagged = at.at_tag(tag);
        let found = match retry(REGISTRY, || registry.manifest(&tagged)).await {
            Ok(found) => found,
            Err(error) if error.is_missing() => continue,
            Err(error) => return Err(error),
        };
        let manifest = found.manifest().ok().filter(|manifest| manifest.kind() == media::MATRIX);
        let files: BTreeMap<String, Descriptor> = manifest.and_then(|manifest| manifest.files().ok()).into_iter().flatten().collect();
        let lock = match (files.get(INDEX_FILE), files.get(FILE)) {
            (Some(index), Some(lock)) => {
                let bytes = registry.blob_bytes(&at.repository, lock, BLOB).await?;
                Lock::parse(&bytes, &index.digest).ok()
            }
            _ => None,
        };
        all.push((lock, at.at_digest(&found.descriptor.digest)));
    }
    Ok(all)
}
