// SPDX-License-Identifier: Apache-2.0
//! Lists the descriptors that a manifest or index names, of OCI or Docker; `transfer/tree.rs` follows them to the end.

use super::{Descriptor, media};
use serde::Deserialize;
use vdo_api::types::from_json;

/// What there is of manifests: those of OCI, and Docker's own, which are the same with other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A list of manifests.
    Index,
    /// An image or artifact: a configuration and layers.
    Manifest,
    /// Anything else.
    Blob,
}

impl Kind {
    /// By the media type.
    #[must_use]
    pub fn of(media_type: &str) -> Self {
        match media_type {
            media::INDEX | media::DOCKER_LIST => Self::Index,
            media::MANIFEST | media::DOCKER_MANIFEST => Self::Manifest,
            _ => Self::Blob,
        }
    }
}

#[derive(Deserialize)]
struct List {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Parts {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

/// What these bytes name, as their media type says: the manifests of a list, or configuration and layers of a manifest.
///
/// # Errors
/// When they are not of that type.
pub fn children(media_type: &str, bytes: &[u8]) -> Result<Vec<Descriptor>, serde_json::Error> {
    Ok(match Kind::of(media_type) {
        Kind::Index => from_json::<List>(bytes)?.manifests,
        Kind::Manifest => {
            let parts: Parts = from_json(bytes)?;
            std::iter::once(parts.config).chain(parts.layers).collect()
        }
        Kind::Blob => Vec::new(),
    })
}

/// Whether a layer is one that its publisher gives out elsewhere, and registries often do not have.
#[must_use]
pub fn is_foreign(media_type: &str) -> bool {
    media_type.contains(".foreign.") || media_type.contains(".nondistributable.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::{Index, Manifest};

    #[test]
    fn children_of_lists_and_manifests_are_named_and_of_blobs_there_are_none() {
        let blob = |text: &str| Descriptor::of("text/plain", text.as_bytes());
        let manifest = serde_json::to_vec(&Manifest::image(blob("config"), vec![blob("layer")])).expect("JSON");
        for kind in [media::MANIFEST, media::DOCKER_MANIFEST] {
            assert_eq!(children(kind, &manifest).expect("a manifest"), [blob("config"), blob("layer")]);
        }
        let index = serde_json::to_vec(&Index::new(vec![blob("one")])).expect("JSON");
        for kind in [media::INDEX, media::DOCKER_LIST] {
            assert_eq!(children(kind, &index).expect("a list"), [blob("one")]);
            assert!(children(kind, &manifest).is_err());
        }
        assert_eq!(children("text/plain", b"anything").expect("a blob"), []);
    }

    #[test]
    fn foreign_layers_are_known_by_their_type() {
        assert!(is_foreign("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"));
        assert!(is_foreign("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"));
        assert!(!is_foreign(media::LAYER_GZIP));
    }
}
