// SPDX-License-Identifier: Apache-2.0
//! Copies images and artifacts: from a registry into a layout, from a layout into a registry, and from one registry into another.
//!
//! ```text
//!   Origin --tree--> Tree (documents, blobs) --fetch--> Layout
//!                                            --send---> Registry: blobs, then manifests below, then the tag
//! ```
//!
//! # Guarantees
//! Bytes are written only when size and digest are those of their descriptor. A tag is written after everything below it. Existing content
//! is not copied again. No blob is held in memory.

mod digest;
mod error;
mod fetch;
mod image_signatures;
mod origin;
mod parallel;
mod send;
mod tree;

pub use digest::digest;
pub use error::TransferError;
pub use fetch::{Known, fetch};
pub use image_signatures::{Found, find, find_in, signature_tag};
pub use origin::Origin;
pub use parallel::AT_ONCE;
pub use send::{Delivery, send};
pub use tree::{Tree, tree};

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what has moved, for people who wait.
#[derive(Debug, Default)]
pub struct Meter {
    blobs: AtomicU64,
    bytes: AtomicU64,
    total: AtomicU64,
}

impl Meter {
    /// So many bytes more are to be moved.
    pub fn expect(&self, bytes: u64) {
        // What is expected is what others name; there may be no such sum.
        let add = |total: u64| Some(total.saturating_add(bytes));
        let _ = self.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// So many bytes have moved.
    pub fn moved(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A blob is complete.
    pub fn complete(&self) {
        self.blobs.fetch_add(1, Ordering::Relaxed);
    }

    /// Blobs that are complete, bytes that have moved, and bytes that are to be moved.
    #[must_use]
    pub fn read(&self) -> (u64, u64, u64) {
        let [blobs, bytes, total] = [&self.blobs, &self.bytes, &self.total].map(|count| count.load(Ordering::Relaxed));
        (blobs, bytes, total.max(bytes))
    }
}
