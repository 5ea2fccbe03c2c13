//! Opening a package. The bytes are hostile until proven otherwise.

use super::model::{Chart, ChartError, Files};
use flate2::read::GzDecoder;
use std::io::Read;

/// Bytes of a package, packed.
pub const PACKED_LIMIT: usize = 4 << 20;
/// Bytes of a package, unpacked.
pub const UNPACKED_LIMIT: usize = 16 << 20;
/// Files in a package.
pub const FILES_LIMIT: usize = 512;
/// Bytes of one file.
pub const FILE_LIMIT: usize = 1 << 20;

/// The package cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is larger than the limits.
    #[error("the package is too large: {what} is limited to {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It is not a gzipped tar archive.
    #[error("the package is not a gzipped tar archive")]
    Unreadable(#[source] std::io::Error),
    /// A member could do harm.
    #[error("the package holds {path:?}, which {reason}; only regular files below one folder are accepted")]
    Refused {
        /// The path as the archive has it.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// There is nothing in it.
    #[error("the package is empty")]
    Empty,
    /// The files do not make a chart.
    #[error("the package is not a chart of this project")]
    Chart(#[from] ChartError),
}

/// Opens a package: unpacks it in memory, within limits, and reads the chart in it.
///
/// # Errors
/// When the archive is broken, too large, holds anything but regular files below one folder, or its files are not a chart.
pub fn open(bytes: &[u8]) -> Result<Chart, ArchiveError> {
    Ok(Chart::from_files(&unpack(bytes)?)?)
}

/// The files of a package by their path below its one top folder.
///
/// # Errors
/// As [`open`], except that the files need not be a chart.
pub fn unpack(bytes: &[u8]) -> Result<Files, ArchiveError> {
    if bytes.len() > PACKED_LIMIT {
        return too_large("the package", PACKED_LIMIT);
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes)
        .take(UNPACKED_LIMIT as u64 + 1)
        .read_to_end(&mut unpacked)
        .map_err(ArchiveError::Unreadable)?;
    if unpacked.len() > UNPACKED_LIMIT {
        return too_large("its unpacked content", UNPACKED_LIMIT);
    }
    let mut files = Files::new();
    let mut top: Option<String> = None;
    for entry in tar::Archive::new(unpacked.as_slice()).entries().map_err(ArchiveError::Unreadable)? {
        let mut entry = entry.map_err(ArchiveError::Unreadable)?;
        let raw = entry.path_bytes().into_owned();
        let refused = |reason| ArchiveError::Refused {
            path: String::from_utf8_lossy(&raw).into_owned(),
            reason,
        };
        match entry.header().entry_type() {
            tar::EntryType::Regular => {}
            tar::EntryType::Directory => continue, // carries nothing; Helm's own packages have none
            tar::EntryType::XGlobalHeader => continue,
            _ => return Err(refused("is not a regular file")),
        }
        let path = std::str::from_utf8(&raw).map_err(|_| refused("is not UTF-8"))?;
        let (folder, path) = safe(path).map_err(refused)?;
        if top.get_or_insert_with(|| folder.to_owned()) != folder {
            return Err(refused("lies outside the first member's folder"));
        }
        if files.len() >= FILES_LIMIT {
            return too_large("the number of files", FILES_LIMIT);
        }
        if entry.size() > FILE_LIMIT as u64 {
            return too_large("a file", FILE_LIMIT);
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(ArchiveError::Unreadable)?;
        if files.insert(path.to_owned(), content).is_some() {
            return Err(refused("appears twice"));
        }
    }
    if files.is_empty() { Err(ArchiveError::Empty) } else { Ok(files) }
}

/// Splits a member's path into its top folder and the rest, or says why it is refused.
fn safe(path: &str) -> Result<(&str, &str), &'static str> {
    if path.starts_with('/') {
        return Err("is absolute");
    }
    if path.contains('\\') || path.contains(':') {
        return Err("is written for another system");
    }
    if path.chars().any(char::is_control) {
        return Err("has control characters in its name");
    }
    if path.split('/').any(|part| part == "..") {
        return Err("leaves its folder");
    }
    if path.split('/').any(|part| part.is_empty() || part == ".") {
        return Err("has an empty path segment");
    }
    path.split_once('/').ok_or("has no folder")
}

fn too_large<T>(what: &'static str, limit: usize) -> Result<T, ArchiveError> {
    Err(ArchiveError::TooLarge { what, limit })
}
