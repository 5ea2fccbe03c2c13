// SPDX-License-Identifier: Apache-2.0
//! Pushes and pulls a matrix (`index.yaml`, signatures, charts) as an artifact of a registry.

use super::{Artifact, File, Reference, Registry, RegistryError, pull_files, push_files};
use crate::oci::media;
use std::collections::BTreeMap;
use vdo_api::types::Digest;

/// Bytes of all files together: two thousand charts have as many.
const LIMIT: usize = 256 << 20;

/// Publishes the files of a matrix under the tag of the reference: `index.yaml`, its signatures, and the charts at their paths. Gives the digest
/// of the artifact. The same files are the same artifact, from any publisher.
///
/// `before` is what [`pull_matrix`] gave when the publisher began, `None` where nothing was there. Everything is sent before the tag is written.
///
/// # Errors
/// When the registry refuses, and [`super::Fault::Moved`] when another publisher was faster.
pub async fn push_matrix(
    registry: &Registry,
    to: &Reference,
    files: &BTreeMap<String, Vec<u8>>,
    before: Option<&Digest>,
) -> Result<Digest, RegistryError> {
    Ok(push_files(registry, to, &matrix_artifact(files), before).await?.digest)
}

/// The files of a matrix as an artifact.
#[must_use]
pub fn matrix_artifact(files: &BTreeMap<String, Vec<u8>>) -> Artifact {
    let file = |(path, bytes): (&String, &Vec<u8>)| File {
        path: path.clone(),
        media_type: media_type(path).to_owned(),
        bytes: bytes.clone(),
    };
    Artifact {
        artifact_type: media::MATRIX.to_owned(),
        files: files.iter().map(file).collect(),
    }
}

/// The files of a published matrix by their paths, with the digest of the artifact; `None` where the reference leads nowhere.
///
/// # Errors
/// When the registry cannot be asked, or it is not a matrix or a damaged one.
pub async fn pull_matrix(registry: &Registry, from: &Reference) -> Result<Option<(Digest, BTreeMap<String, Vec<u8>>)>, RegistryError> {
    // A file that is missing is an error; only the artifact itself may be.
    if registry.head(from).await?.is_none() {
        return Ok(None);
    }
    let (fetched, artifact) = pull_files(registry, from, media::MATRIX, LIMIT).await?;
    let files = artifact.files.into_iter().map(|file| (file.path, file.bytes));
    Ok(Some((fetched.descriptor.digest, files.collect())))
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        _ if path == "index.yaml" => media::MATRIX_INDEX,
        _ if path.ends_with(".sigstore.json") => media::BUNDLE,
        Some("sig") => media::SIGNATURE,
        Some("tgz") => media::HELM_CHART,
        _ => "application/octet-stream",
    }
}
