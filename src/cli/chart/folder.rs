//! The folder of a chart.

use super::super::{CliError, Exit};
use crate::chart::{Source, archive};
use std::io::{Error, ErrorKind};
use std::path::Path;

/// Every file of it. Hidden files are left out; a link is refused, because it may lead to what is not the chart's.
pub(super) fn read(root: &Path, remedy: &str) -> Result<Source, CliError> {
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
            return refused("lies too deep for a package");
        } else if !metadata.is_file() {
            return refused("is not a regular file");
        } else if metadata.len() > archive::FILE_LIMIT as u64 {
            return refused("is too large for a package");
        } else if source.files.len() >= archive::FILES_LIMIT {
            return refused("is one file too many for a package");
        } else {
            source.files.insert(path, std::fs::read(entry.path())?);
        }
    }
    Ok(())
}
