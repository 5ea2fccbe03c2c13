// SPDX-License-Identifier: Apache-2.0
//! Reads and writes the folder of `--gitops`: refuses a folder with foreign or changed files, and writes only files that differ.
//!
//! A list with the digest of each file is written with the files. If a file is not in the list, or was changed since, another author has
//! written it, and the whole folder is refused.

use super::super::super::{CliError, Exit, atomic_files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use vdo_api::types::{Digest, shell_word};

/// The list, as `sha256sum` reads it.
const LIST: &str = ".vdoctl.sha256";
/// The rules of SOPS, which a user puts there.
pub(super) const RULES: &str = ".sops.yaml";
/// How many files are looked at: a folder of vdoctl has fewer than 20.
const MOST: usize = 1000;

/// Behind the name of a file of ours that is not as it was written.
const CHANGED: &str = " (changed)";

type Listed = BTreeSet<(String, String)>;
type Present = BTreeMap<String, String>;

/// A folder that is empty, is not there, or has an earlier output and nothing else.
pub(super) struct Folder {
    path: PathBuf,
    /// Its files with the hex digits of their digests.
    present: Present,
}

impl Folder {
    /// # Errors
    /// When it has other content, or cannot be read.
    pub(super) fn look(path: &Path) -> Result<Self, CliError> {
        let unreadable = |error: io::Error| {
            let what = format!("{} cannot be read: {error}", path.display());
            CliError::new(Exit::Usage, what, "Name a folder; a folder that does not exist is created.")
        };
        let mut present = Present::new();
        walk(path, "", &mut present).map_err(unreadable)?;
        let list = match fs::read_to_string(path.join(LIST)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(error)),
            list => list.unwrap_or_default(),
        };
        let others = others(&present, &listed(&list));
        if others.is_empty() {
            return Ok(Self {
                path: path.to_owned(),
                present,
            });
        }
        Err(CliError::new(
            Exit::Refused,
            format!(
                "{} has files that were changed or that vdoctl did not write: {}; nothing was written",
                path.display(),
                others.join(", ")
            ),
            remedy(path, &others),
        ))
    }

    /// Whether it has this file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.present.contains_key(name)
    }

    /// The text of a file of it.
    pub(super) fn text(&self, name: &str) -> Result<String, CliError> {
        let file = self.path.join(name);
        fs::read_to_string(&file).map_err(|error| failed(&file, &error))
    }

    /// Makes these its files; how many were written. Killed at any point, the same command goes on: the list names every file before and after.
    pub(super) fn write(&self, files: &BTreeMap<String, String>) -> Result<usize, CliError> {
        let new: Present = files
            .iter()
            .map(|(name, text)| (name.clone(), Digest::of(text.as_bytes()).hex()))
            .collect();
        let changed: Vec<&String> = new.keys().filter(|name| self.present.get(*name) != new.get(*name)).collect();
        if changed.is_empty() && new.len() == self.present.len() {
            return self.put(LIST, &list(new.iter())).map(|()| 0);
        }
        self.put(LIST, &list(self.present.iter().chain(&new)))?;
        for name in &changed {
            self.put(name, &files[*name])?;
        }
        for name in self.present.keys().filter(|name| !new.contains_key(*name)) {
            let file = self.path.join(name);
            fs::remove_file(&file).map_err(|error| failed(&file, &error))?;
        }
        self.put(LIST, &list(new.iter()))?;
        Ok(changed.len())
    }

    fn put(&self, name: &str, text: &str) -> Result<(), CliError> {
        let file = self.path.join(name);
        if fs::read(&file).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(());
        }
        let parent = file.parent().map_or(Ok(()), fs::create_dir_all);
        parent
            .and_then(|()| atomic_files::write(&file, text.as_bytes()))
            .map_err(|error| failed(&file, &error))
    }
}

fn failed(file: &Path, error: &io::Error) -> CliError {
    CliError::new(
        Exit::Refused,
        format!("{} cannot be written: {error}", file.display()),
        "Free some space, or check that you may write there, and run the command again.",
    )
}

/// Adds the files below a folder that is there. Links and the like have no digest.
fn walk(folder: &Path, above: &str, found: &mut Present) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = format!("{above}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if [LIST, RULES].contains(&name.as_str()) && kind.is_file() || found.len() >= MOST {
            continue;
        }
        if kind.is_dir() {
            let before = found.len();
            walk(&entry.path(), &format!("{name}/"), found)?;
            if found.len() == before && fs::read_dir(entry.path())?.next().is_none() {
                found.insert(format!("{name}/"), String::new());
            }
        } else if kind.is_file() {
            found.insert(name, Digest::of(&fs::read(entry.path())?).hex());
        } else {
            found.insert(name, String::new());
        }
    }
    Ok(())
}

