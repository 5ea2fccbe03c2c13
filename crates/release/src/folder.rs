// SPDX-License-Identifier: Apache-2.0
//! Lists the files of a folder and its subfolders by their relative paths, with a filter, and reads their contents.

use crate::output;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of a folder and of those in it, by their paths there. Of each name, and whether it is a folder's, `takes` says whether it belongs
/// to them; a folder that does not is not opened.
///
/// # Errors
/// When a folder cannot be read, or a name is not UTF-8.
pub fn files(folder: &Path, takes: impl Fn(&str, bool) -> bool) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((folder, below)) = open.pop() {
        let cannot = || format!("cannot read the folder {}", folder.display());
        for entry in std::fs::read_dir(&folder).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                bail!("{} is not a name for a release", path.display());
            };
            let (is_folder, place) = (path.is_dir(), format!("{below}{name}"));
            match (takes(name, is_folder), is_folder) {
                (false, _) => {}
                (true, true) => open.push((path.clone(), format!("{place}/"))),
                (true, false) => drop(found.insert(place, path.clone())),
            }
        }
    }
    Ok(found)
}

/// The same with what is in the files.
///
/// # Errors
/// When a folder or a file cannot be read, or a name is not UTF-8.
pub fn contents(folder: &Path, takes: impl Fn(&str, bool) -> bool) -> Result<BTreeMap<String, Vec<u8>>> {
    let all = files(folder, takes)?.into_iter();
    all.map(|(place, path)| Ok((place, output::read(&path)?))).collect()
}
