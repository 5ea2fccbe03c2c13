// SPDX-License-Identifier: Apache-2.0
//! Writes the output files of a verb completely or not at all, and removes the incomplete file when the verb is interrupted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use vdo_files::{Output, Readers};

/// The file that is not complete yet.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Writes a file. Whatever stood there stays as it is until the new one is complete.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, Readers::Usual)
}

/// The same for what describes a cluster: no other user may read it.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, Readers::Owner)
}

fn put(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let output = Output::to(path, readers)?;
    unfinished(output.unfinished().map(Path::to_owned));
    let written = output.write(bytes);
    unfinished(None);
    written
}

/// Takes away what is not complete, for an end in the middle of it.
pub(super) fn give_up() {
    if let Some(beside) = unfinished(None) {
        // It may have got its name in this moment; then there is nothing to take away.
        let _ = fs::remove_file(beside);
    }
}

fn unfinished(next: Option<PathBuf>) -> Option<PathBuf> {
    std::mem::replace(&mut *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn save_given_up_leaves_nothing_beside_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let beside = folder.path().join(".file.1.part");
        fs::write(&beside, "half").expect("written");
        unfinished(Some(beside));
        give_up();
        give_up();
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