fn listed(text: &str) -> Listed {
    let lines = text.lines().filter_map(|line| line.split_once("  "));
    lines.map(|(digest, name)| (name.to_owned(), digest.to_owned())).collect()
}

fn list<'a>(files: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let lines: BTreeSet<(&String, &String)> = files.collect();
    lines.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect()
}

/// What is not an earlier output, with what is wrong with it.
fn others(present: &Present, listed: &Listed) -> Vec<String> {
    let foreign = |(name, digest): &(&String, &String)| !listed.contains(&((*name).clone(), (*digest).clone()));
    let reported = |(name, _): (&String, &String)| match listed.iter().any(|(known, _)| known == name) {
        true => format!("{name}{CHANGED}"),
        false => name.clone(),
    };
    present.iter().filter(foreign).map(reported).collect()
}

/// A file of another author is not removed by a command of ours.
fn remedy(path: &Path, others: &[String]) -> String {
    let general = "Name a folder that only vdoctl writes. Keep your changes in another folder, as patches of a Kustomization that lists vdoctl's \
                   folder in its resources.";
    let changed = others.iter().find_map(|name| name.strip_suffix(CHANGED));
    let command = changed.map(|name| {
        let file = path.join(name).display().to_string();
        format!(" To replace a changed file, remove the file first: rm {}", shell_word(&file))
    });
    format!("{general}{}", command.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn write(path: &Path, all: &[(&str, &str)]) -> Result<usize, CliError> {
        Folder::look(path)?.write(&files(all))
    }

    fn refused(path: &Path) -> String {
        Folder::look(path).map(|_| ()).expect_err("it is refused").what
    }

    #[test]
    fn folder_has_its_files_and_the_second_time_nothing_is_written() -> Result<(), Box<dyn std::error::Error>> {
        let base = tempfile::tempdir()?;
        let path = base.path().join("new/folder");
        assert_eq!(write(&path, &[("a.yaml", "a"), ("b/c.yaml", "c")])?, 2);
        let before = fs::metadata(path.join(LIST))?.modified()?;
        assert_eq!(write(&path, &[("a.yaml", "a"), ("b/c.yaml", "c")])?, 0);
        assert_eq!(fs::metadata(path.join(LIST))?.modified()?, before, "not even the list");
        fs::write(path.join(RULES), "creation_rules: []")?;
        assert_eq!(write(&path, &[("a.yaml", "other"), ("b/d.yaml", "d")])?, 2);
        assert_eq!(fs::read_to_string(path.join("a.yaml"))?, "other");
        assert!(!path.join("b/c.yaml").exists(), "what is no longer written is removed");
        assert!(path.join(RULES).exists());
        // A file that the user removed is written again.
        fs::remove_file(path.join("a.yaml"))?;
        assert_eq!(write(&path, &[("a.yaml", "other"), ("b/d.yaml", "d")])?, 1);
        Ok(())
    }

    #[test]
    fn folder_with_other_content_is_refused_with_its_name() -> Result<(), Box<dyn std::error::Error>> {
        let base = tempfile::tempdir()?;
        let path = base.path();
        write(path, &[("a.yaml", "a")])?;
        fs::write(path.join("mine.txt"), "mine")?;
        assert!(refused(path).contains("mine.txt"), "a file of another author");
        fs::remove_file(path.join("mine.txt"))?;
        fs::write(path.join("a.yaml"), "edited")?;
        assert!(refused(path).contains("a.yaml (changed)"));
        fs::remove_file(path.join("a.yaml"))?;
        std::os::unix::fs::symlink("/etc/hostname", path.join("a.yaml"))?;
        assert!(refused(path).contains("a.yaml"), "a link is not followed");
        fs::remove_file(path.join("a.yaml"))?;
        fs::create_dir(path.join(".git"))?;
        assert!(refused(path).contains(".git/"));
        fs::remove_dir(path.join(".git"))?;
        fs::write(path.join("a.yaml"), "a")?;
        assert_eq!(write(path, &[("a.yaml", "a")])?, 0);
        Ok(())
    }

    /// Killed after each write, the next run goes on: what is there is always in the list.
    #[test]
    fn folder_that_was_half_written_is_its_own() -> Result<(), Box<dyn std::error::Error>> {
        let base = tempfile::tempdir()?;
        let path = base.path();
        write(path, &[("a.yaml", "a"), ("b.yaml", "b")])?;
        let folder = Folder::look(path)?;
        let new = files(&[("a.yaml", "2"), ("b.yaml", "2")]);
        let digests: Present = new
            .iter()
            .map(|(name, text)| (name.clone(), Digest::of(text.as_bytes()).hex()))
            .collect();
        folder.put(LIST, &list(folder.present.iter().chain(&digests)))?;
        folder.put("a.yaml", "2")?;
        assert_eq!(Folder::look(path)?.write(&new)?, 1);
        Ok(())
    }
}
