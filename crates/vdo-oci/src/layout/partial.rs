// SPDX-License-Identifier: Apache-2.0
//! A partly downloaded blob of an image layout: the next download continues it (`vdoctl mirror pull` after an interruption).

use super::error::io;
use super::{Layout, LayoutError, blob_name, reader};
use crate::oci::Descriptor;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use vdo_api::types::Hasher;

/// How such a file ends.
pub(super) const ENDING: &str = ".partial";

/// A part of a blob, in a file named by the digest that the whole is going to have. Dropped before [`Partial::finish`], it stays.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
    place: PathBuf,
    size: u64,
    hasher: Hasher,
    done: bool,
}

impl Layout {
    /// A blob, with what is there of it. The caller holds the lock.
    ///
    /// # Errors
    /// When its file cannot be read or written.
    pub fn partial(&self, descriptor: &Descriptor) -> Result<Partial, LayoutError> {
        let root = self.store.folder()?;
        let path = root.join(format!(".{}{ENDING}", descriptor.digest.hex()));
        let file = vdo_files::resume(&path);
        let mut partial = Partial {
            file: file.map_err(io(&path))?,
            place: root.join(blob_name(&descriptor.digest)),
            path,
            size: 0,
            hasher: Hasher::default(),
            done: false,
        };
        partial.begin(descriptor.size)?;
        Ok(partial)
    }

    /// How many bytes of a blob are there that is not complete.
    #[must_use]
    pub fn begun(&self, descriptor: &Descriptor) -> u64 {
        let size = self
            .store
            .size(&format!(".{}{ENDING}", descriptor.digest.hex()))
            .unwrap_or_default();
        if size > descriptor.size { 0 } else { size }
    }
}

impl Partial {
    /// Reads what is there. More than the blob has is something else.
    fn begin(&mut self, whole: u64) -> Result<(), LayoutError> {
        if self.file.metadata().map_err(io(&self.path))?.len() > whole {
            return self.restart();
        }
        self.size = reader::add(&mut self.file, &mut self.hasher).map_err(io(&self.path))?;
        Ok(())
    }

    /// How many bytes are there, and what was computed of them.
    #[must_use]
    pub fn so_far(&self) -> (u64, Hasher) {
        (self.size, self.hasher.clone())
    }

    /// Forgets what is there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn restart(&mut self) -> Result<(), LayoutError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(io(&self.path))?;
        (self.size, self.hasher) = (0, Hasher::default());
        Ok(())
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), LayoutError> {
        self.file.write_all(bytes).map_err(io(&self.path))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Puts the blob into its place. The caller has compared size and digest.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn finish(mut self) -> Result<(), LayoutError> {
        self.file.sync_all().map_err(io(&self.path))?;
        fs::rename(&self.path, &self.place).map_err(io(&self.place))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.done && self.size == 0 {
            // Nothing is lost, and a file that cannot be removed does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::Digest;

    #[test]
    fn partial_goes_on_with_what_is_there_and_is_in_its_place_when_it_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::create(folder.path()).expect("a layout");
        let whole = Descriptor::of("text/plain", b"first second");
        let mut partial = layout.partial(&whole).expect("a file");
        partial.append(b"first ").expect("bytes");
        drop(partial);
        assert!(layout.begun(&whole) == 6 && !layout.has(&whole));
        let mut partial = layout.partial(&whole).expect("a file");
        let (size, mut hasher) = partial.so_far();
        hasher.update(b"second");
        assert_eq!((size, hasher.finish()), (6, whole.digest.clone()));
        partial.append(b"second").expect("bytes");
        partial.finish().expect("it is complete");
        assert_eq!(layout.read(&whole).expect("the blob"), b"first second");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3, "nothing else is left");
    }

    #[test]
    fn partial_that_is_too_long_or_begun_again_is_empty_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::create(folder.path()).expect("a layout");
        let (long, short) = (Descriptor::of("text/plain", b"123456"), Descriptor::of("text/plain", b"123"));
        let file = |descriptor: &Descriptor| folder.path().join(format!(".{}{ENDING}", descriptor.digest.hex()));
        fs::write(file(&short), b"123456").expect("a file");
        assert_eq!(layout.begun(&short), 0);
        let empty = (0, Digest::of(b""));
        let (size, hasher) = layout.partial(&short).expect("a file").so_far();
        assert_eq!((size, hasher.finish()), empty);
        fs::write(file(&long), b"1234").expect("a file");
        let mut partial = layout.partial(&long).expect("a file");
        assert_eq!(partial.so_far().0, 4);
        partial.restart().expect("it is emptied");
        let (size, hasher) = partial.so_far();
        assert_eq!((size, hasher.finish()), empty);
        drop(partial);
        assert!(!file(&short).exists() && !file(&long).exists());
    }
}
