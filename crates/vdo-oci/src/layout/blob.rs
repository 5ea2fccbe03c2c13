// SPDX-License-Identifier: Apache-2.0
//! Writes a new blob of an image layout to a temporary file, and renames the file to its digest when the blob is complete.

use super::LayoutError;
use super::error::io as io_error;
use crate::oci::Descriptor;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use vdo_api::types::{Digest, Hasher};
use vdo_files::{NewFile, Readers};

/// A file beside the others of a layout, until it has its name.
pub(super) fn beside(root: &Path) -> Result<NewFile, LayoutError> {
    NewFile::beside(root, "blob", Readers::Usual).map_err(io_error(root))
}

/// Replaces a file of the layout by these bytes.
pub(super) fn replace(root: &Path, place: &Path, bytes: &[u8]) -> Result<(), LayoutError> {
    let mut new = beside(root)?;
    let written = new.file().write_all(bytes).and_then(|()| new.finish(place));
    written.map_err(io_error(place))
}

/// A blob that is being written; its digest is computed meanwhile. Dropped before [`BlobWriter::finish`], it leaves nothing.
#[derive(Debug)]
pub struct BlobWriter {
    new: NewFile,
    blobs: PathBuf,
    hasher: Hasher,
    size: u64,
}

impl BlobWriter {
    pub(super) fn new(root: &Path) -> Result<Self, LayoutError> {
        Ok(Self {
            new: beside(root)?,
            blobs: root.join(super::BLOBS),
            hasher: Hasher::default(),
            size: 0,
        })
    }

    /// Stores the blob under its digest.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn finish(self, media_type: &str) -> Result<Descriptor, LayoutError> {
        let digest: Digest = self.hasher.finish();
        let place = self.blobs.join(digest.hex());
        self.new.finish(&place).map_err(io_error(&place))?;
        Ok(Descriptor::new(media_type, digest, self.size))
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), LayoutError> {
        self.write_all(bytes).map_err(io_error(&self.blobs))
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.new.file().write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.new.file().flush()
    }
}
