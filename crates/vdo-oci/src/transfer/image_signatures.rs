// SPDX-License-Identifier: Apache-2.0
//! Finds an image in a registry or layout together with its cosign signatures and bills of materials; `tree.rs` finds its content.

use super::{Origin, TransferError, Tree, tree};
use crate::layout::Layout;
use crate::oci::{Descriptor, Kind, Platform};
use crate::registry::{Reference, Registry, retry};
use std::sync::Arc;
use vdo_api::retry::REGISTRY;
use vdo_api::types::{Digest, total};

/// An image with everything that goes with it.
#[derive(Debug)]
pub struct Found {
    /// Where it is.
    pub origin: Origin,
    /// What it is.
    pub tree: Tree,
    /// The digest of all platforms, where only a part of them was asked for.
    pub whole: Option<Digest>,
    /// Signatures and bills of materials, as registries list them.
    pub referrers: Vec<Tree>,
    /// Signatures that are found by a tag, as older versions of cosign write them.
    pub tagged: Vec<(String, Tree)>,
}

/// The tag under which older versions of cosign keep the signature of a manifest.
#[must_use]
pub fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

/// Looks an image up in a registry, with what belongs to it. A publisher signs the whole, and perhaps the manifest for each platform. A list of
/// some of these is none of its own, so nothing belongs to it.
///
/// # Errors
/// When it is not there, cannot be had, or is not there for the platforms.
pub async fn find(registry: &Registry, at: &Reference, platforms: &[Platform]) -> Result<Found, TransferError> {
    let name = at.to_string();
    let fetched = retry(REGISTRY, || registry.manifest(at)).await?;
    let origin = Origin::Registry(registry.clone(), at.clone());
    let top = fetched.descriptor.digest.clone();
    let tree_of =
        async |descriptor: Descriptor, bytes: Vec<u8>, platforms: &[Platform]| tree(&origin, &name, (descriptor, bytes), platforms).await;
    let main = tree_of(fetched.descriptor, fetched.bytes, platforms).await?;
    let mut found = Found {
        whole: (main.root.digest != top).then_some(top),
        tree: main,
        referrers: Vec::new(),
        tagged: Vec::new(),
        origin: origin.clone(),
    };
    if found.whole.is_none() || Kind::of(&found.tree.root.media_type) == Kind::Manifest {
        let digest = found.tree.root.digest.clone();
        for entry in origin.referrers(&digest).await? {
            let bytes = origin.document(&entry).await?;
            found.referrers.push(tree_of(entry, bytes, &[]).await?);
        }
        let tag = signature_tag(&digest);
        let signature = at.at_tag(&tag);
        match retry(REGISTRY, || registry.manifest(&signature)).await {
            Ok(signature) => found.tagged.push((tag, tree_of(signature.descriptor, signature.bytes, &[]).await?)),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Looks an image up in a layout, with what belongs to it.
///
/// # Errors
/// When a manifest is missing or changed.
pub async fn find_in(layout: &Arc<Layout>, name: &str, root: &Descriptor) -> Result<Found, TransferError> {
    let origin = Origin::Layout(layout.clone());
    let tree_of = async |descriptor: &Descriptor| {
        let bytes = origin.document(descriptor).await?;
        tree(&origin, name, (descriptor.clone(), bytes), &[]).await
    };
    let mut found = Found {
        tree: tree_of(root).await?,
        whole: None,
        referrers: Vec::new(),
        tagged: Vec::new(),
        origin: origin.clone(),
    };
    for entry in origin.referrers(&root.digest).await? {
        found.referrers.push(tree_of(&entry).await?);
    }
    Ok(found)
}

impl Found {
    /// Everything that is to be moved.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        let tagged = self.tagged.iter().map(|(_, tree)| tree);
        std::iter::once(&self.tree).chain(&self.referrers).chain(tagged)
    }

    /// Bytes of the whole image, each blob counted once.
    #[must_use]
    pub fn size(&self) -> u64 {
        let blobs: std::collections::BTreeMap<_, _> = self.trees().flat_map(|tree| &tree.blobs).collect();
        let documents = self.trees().flat_map(|tree| &tree.documents).map(|(descriptor, _)| descriptor.size);
        total(blobs.values().map(|blob| blob.size).chain(documents))
    }
}
