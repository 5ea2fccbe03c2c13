// SPDX-License-Identifier: Apache-2.0
//! Reads and writes files for every crate: complete or not at all, without following links, with the permissions that the caller names.
//!
//! # Guarantees
//! A file is written whole or not at all: beside its place, under a name that did not exist, and then under its own. A link with that name is
//! replaced and not followed, so that no one who may write into the same folder chooses which file is changed. What only its owner may read is
//! never readable by others, whatever the umask; on Windows it has the access list of its folder. Only regular files are read.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vdo_system::{is_ours, is_ours_or_the_systems};

/// How the name of a file ends that is not complete.
pub const UNFINISHED: &str = ".part";

/// Attempts to find a name that does not exist.
const NAMES: u32 = 16;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone: what describes a cluster, or opens something.
    Owner,
    /// Everyone whom the umask does not exclude; the readers of the file that it replaces, if that is ours.
    Usual,
}

/// A file that is not complete. Dropped before [`NewFile::finish`], it is removed.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    finished: bool,
}

impl NewFile {
    /// A file in this folder, under a name that no one knows before.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn beside(folder: &Path, name: &str, readers: Readers) -> io::Result<Self> {
        let mut tries = 1;
        loop {
            let path = folder.join(unknown_name(name));
            match new_file(&path, readers) {
                Ok(file) => {
                    return Ok(Self {
                        path,
                        file,
                        finished: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < NAMES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is until it is complete.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is written into it.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name. What had this name before is replaced; a link is, too, and what it leads to stays.
    ///
    /// # Errors
    /// When the file system is full, or the name cannot be replaced.
    pub fn finish(mut self, place: &Path) -> io::Result<()> {
        // Some file systems notice only here that they are full.
        self.file.sync_all()?;
        fs::rename(&self.path, place)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing refers to it, so a file that cannot be removed does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file that is about to be written to its place.
#[derive(Debug)]
pub enum Output {
    /// It appears when it is complete.
    New(NewFile, PathBuf),
    /// A device or a pipe, which has no content to be lost and is written into.
    Stream(File),
}

impl Output {
    /// Decides what is written to a place.
    ///
    /// # Errors
    /// When the place is a folder, is a pipe of another user, or cannot be written.
    pub fn to(place: &Path, readers: Readers) -> io::Result<Self> {
        let old = fs::symlink_metadata(place).ok();
        if let Some(stream) = stream(place, old.as_ref())? {
            return Ok(Self::Stream(stream));
        }
        let Some(name) = place.file_name() else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let folder = place
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let new = NewFile::beside(folder, &name.to_string_lossy(), readers)?;
        let kept = old.filter(|old| readers == Readers::Usual && old.is_file() && is_ours(old));
        if let Some(old) = kept {
            new.file.set_permissions(old.permissions())?;
        }
        Ok(Self::New(new, place.to_owned()))
    }

    /// Where it is until it is complete.
    #[must_use]
    pub fn unfinished(&self) -> Option<&Path> {
        match self {
            Self::New(new, _) => Some(new.path()),
            Self::Stream(_) => None,
        }
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When it cannot be written. Then what was there before is there still.
    pub fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::New(mut new, place) => {
                new.file.write_all(bytes)?;
                new.finish(&place)
            }
            Self::Stream(mut file) => {
                file.write_all(bytes)?;
                file.flush()
            }
        }
    }
}

/// Writes a file.
///
/// # Errors
/// As [`Output::to`] and [`Output::write`].
pub fn write(place: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    Output::to(place, readers)?.write(bytes)
}

/// Writes a file that does not exist yet, into a folder that no one else knows.
///
/// # Errors
/// When there is one, or it cannot be written.
pub fn create(place: &Path, bytes: &[u8]) -> io::Result<()> {
    new_file(place, Readers::Usual)?.write_all(bytes)
}

/// A new folder beside this one, under a name that no one knows before.
///
/// # Errors
/// When it cannot be created.
pub fn folder_beside(place: &Path) -> io::Result<PathBuf> {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let mut tries = 1;
    loop {
        let path = place.with_file_name(unknown_name(&name));
        match DirBuilder::new().create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < NAMES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// A folder in which work goes on that was begun earlier: it is made, or must be ours and closed to everyone else.
///
/// # Errors
/// When it cannot be made, is a link, or others own it or may write into it.
pub fn own_folder(place: &Path) -> io::Result<()> {
    match vdo_system::create_private_folder(place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::symlink_metadata(place)?;
    let problem = if found.is_symlink() {
        "is a link"
    } else if !found.is_dir() {
        "is not a folder"
    } else if !is_ours(&found) {
        "belongs to another user"
    } else if vdo_system::writable_by_others(&found) {
        "can be written by other users"
    } else {
        return Ok(());
    };
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("it {problem}; remove it, or name another folder"),
    ))
}

/// A file in which writing goes on: made, or the regular file that an earlier run of ours has left.
///
/// # Errors
/// When it cannot be opened, or is anything else.
pub fn resume(place: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = vdo_system::no_link_no_waiting(&mut options).open(place)?;
    let found = file.metadata()?;
    match found.is_file() && is_ours(&found) && !vdo_system::has_other_names(&found) {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it does not belong to this user alone; remove it",
        )),
    }
}

/// Reads a regular file.
///
/// # Errors
/// When it cannot be read or is not a regular file; the kind is `FileTooLarge` when it has more bytes than `limit`.
pub fn read(place: &Path, limit: usize) -> io::Result<Vec<u8>> {
    // A pipe without a writer would be waited for.
    let file = vdo_system::no_waiting(OpenOptions::new().read(true)).open(place)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Does this in a thread of its own, because a file system may keep it waiting for ever, and no longer than `deadline`. A thread that does not
/// end is left behind; it keeps nothing else from going on or from ending.
///
/// # Errors
/// Of the kind `TimedOut` when it takes longer.
pub async fn aside<T: Send + 'static>(deadline: Duration, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    if tokio::runtime::Handle::try_current().is_err() {
        // There is nothing else that could go on meanwhile, and no clock.
        return Ok(work());
    }
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("files".into())
        .spawn(move || drop(done.send(work())))?;
    match tokio::time::timeout(deadline, result).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) => Err(io::Error::other("the file operation ended without a result")),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the file system has not answered within {} s", deadline.as_secs()),
        )),
    }
}

/// What a place leads to, where that is a device or a pipe. Through a link only where the system or we have put it there: another user's would
/// lead what is written to that user.
fn stream(place: &Path, found: Option<&Metadata>) -> io::Result<Option<File>> {
    let Some(found) = found else { return Ok(None) };
    let is_stream = |found: &Metadata| !found.is_file() && !found.is_dir() && !found.is_symlink();
    let (is_one, follows) = match found.is_symlink() {
        true => (fs::metadata(place).is_ok_and(|end| is_stream(&end)), true),
        false => (is_stream(found), false),
    };
    if !is_one {
        return Ok(None);
    }
    if !is_ours_or_the_systems(found) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to another user and is a pipe, a device or a link",
        ));
    }
    let mut options = OpenOptions::new();
    options.write(true);
    if !follows {
        vdo_system::no_link(&mut options);
    }
    options.open(place).map(Some)
}

fn new_file(path: &Path, readers: Readers) -> io::Result<File> {
    match readers {
        Readers::Owner => vdo_system::create_private(path),
        Readers::Usual => OpenOptions::new().write(true).create_new(true).open(path),
    }
}

fn unknown_name(name: &str) -> String {
    format!(".{name}.{:016x}{UNFINISHED}", RandomState::new().hash_one(std::process::id()))
}

#[cfg(test)]
mod tests;
