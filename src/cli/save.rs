//! Files that a verb writes: whole or not at all. What is written stands beside the file until it is complete, and then takes
//! its name.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file that is not complete yet.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Writes a file. Whatever stood there stays as it is until the new one is complete.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The file that a link leads to, or the path itself where there is nothing yet.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&place).ok();
    // A device or a pipe has no content to be lost, and must not be replaced by a file; a link to nowhere is followed.
    let replaceable = old.as_ref().map_or_else(|| !place.is_symlink(), fs::Metadata::is_file);
    if !replaceable {
        let mut file = File::create(&place)?;
        file.write_all(bytes)?;
        return file.flush();
    }
    let Some(name) = place.file_name() else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let beside = place.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    unfinished(Some(beside.clone()));
    let written = (|| {
        let mut file = File::create_new(&beside)?;
        file.write_all(bytes)?;
        if let Some(old) = old {
            file.set_permissions(old.permissions())?;
        }
        // Some file systems notice only here that they are full.
        file.sync_all()?;
        fs::rename(&beside, &place)
    })();
    if written.is_err() {
        give_up();
    }
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
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn save_over_a_link_changes_the_file_behind_it_and_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is ours");
        symlink("file", &link).expect("a link");
        write(&link, b"new").expect("written");
        assert_eq!(fs::read(&file).expect("it is there"), b"new");
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o640);
        symlink("later", folder.path().join("ahead")).expect("a link");
        write(&folder.path().join("ahead"), b"new").expect("written");
        assert_eq!(names(folder.path()), ["ahead", "file", "later", "link"]);
        assert!(link.is_symlink());
    }

    #[test]
    fn save_into_a_pipe_writes_into_it_and_a_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let reader = pipe.clone();
        let read = std::thread::spawn(move || fs::read(reader));
        write(&pipe, b"new").expect("written");
        assert_eq!(read.join().expect("it ends").expect("read"), b"new");
        for place in [folder.path(), Path::new("/"), &folder.path().join("no/such")] {
            assert!(write(place, b"new").is_err(), "{}", place.display());
        }
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    #[test]
    fn save_given_up_leaves_nothing_beside_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let beside = folder.path().join(".file.1");
        fs::write(&beside, "half").expect("written");
        unfinished(Some(beside));
        give_up();
        give_up();
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
