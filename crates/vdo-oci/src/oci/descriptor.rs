// SPDX-License-Identifier: Apache-2.0
//! A descriptor of a blob (media type, digest, size, platform), and the check of bytes against it.

use super::{Annotations, Platform};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use vdo_api::types::{Digest, Remedy};

/// Type, digest and size of a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// How the blob is to be read.
    pub media_type: String,
    /// Of all its bytes.
    pub digest: Digest,
    /// In bytes.
    pub size: u64,
    /// Which kind of artifact a manifest is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Where an image runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Free text by key.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

/// The bytes are not those that the descriptor names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// More or fewer bytes.
    #[error("blob {digest} has {found} bytes instead of {expected}")]
    Size {
        /// The blob.
        digest: Digest,
        /// By the descriptor.
        expected: u64,
        /// In the blob; one more than expected where reading stopped there.
        found: u64,
    },
    /// As many bytes, but others.
    #[error("blob {expected} was changed: its bytes have the digest {found}")]
    Digest {
        /// By the descriptor.
        expected: Digest,
        /// Of the bytes.
        found: Digest,
    },
}

impl Remedy for BlobError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Build or copy the layout again.".into())
    }
}

impl Descriptor {
    /// Describes these bytes.
    #[must_use]
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }

    /// Describes a blob whose digest and size in bytes are known.
    #[must_use]
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest,
            size,
            artifact_type: None,
            platform: None,
            annotations: Annotations::new(),
        }
    }

    /// Whether these are the bytes that it describes.
    ///
    /// # Errors
    /// When their number or their digest differs.
    pub fn check(&self, bytes: &[u8]) -> Result<(), BlobError> {
        if bytes.len() as u64 != self.size {
            return Err(BlobError::Size {
                digest: self.digest.clone(),
                expected: self.size,
                found: bytes.len() as u64,
            });
        }
        let found = Digest::of(bytes);
        if found != self.digest {
            return Err(BlobError::Digest {
                expected: self.digest.clone(),
                found,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_other_bytes_are_rejected() {
        let descriptor = Descriptor::of(super::super::media::EMPTY, b"{}");
        assert_eq!(descriptor.check(b"{}"), Ok(()));
        assert!(matches!(descriptor.check(b"{} "), Err(BlobError::Size { found: 3, .. })));
        assert!(matches!(descriptor.check(b"[]"), Err(BlobError::Digest { .. })));
    }
}
