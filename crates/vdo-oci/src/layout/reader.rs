// SPDX-License-Identifier: Apache-2.0
//! Reads a blob of an image layout in pieces, and checks its size and digest at the end.

use super::error::io;
use super::{Layout, LayoutError};
use crate::oci::{BlobError, Descriptor};
use std::fs::File;
use std::io::{Read, Take};
use std::path::PathBuf;
use vdo_api::types::Hasher;

/// Bytes of a piece.
const PIECE: u64 = 1 << 20;

/// Adds everything that a file still has. Gives how many bytes that is.
pub(super) fn add(file: &mut impl Read, hasher: &mut Hasher) -> std::io::Result<u64> {
    let (mut all, mut piece) = (0, Vec::new());
    loop {
        piece.clear();
        match Read::take(&mut *file, PIECE).read_to_end(&mut piece)? {
            0 => return Ok(all),
            count => all += count as u64,
        }
        hasher.update(&piece);
    }
}

/// A blob that is being read. It ends without an error only if size and digest are those of its descriptor.
#[derive(Debug)]
pub struct BlobFile {
    file: Take<File>,
    path: PathBuf,
    descriptor: Descriptor,
    hasher: Hasher,
}

impl Layout {
    /// A blob, piece by piece.
    ///
    /// # Errors
    /// When it is missing, or has another size.
    pub fn open_blob(&self, descriptor: &Descriptor) -> Result<BlobFile, LayoutError> {
        let name = super::blob_name(&descriptor.digest);
        let path = self.store.name(&name);
        let file = self.store.open(&name)?;
        let found = self.store.size(&name).unwrap_or_default();
        if found != descriptor.size {
            return Err(BlobError::Size {
                digest: descriptor.digest.clone(),
                expected: descriptor.size,
                found,
            }
            .into());
        }
        Ok(BlobFile {
            file,
            path,
            descriptor: descriptor.clone(),
            hasher: Hasher::default(),
        })
    }

    /// Whether a blob is there with its size; its bytes are not looked at.
    #[must_use]
    pub fn has(&self, descriptor: &Descriptor) -> bool {
        self.store.size(&super::blob_name(&descriptor.digest)) == Some(descriptor.size)
    }

    /// Reads a blob and keeps nothing of it.
    ///
    /// # Errors
    /// When it is missing or changed.
    pub fn check(&self, descriptor: &Descriptor) -> Result<(), LayoutError> {
        let mut blob = self.open_blob(descriptor)?;
        let mut piece = Vec::new();
        while blob.next(&mut piece)? {}
        Ok(())
    }
}

impl BlobFile {
    /// Replaces the bytes of `piece` by the next ones; `false` at the end.
    ///
    /// # Errors
    /// When it cannot be read, or was changed.
    pub fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, LayoutError> {
        piece.clear();
        let count = (&mut self.file).take(PIECE).read_to_end(piece).map_err(io(&self.path))?;
        self.hasher.update(piece);
        if count > 0 {
            return Ok(true);
        }
        let found = std::mem::take(&mut self.hasher).finish();
        let expected = self.descriptor.digest.clone();
        match found == expected {
            true => Ok(false),
            false => Err(BlobError::Digest { expected, found }.into()),
        }
    }
}
