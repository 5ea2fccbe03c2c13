// SPDX-License-Identifier: Apache-2.0
//! Locks an image layout for one writer, removes unneeded blobs (`vdoctl mirror prune`) and leftovers, and finds damaged blobs.

use super::error::io;
use super::{Layout, LayoutError, partial, reader};
use std::collections::BTreeSet;
use std::fs::{self, File};
use vdo_api::types::{Digest, Hasher, total};
use vdo_files::UNFINISHED;

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many blobs.
    pub blobs: usize,
    /// How many bytes they had.
    pub bytes: u64,
}

impl Layout {
    /// Keeps other writers out for as long as the file is open.
    ///
    /// # Errors
    /// When another one is at work.
    pub fn lock(&self) -> Result<File, LayoutError> {
        let root = self.store.folder()?;
        let open = vdo_system::file_for_one(root).map_err(io(root))?;
        open.ok_or_else(|| LayoutError::Busy { root: root.to_owned() })
    }

    /// Removes what writers that were killed have left, and every blob that is not to be kept. The caller holds the lock.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn sweep(&self, keep: &BTreeSet<Digest>) -> Result<Swept, LayoutError> {
        self.tidy()?;
        self.forget()?;
        let (root, swept) = (self.store.folder()?, self.unneeded(keep)?);
        for name in self.others(keep)? {
            let path = root.join(name);
            fs::remove_file(&path).map_err(io(&path))?;
        }
        Ok(swept)
    }

    /// What [`Layout::sweep`] would remove.
    ///
    /// # Errors
    /// When the blobs cannot be listed.
    pub fn unneeded(&self, keep: &BTreeSet<Digest>) -> Result<Swept, LayoutError> {
        let others = self.others(keep)?;
        Ok(Swept {
            blobs: others.len(),
            bytes: total(others.iter().filter_map(|name| self.store.size(name))),
        })
    }

    /// Blobs whose bytes are not what their names say. All of them are read.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn damaged(&self) -> Result<BTreeSet<Digest>, LayoutError> {
        let mut damaged = BTreeSet::new();
        for hex in self.store.blobs()? {
            let Ok(digest) = format!("sha256:{hex}").parse::<Digest>() else {
                continue;
            };
            let name = super::blob_name(&digest);
            let (mut file, mut hasher) = (self.store.open(&name)?, Hasher::default());
            reader::add(&mut file, &mut hasher).map_err(io(&self.store.name(&name)))?;
            if hasher.finish() != digest {
                damaged.insert(digest);
            }
        }
        Ok(damaged)
    }

    fn others(&self, keep: &BTreeSet<Digest>) -> Result<Vec<String>, LayoutError> {
        let keep: BTreeSet<String> = keep.iter().map(Digest::hex).collect();
        let mut blobs = self.store.blobs()?;
        blobs.retain(|name| !keep.contains(name));
        Ok(blobs.into_iter().map(|name| format!("{}/{name}", super::BLOBS)).collect())
    }

    /// Removes what writers that were killed have left, but for parts of blobs that a pull can go on with. The caller holds the lock.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn tidy(&self) -> Result<(), LayoutError> {
        self.remove(UNFINISHED)
    }

    /// Removes the parts of blobs. The caller holds the lock.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn forget(&self) -> Result<(), LayoutError> {
        self.remove(partial::ENDING)
    }

    fn remove(&self, ending: &str) -> Result<(), LayoutError> {
        let root = self.store.folder()?;
        for entry in fs::read_dir(root).map_err(io(root))? {
            let entry = entry.map_err(io(root))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') && name.ends_with(ending) {
                fs::remove_file(entry.path()).map_err(io(&entry.path()))?;
            }
        }
        Ok(())
    }
}
