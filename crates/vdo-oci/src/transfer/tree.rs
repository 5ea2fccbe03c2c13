// SPDX-License-Identifier: Apache-2.0
//! Collects all manifests and blobs below a manifest for the requested platforms; `image_signatures.rs` adds signatures.

use super::{Origin, TransferError};
use crate::oci::{Descriptor, Kind, Platform, children, media};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{Digest, from_json};

/// More manifests than any image has.
const MANIFESTS: usize = 500;

/// An image or artifact: everything that its manifest leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The manifest or list at the top.
    pub root: Descriptor,
    /// Manifests and lists with their bytes, each after what it names.
    pub documents: Vec<(Descriptor, Vec<u8>)>,
    /// Configurations and layers.
    pub blobs: BTreeMap<Digest, Descriptor>,
}

/// Finds everything below a manifest. Of a list only the manifests for these platforms are taken, all when none is named: for one platform that
/// manifest itself, for several a list of their manifests.
///
/// # Errors
/// When a manifest cannot be had, or is none, or there is nothing for the platforms.
pub async fn tree(
    origin: &Origin,
    name: &str,
    (root, bytes): (Descriptor, Vec<u8>),
    platforms: &[Platform],
) -> Result<Tree, TransferError> {
    let (root, bytes) = match Kind::of(&root.media_type) {
        Kind::Index if !platforms.is_empty() => of_platforms(origin, name, (&root, &bytes), platforms).await?,
        _ => (root, bytes),
    };
    let mut found = Tree {
        root: root.clone(),
        documents: Vec::new(),
        blobs: BTreeMap::new(),
    };
    let mut seen = BTreeSet::from([root.digest.clone()]);
    let mut open = vec![(root, Some(bytes))];
    while let Some((descriptor, bytes)) = open.pop() {
        let kind = Kind::of(&descriptor.media_type);
        if kind == Kind::Blob {
            if found.documents.is_empty() {
                return Err(TransferError::Kind {
                    reference: name.to_owned(),
                    media_type: descriptor.media_type,
                });
            }
            found.blobs.insert(descriptor.digest.clone(), descriptor);
            continue;
        }
        if seen.len() > MANIFESTS {
            return Err(TransferError::TooMany {
                reference: name.to_owned(),
                limit: MANIFESTS,
            });
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => origin.document(&descriptor).await?,
        };
        for child in below(name, &descriptor, &bytes)? {
            // A manifest counts once; a blob is one however often it is named.
            if Kind::of(&child.media_type) == Kind::Blob || seen.insert(child.digest.clone()) {
                open.push((child, None));
            }
        }
        found.documents.push((descriptor, bytes));
    }
    // Parents were found first, and are written last.
    found.documents.reverse();
    Ok(found)
}

fn below(name: &str, descriptor: &Descriptor, bytes: &[u8]) -> Result<Vec<Descriptor>, TransferError> {
    children(&descriptor.media_type, bytes).map_err(|source| TransferError::Json {
        reference: name.to_owned(),
        source,
    })
}

/// The manifest for a platform, or a list of those for several.
async fn of_platforms(
    origin: &Origin,
    name: &str,
    (root, bytes): (&Descriptor, &[u8]),
    platforms: &[Platform],
) -> Result<(Descriptor, Vec<u8>), TransferError> {
    let listed = below(name, root, bytes)?;
    let fits = |wanted: &Platform, entry: &Descriptor| entry.platform.as_ref().is_some_and(|found| found.serves(wanted));
    let missing: Vec<String> = platforms
        .iter()
        .filter(|wanted| !listed.iter().any(|entry| fits(wanted, entry)))
        .map(ToString::to_string)
        .collect();
    if !missing.is_empty() {
        let known: BTreeSet<String> = listed
            .iter()
            .filter_map(|entry| Some(entry.platform.as_ref()?.to_string()))
            .collect();
        return Err(TransferError::Platform {
            reference: name.to_owned(),
            wanted: missing,
            known: known.into_iter().filter(|known| known != "unknown/unknown").collect(),
        });
    }
    let chosen: Vec<&Descriptor> = listed
        .iter()
        .filter(|entry| platforms.iter().any(|wanted| fits(wanted, entry)))
        .collect();
    if let [only] = chosen.as_slice() {
        return Ok(((*only).clone(), origin.document(only).await?));
    }
    if chosen.len() == listed.len() {
        return Ok((root.clone(), bytes.to_vec()));
    }
    let list = json!({"schemaVersion": 2, "mediaType": media::INDEX, "manifests": entries(bytes, &chosen)});
    let bytes = list.to_string().into_bytes();
    Ok((Descriptor::of(media::INDEX, &bytes), bytes))
}

/// The entries of a list as they stand there.
fn entries(list: &[u8], chosen: &[&Descriptor]) -> Vec<Value> {
    let list: Value = from_json(list).unwrap_or_default();
    let all = list.get("manifests").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_chosen = |entry: &Value| {
        let digest = entry.get("digest").and_then(Value::as_str);
        chosen.iter().any(|chosen| Some(chosen.digest.to_string().as_str()) == digest)
    };
    all.into_iter().filter(is_chosen).collect()
}
