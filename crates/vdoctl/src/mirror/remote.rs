// SPDX-License-Identifier: Apache-2.0
//! Reads the matrix of a mirror that is in a registry, for `mirror verify`.

use super::super::{CliError, Exit, registry as login};
use super::bundle::Matrix;
use std::collections::BTreeMap;
use vdo_api::retry::REGISTRY;
use vdo_api::types::Digest;
use vdo_oci::oci::Descriptor;
use vdo_oci::registry::{Reference, Registry, retry};

/// The largest file of a matrix.
const BLOB: usize = 64 << 20;

/// A matrix in a registry, with its files in memory.
pub(super) struct Remote {
    pub(super) matrix: Matrix,
    files: Files,
}

/// Files by their digests. One that cannot be had is a fault of what needs it.
struct Files(BTreeMap<Digest, Result<Vec<u8>, CliError>>);

impl Files {
    fn read(&self, blob: &Descriptor) -> Result<Vec<u8>, CliError> {
        let missing = || CliError::new(Exit::Refused, format!("blob {} is missing", blob.digest), "");
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
