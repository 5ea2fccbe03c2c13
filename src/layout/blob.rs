//! A file appears under its name when it is complete.

use super::LayoutError;
use super::error::io as io_error;
use crate::oci::Descriptor;
use crate::types::{Digest, Hasher};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file beside the others of a layout, until it has its name. Dropped before, it is removed.
#[derive(Debug)]
pub(super) struct Unnamed {
    path: PathBuf,
    pub(super) file: File,
    named: bool,
}

impl Unnamed {
    pub(super) fn new(root: &Path) -> Result<Self, LayoutError> {
        // Unique among processes and threads that write into the same layout.
        let name = format!(".{}-{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = root.join(name);
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(io_error(&path))?;
        Ok(Self { path, file, named: false })
    }

    pub(super) fn name(mut self, place: &Path) -> Result<(), LayoutError> {
        self.file.sync_all().map_err(io_error(&self.path))?;
        fs::rename(&self.path, place).map_err(io_error(place))?;
        self.named = true;
        Ok(())
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if !self.named {
            // Nothing refers to it, so a file that cannot be removed does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Replaces a file of the layout by these bytes.
pub(super) fn replace(root: &Path, place: &Path, bytes: &[u8]) -> Result<(), LayoutError> {
    let mut unnamed = Unnamed::new(root)?;
    unnamed.file.write_all(bytes).map_err(io_error(place))?;
    unnamed.name(place)
}

/// A blob that is being written; its digest is computed meanwhile. Dropped before [`BlobWriter::finish`], it leaves nothing.
#[derive(Debug)]
pub struct BlobWriter {
    unnamed: Unnamed,
    blobs: PathBuf,
    hasher: Hasher,
    size: u64,
}

impl BlobWriter {
    pub(super) fn new(root: &Path) -> Result<Self, LayoutError> {
        Ok(Self {
            unnamed: Unnamed::new(root)?,
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
        self.unnamed.name(&self.blobs.join(digest.hex()))?;
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
        let written = self.unnamed.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unnamed.file.flush()
    }
}
