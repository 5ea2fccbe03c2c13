// SPDX-License-Identifier: Apache-2.0
//! Reads the tag of an artifact from the registry and compares manifest, files, referrers and signatures with the built artifact.

use super::attest::attested;
use super::item::{Compared, Content, Item, State, channel, compared, signed_by};
use anyhow::Result;
use std::collections::BTreeSet;
use vdo_api::retry::REGISTRY;
use vdo_api::types::Digest;
use vdo_core::matrix::Index;
use vdo_oci::oci::{Descriptor, Manifest};
use vdo_oci::registry::{Artifact, Fetched, Reference, Registry, found, pull_matrix, retry};
use vdo_source::signature::PublicKeys;

/// Bytes of a signature.
const SIGNATURE: usize = 64 << 10;
/// Why something else stays where it is.
const TAG_IS_TAKEN: &str = "another build";

/// Looks an item up. With keys it has to be signed by one of them.
pub async fn look(registry: &Registry, item: &Item, keys: Option<&PublicKeys>) -> Result<State> {
    if let Content::Channel(artifact, version) = &item.content {
        return follow(registry, item, artifact, *version, keys).await;
    }
    let Some(found) = retry(REGISTRY, || found(registry, &item.to)).await? else {
        return Ok(State::Missing);
    };
    if found.descriptor.digest == item.manifest.digest {
        let complete = is_complete(registry, item, keys).await?;
        return Ok(if complete { State::There } else { State::Incomplete });
    }
    let other = State::Other(found.descriptor.digest.clone(), TAG_IS_TAKEN);
    match &item.content {
        Content::Files(artifact) if same(registry, &item.to, artifact, &found, keys).await? => Ok(State::There),
        _ => Ok(other),
    }
}

/// Whether everything that refers to it is there: bills of materials, and a signature of one of the keys.
async fn is_complete(registry: &Registry, item: &Item, keys: Option<&PublicKeys>) -> Result<bool> {
    if let Content::Image(layout) = &item.content {
        let wanted = layout.referrers(&item.manifest.digest)?;
        let found = retry(REGISTRY, || registry.all_referrers(&item.to, &item.manifest.digest)).await?;
        let found: BTreeSet<Digest> = found.into_iter().map(|entry| entry.digest).collect();
        if wanted.iter().any(|entry| !found.contains(&entry.digest)) {
            return Ok(false);
        }
    }
    match keys.filter(|_| item.content.is_signed()) {
        Some(keys) => attested(registry, &item.to, &item.manifest, keys).await,
        None => Ok(true),
    }
}

/// Whether the files there are ours, with signatures that one of the keys accepts.
async fn same(registry: &Registry, at: &Reference, ours: &Artifact, found: &Fetched, keys: Option<&PublicKeys>) -> Result<bool> {
    let Ok(theirs) = found.manifest() else { return Ok(false) };
    if theirs.artifact_type.as_deref() != Some(&ours.artifact_type) {
        return Ok(false);
    }
    let Ok(layers) = theirs.files() else { return Ok(false) };
    let list = |layers: &[(String, Descriptor)]| {
        layers
            .iter()
            .map(|(path, layer)| (path.clone(), layer.digest.clone()))
            .collect::<Vec<_>>()
    };
    let theirs = list(&layers);
    let signatures = match compared(&list(&of(&ours.manifest())), &theirs) {
        Compared::Same => return Ok(true),
        Compared::Other => return Ok(false),
        Compared::Signatures(paths) => paths,
    };
    let Some(keys) = keys else { return Ok(true) };
    for path in signatures {
        let Some((_, layer)) = layers.iter().find(|(other, _)| other == path) else {
            return Ok(false);
        };
        let signature = registry.blob_bytes(&at.repository, layer, SIGNATURE).await?;
        let signed = signed_by(path).and_then(|signed| ours.files.iter().find(|file| file.path == signed));
        if signed.is_none_or(|signed| keys.verify(&signed.bytes, Some(&signature)).is_err()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn of(manifest: &Manifest) -> Vec<(String, Descriptor)> {
    manifest.files().unwrap_or_default()
}

/// The tag that operators follow.
async fn follow(registry: &Registry, item: &Item, artifact: &Artifact, version: u64, keys: Option<&PublicKeys>) -> Result<State> {
    let Some(found) = retry(REGISTRY, || found(registry, &item.to)).await? else {
        return Ok(State::Missing);
    };
    let same = found.descriptor.digest == item.manifest.digest || same(registry, &item.to, artifact, &found, keys).await?;
    let there = match pull_matrix(registry, &item.to).await? {
        Some((digest, files)) => {
            let index = files.get("index.yaml").map(|bytes| Index::parse(bytes));
            Some((digest, index.and_then(Result::ok).map_or(u64::MAX, |index| index.version)))
        }
        None => None,
    };
    Ok(channel(there, same, version))
}
