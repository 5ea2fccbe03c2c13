// SPDX-License-Identifier: Apache-2.0
//! Helpers of the commands: print a line, read and write files, replace an output folder as a whole, parse `PLATFORM=FILE` arguments.

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use vdo_files::Readers;
use vdo_oci::oci::Platform;

/// Prints a line.
pub fn line(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot write to standard output")
}

/// A file's bytes.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| vdo_files::write(path, bytes, Readers::Usual))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// An argument such as `linux/amd64=FILE`.
pub fn by_platform(text: &str) -> Result<(Platform, PathBuf)> {
    let (platform, file) = text.split_once('=').ok_or_else(|| anyhow!("write linux/amd64=FILE"))?;
    Ok((platform.parse()?, PathBuf::from(file)))
}

/// An argument such as `/lib/libc.so.6=FILE`; the path is given back without its first slash.
pub fn by_path(text: &str) -> Result<(String, PathBuf)> {
    let parts = text.split_once('=').and_then(|(path, file)| Some((path.strip_prefix('/')?, file)));
    let (path, file) = parts.ok_or_else(|| anyhow!("write /PATH/IN/THE/IMAGE=FILE"))?;
    Ok((path.to_owned(), PathBuf::from(file)))
}

/// Seconds since 1970 as a time.
pub fn rfc3339(seconds: u64) -> Result<String> {
    let seconds = i64::try_from(seconds).context("the time stamp is too large")?;
    Ok(jiff::Timestamp::from_second(seconds)
        .context("the time stamp is too large")?
        .to_string())
}

/// A size in bytes for people: MB with one digit, as registries show it.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Replaces the folder `place` by what `fill` writes, when it succeeds. A folder without the file `mark` is not ours to replace.
pub fn replace(place: &Path, mark: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let strange = || -> std::io::Result<bool> { Ok(!place.join(mark).exists() && fs::read_dir(place)?.next().is_some()) };
    if place.exists() && strange().with_context(|| format!("cannot read the folder {}", place.display()))? {
        bail!(
            "{} contains other files (the file {mark} is missing), so the folder is not replaced; name another folder, or empty this \
             folder",
            place.display()
        );
    }
    let parent = place
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    // Beside its place, so that both are on one file system; removed when something fails.
    let beside = tempfile::Builder::new().prefix(".release-").tempdir_in(parent);
    let beside = beside.with_context(|| format!("cannot create a folder in {}", parent.display()))?;
    let (new, old) = (beside.path().join("new"), beside.path().join("old"));
    fs::create_dir(&new).with_context(|| format!("cannot create {}", new.display()))?;
    fill(&new)?;
    let swap = || -> std::io::Result<()> {
        if place.exists() {
            fs::rename(place, &old)?;
        }
        fs::rename(&new, place)
    };
    swap().with_context(|| format!("cannot replace {}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_shown_with_one_digit() {
        let shown = [0, 999, 1000, 1_049, 999_999, 1_000_000, 12_345_678].map(size);
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "1.0 kB", "999.9 kB", "1.0 MB", "12.3 MB"]);
    }

    #[test]
    fn replace_folder_of_other_files_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("out");
        fs::create_dir(&place).expect("a folder");
        fs::write(place.join("letter"), "dear").expect("a file");
        let write = |name: &'static str| move |new: &Path| fs::write(new.join(name), "").map_err(Into::into);
        let error = replace(&place, "mark", write("mark")).expect_err("a folder that is not ours");
        assert!(error.to_string().contains("contains other files"), "{error}");
        assert!(place.join("letter").exists());
        fs::remove_file(place.join("letter")).expect("a file");
        replace(&place, "mark", write("mark")).expect("an empty folder");
        replace(&place, "mark", |_| bail!("no")).expect_err("its own error");
        assert!(place.join("mark").exists());
        replace(&place, "mark", write("other")).expect("our folder");
        assert!(place.join("other").exists() && !place.join("mark").exists());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
