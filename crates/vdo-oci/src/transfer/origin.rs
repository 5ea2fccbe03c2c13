// SPDX-License-Identifier: Apache-2.0
//! Reads manifests and blobs from either source of a copy, a registry or a layout.

use super::TransferError;
use crate::layout::{BlobFile, Layout};
use crate::oci::Descriptor;
use crate::registry::{BlobReader, Reference, Registry, RegistryError, retry};
use hyper::body::Bytes;
use std::sync::Arc;
use vdo_api::retry::REGISTRY;
use vdo_api::types::{Digest, Hasher};

/// Where something is read.
#[derive(Debug, Clone)]
pub enum Origin {
    /// In a repository of a registry.
    Registry(Registry, Reference),
    /// In a layout.
    Layout(Arc<Layout>),
}

/// A blob that is being read.
pub(super) enum Reader {
    Registry(Box<BlobReader>),
    Layout(Box<BlobFile>, Vec<u8>),
}

impl Origin {
    /// A manifest or a list below the one that was found first.
    pub(super) async fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, TransferError> {
        match self {
            Self::Registry(registry, at) => {
                let at = at.at_digest(&descriptor.digest);
                let found = retry(REGISTRY, || registry.manifest(&at)).await?;
                Ok(found.bytes)
            }
            Self::Layout(layout) => Ok(layout.document(descriptor)?),
        }
    }

    /// A blob.
    pub(super) async fn blob(&self, descriptor: &Descriptor) -> Result<Reader, TransferError> {
        self.rest(descriptor, &(0, Hasher::default())).await
    }

    /// The rest of a blob of which so many bytes are there, and this was computed of them. A layout gives it as a whole.
    pub(super) async fn rest(&self, descriptor: &Descriptor, so_far: &(u64, Hasher)) -> Result<Reader, TransferError> {
        match self {
            Self::Registry(registry, at) => {
                let ask = || registry.rest_of_blob(&at.repository, descriptor, so_far.clone());
                let reader = retry(REGISTRY, ask).await;
                let foreign = |error: &RegistryError| error.is_missing() && crate::oci::is_foreign(&descriptor.media_type);
                match reader {
                    Ok(reader) => Ok(Reader::Registry(Box::new(reader))),
                    Err(source) if foreign(&source) => Err(TransferError::Foreign {
                        reference: at.to_string(),
                        media_type: descriptor.media_type.clone(),
                        source,
                    }),
                    Err(error) => Err(error.into()),
                }
            }
            Self::Layout(layout) => Ok(Reader::Layout(Box::new(layout.open_blob(descriptor)?), Vec::new())),
        }
    }

    /// The repository of this registry that it is in, so that blobs need not leave the registry.
    pub(super) fn within(&self, registry: &Registry) -> Option<&str> {
        match self {
            Self::Registry(own, at) if own.host() == registry.host() => Some(&at.repository),
            _ => None,
        }
    }

    /// What belongs to a manifest.
    pub(super) async fn referrers(&self, digest: &Digest) -> Result<Vec<Descriptor>, TransferError> {
        match self {
            Self::Registry(registry, at) => Ok(retry(REGISTRY, || registry.all_referrers(at, digest)).await?),
            Self::Layout(layout) => Ok(layout.referrers(digest)?),
        }
    }
}

impl Reader {
    /// The next piece; none at the end, when everything that came is what its descriptor names.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, TransferError> {
        match self {
            Self::Registry(reader) => Ok(reader.next().await?),
            Self::Layout(file, piece) => Ok(file.next(piece)?.then(|| std::mem::take(piece).into())),
        }
    }
}
