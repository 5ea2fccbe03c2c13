// SPDX-License-Identifier: Apache-2.0
//! Resolves an image reference to its current digest, and checks that the image exists for the requested platforms.

use super::TransferError;
use crate::oci::{Kind, Platform, children};
use crate::registry::{Reference, Registry, retry};
use serde::Deserialize;
use std::collections::BTreeSet;
use vdo_api::retry::REGISTRY;
use vdo_api::types::{Digest, from_json};

/// More than any configuration of an image.
const CONFIG: usize = 1 << 20;

/// The digest that a reference leads to now: of the list where there is one. It must be there for each of these platforms.
///
/// # Errors
/// When it is not there or cannot be asked for, or is not there for a platform.
pub async fn digest(registry: &Registry, at: &Reference, platforms: &[Platform]) -> Result<Digest, TransferError> {
    let name = at.to_string();
    let fetched = retry(REGISTRY, || registry.manifest(at)).await?;
    let (top, bytes) = (fetched.descriptor, fetched.bytes);
    let listed = children(&top.media_type, &bytes).map_err(|source| TransferError::Json {
        reference: name.clone(),
        source,
    })?;
    let known: BTreeSet<Platform> = match Kind::of(&top.media_type) {
        Kind::Index => {
            let is_wanted = |found: &Platform| platforms.iter().any(|wanted| found.serves(wanted));
            let mut there = BTreeSet::new();
            for entry in listed {
                let Some(platform) = entry.platform.clone() else { continue };
                // A list may name what its registry does not have.
                let manifest = at.at_digest(&entry.digest);
                if is_wanted(&platform) && retry(REGISTRY, || registry.head(&manifest)).await?.is_none() {
                    continue;
                }
                there.insert(platform);
            }
            there
        }
        Kind::Manifest => {
            let config = listed.first().ok_or_else(|| unknown(&name, &top.media_type))?;
            let bytes = retry(REGISTRY, || registry.blob_bytes(&at.repository, config, CONFIG)).await?;
            let own: Own = from_json(&bytes).map_err(|source| TransferError::Json {
                reference: name.clone(),
                source,
            })?;
            [own.platform].into()
        }
        Kind::Blob => return Err(unknown(&name, &top.media_type)),
    };
    let missing: Vec<String> = platforms
        .iter()
        .filter(|wanted| !known.iter().any(|found| found.serves(wanted)))
        .map(ToString::to_string)
        .collect();
    if missing.is_empty() {
        return Ok(top.digest);
    }
    let known = known.iter().map(ToString::to_string);
    Err(TransferError::Platform {
        reference: name,
        wanted: missing,
        known: known.filter(|known| known != "unknown/unknown").collect(),
    })
}

/// What the configuration of an image says of where it runs.
#[derive(Deserialize)]
struct Own {
    #[serde(flatten)]
    platform: Platform,
}

fn unknown(reference: &str, media_type: &str) -> TransferError {
    TransferError::Kind {
        reference: reference.to_owned(),
        media_type: media_type.to_owned(),
    }
}
