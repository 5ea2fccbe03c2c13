// SPDX-License-Identifier: Apache-2.0
//! The answer of a source: bytes of index, signature and mirror lock, with `ETag` and `Last-Modified` for the next request (pure).

use std::time::Duration;

/// The bytes of an index and of the signature beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The index.
    pub index: Vec<u8>,
    /// Its signature, if there is one.
    pub signature: Option<Vec<u8>>,
    /// What a mirror has of it, where it is one.
    pub lock: Option<Vec<u8>>,
}

/// What a source has now, and what it says of the next look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceState {
    /// The bytes.
    pub signed: std::sync::Arc<Signed>,
    /// By which a web server knows them again.
    pub validators: Validators,
    /// How long the server says that nothing changes.
    pub good_for: Option<Duration>,
}

impl SourceState {
    /// At a source that is read at every look.
    #[must_use]
    pub fn at(signed: Signed) -> Self {
        Self {
            signed: signed.into(),
            validators: Validators::default(),
            good_for: None,
        }
    }
}

/// `ETag` and `Last-Modified` as they were sent. A server that knows them again saves the transfer; they prove nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub modified: Option<String>,
}
