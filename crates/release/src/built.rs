// SPDX-License-Identifier: Apache-2.0
//! Opens and verifies the image layout that `vdo-release image` wrote, and computes the tag of the image from its digest.

use anyhow::{Context, Result, anyhow};
use std::path::Path;
use std::sync::Arc;
use vdo_api::types::Digest;
use vdo_oci::layout::Layout;
use vdo_oci::oci::{Descriptor, REF_NAME};

/// A layout with one image that has a name.
pub struct Built {
    /// Where it is.
    pub layout: Arc<Layout>,
    /// The list of its platforms.
    pub root: Descriptor,
    /// The tag of that name.
    pub tag: String,
}

impl Built {
    /// Opens a layout.
    pub fn open(folder: &Path) -> Result<Self> {
        let layout = Layout::open(folder)?;
        let named = layout.index()?.manifests.into_iter().find_map(|entry| {
            let tag = entry.annotations.get(REF_NAME)?.clone();
            Some((entry, tag))
        });
        let (root, tag) = named.ok_or_else(|| anyhow!("{} has no image with a name", folder.display()))?;
        layout.verify().with_context(|| format!("the image in {}", folder.display()))?;
        let layout = Arc::new(layout);
        Ok(Self { layout, root, tag })
    }

    /// A tag that says what is in the image, so that a changed image is another image to a cluster.
    pub fn own_tag(&self) -> String {
        tag_of(&self.tag, &self.root.digest)
    }
}

fn tag_of(tag: &str, digest: &Digest) -> String {
    let own: String = digest.hex().chars().take(12).collect();
    // A tag has up to 128 characters.
    let tag: String = tag.chars().take(128 - 13).collect();
    format!("{tag}-{own}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_own_tag_changes_with_the_content_and_is_a_tag() {
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        assert_ne!(tag_of("v1", &one), tag_of("v1", &two));
        assert_eq!(tag_of("v1", &one), format!("v1-{}", &one.hex()[..12]));
        assert_eq!(tag_of(&"v".repeat(128), &one).len(), 128);
    }
}
