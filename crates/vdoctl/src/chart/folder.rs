// SPDX-License-Identifier: Apache-2.0
//! Reads and writes the source folder of a chart with all its files, and finds the source folders of a driver.

use super::super::{CliError, Exit};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use vdo_api::types::DriverVersion;
use vdo_core::chart::{Source, archive};

/// Every file of it. Hidden files are left out; a link is refused, because it may lead to what is not the chart's.
pub(in super::super) fn read(root: &Path, remedy: &str) -> Result<Source, CliError> {
    let mut source = Source::default();
    collect(root, "", &mut source).map_err(|error| {
        let exit = if error.kind() == ErrorKind::NotFound {
            Exit::NotFound
        } else {
            Exit::Refused
        };
        let what = match error.kind() {
            ErrorKind::NotFound => format!("the chart source {} does not exist", root.display()),
            ErrorKind::InvalidInput => format!("the chart source {} is not accepted: {error}", root.display()),
            _ => format!("the chart source {} cannot be read: {error}", root.display()),
        };
        CliError::new(exit, what, remedy)
    })?;
    Ok(source)
}

/// Where the releases of a driver may be: the folder with its name, and those with its name and a version, newest first.
pub(super) fn of_driver(charts: &Path, driver: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(charts).into_iter().flatten().flatten();
    let versioned = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let version: DriverVersion = name.strip_prefix(driver)?.strip_prefix('-')?.parse().ok()?;
        Some((version, entry.path()))
    });
    let mut versioned: Vec<(DriverVersion, PathBuf)> = versioned.collect();
    versioned.sort_by(|(left, _), (right, _)| right.cmp(left));
    std::iter::once(charts.join(driver))
        .chain(versioned.into_iter().map(|(_, path)| path))
        .collect()
}

/// Writes a folder that is not there yet, whole or not at all.
pub(in super::super) fn write(root: &Path, source: &Source) -> std::io::Result<()> {
    root.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let beside = vdo_files::folder_beside(root)?;
    let written = (|| {
        for (path, content) in &source.files {
            let path = beside.join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(&beside))?;
            vdo_files::create(&path, content)?;
        }
        std::fs::rename(&beside, root)
    })();
    if written.is_err() {
        let _ = std::fs::remove_dir_all(&beside);
    }
    written
}

fn collect(folder: &Path, below: &str, source: &mut Source) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{below}{name}");
        let metadata = entry.metadata()?; // of the entry itself, not of what a link leads to
        let refused = |why: &str| Err(Error::new(ErrorKind::InvalidInput, format!("{path} {why}")));
        if metadata.is_symlink() {
            return refused("is a link; copy the file into the chart");
        } else if metadata.is_dir() && path.split('/').count() < archive::DEPTH_LIMIT {
            collect(&entry.path(), &format!("{path}/"), source)?;
        } else if metadata.is_dir() {
            return refused("is in too many nested folders for a package");
        } else if !metadata.is_file() {
            return refused("is not a regular file");
        } else if metadata.len() > archive::FILE_LIMIT as u64 {
            return refused("is too large for a package");
        } else if source.files.len() >= archive::FILES_LIMIT {
            return refused(&format!(
                "is one file too many; a package may have at most {} files",
                archive::FILES_LIMIT
            ));
        } else {
            source.files.insert(path, std::fs::read(entry.path())?);
        }
    }
    Ok(())
}
