// SPDX-License-Identifier: Apache-2.0
//! Opens and unpacks a chart package (`.tgz`) in memory, with limits on size, files and paths; `package.rs` makes packages.
//! The bytes are hostile until proven otherwise.

use super::opened_chart::{Chart, ChartError, Files};
use flate2::bufread::GzDecoder;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use vdo_api::types::Remedy;

/// Bytes of a package, packed.
pub const PACKED_LIMIT: usize = 4 << 20;
/// Bytes of a package, unpacked.
pub const UNPACKED_LIMIT: usize = 16 << 20;
/// Members of a package, files and folders.
pub const FILES_LIMIT: usize = 512;
/// Bytes of a member's path.
pub const PATH_LIMIT: usize = 200;
/// Folders of a member's path.
pub const DEPTH_LIMIT: usize = 8;
/// Bytes of one file.
pub const FILE_LIMIT: usize = 1 << 20;

/// The package cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is larger than the limits.
    #[error("the package is too large: {what} is limited to {}", amount(*limit))]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It is not a gzipped tar archive.
    #[error("the package is not a gzipped tar archive")]
    Unreadable(#[source] std::io::Error),
    /// It is a gzipped tar archive that is damaged, or has been added to.
    #[error("the package is damaged: {0}")]
    Damaged(&'static str),
    /// A member could do harm.
    #[error("the package contains {path:?}, which {reason}; only regular files below one folder are accepted")]
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
    #[error("the package is not a chart that VDO can read")]
    Chart(#[from] ChartError),
}

impl Remedy for ArchiveError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::TooLarge { .. } => Some("Package fewer or smaller files.".into()),
            Self::Unreadable(_) | Self::Empty => Some("Give a package that was written by this command: vdoctl chart package.".into()),
            Self::Damaged(_) => Some("Fetch or build the package again.".into()),
            Self::Refused { .. } => Some("Build the package again with vdoctl chart package.".into()),
            Self::Chart(error) => error.remedy(),
        }
    }
}

/// A limit for people: bytes in MiB, small numbers as they are.
fn amount(limit: usize) -> String {
    match limit >> 20 {
        0 => limit.to_string(),
        mebibytes => format!("{mebibytes} MiB"),
    }
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
    let unpacked = gunzip(bytes)?;
    let mut members = Members::default();
    let mut rest = unpacked.as_slice();
    loop {
        let (block, after) = rest
            .split_first_chunk::<BLOCK>()
            .ok_or(ArchiveError::Damaged("it has no end-of-archive mark"))?;
        rest = after;
        if block.iter().all(|byte| *byte == 0) {
            break;
        }
        let header = tar::Header::from_byte_slice(block);
        let sum = block
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) });
        if header.cksum().ok() != Some(sum.sum()) {
            return Err(ArchiveError::Damaged("the checksum of a member's header is wrong"));
        }
        let size = header
            .entry_size()
            .map_err(|_| ArchiveError::Damaged("a member has no readable size"))?;
        if size > FILE_LIMIT as u64 {
            return too_large("a file", FILE_LIMIT);
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let (content, after) = rest.split_at_checked(size).ok_or(ArchiveError::Damaged("a member is cut off"))?;
        rest = after
            .get(size.next_multiple_of(BLOCK) - size..)
            .ok_or(ArchiveError::Damaged("a member is cut off"))?;
        members.add(header, content)?;
    }
    if rest.iter().any(|byte| *byte != 0) {
        return Err(ArchiveError::Damaged("it has data after its end-of-archive mark"));
    }
    if members.files.is_empty() {
        return Err(ArchiveError::Empty);
    }
    Ok(members.files)
}

const BLOCK: usize = 512;

/// The one member of a gzip file, and nothing behind it.
fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let mut unpacked = Vec::new();
    let mut decoder = GzDecoder::new(bytes);
    (&mut decoder)
        .take(UNPACKED_LIMIT as u64 + 1)
        .read_to_end(&mut unpacked)
        .map_err(ArchiveError::Unreadable)?;
    if unpacked.len() > UNPACKED_LIMIT {
        return too_large("its unpacked content", UNPACKED_LIMIT);
    }
    if !decoder.into_inner().is_empty() {
        return Err(ArchiveError::Damaged("it has data after the end of the gzip data"));
    }
    Ok(unpacked)
}

/// What was read so far.
#[derive(Default)]
struct Members {
    files: Files,
    top: Option<String>,
    count: usize,
    /// Every path and every folder above it, in lower case, and whether it is a folder.
    names: BTreeMap<String, bool>,
}

impl Members {
    /// Headers are taken literally: an extension that gives the next member another name or size is itself refused.
    fn add(&mut self, header: &tar::Header, content: &[u8]) -> Result<(), ArchiveError> {
        let raw = header.path_bytes();
        let refused = |reason| ArchiveError::Refused {
            path: String::from_utf8_lossy(&raw).into_owned(),
            reason,
        };
        self.count += 1;
        if self.count > FILES_LIMIT {
            return too_large("the number of members", FILES_LIMIT);
        }
        let kind = header.entry_type();
        let is_folder = match kind {
            tar::EntryType::Regular => false,
            tar::EntryType::Directory if content.is_empty() => true, // Helm's own packages have none, other tools' do
            tar::EntryType::Directory => return Err(refused("is a folder with content")),
            tar::EntryType::Symlink | tar::EntryType::Link => return Err(refused("is a link")),
            tar::EntryType::Char | tar::EntryType::Block | tar::EntryType::Fifo => return Err(refused("is a device or a pipe")),
            tar::EntryType::GNUSparse => return Err(refused("is a sparse file")),
            tar::EntryType::XHeader | tar::EntryType::XGlobalHeader | tar::EntryType::GNULongName | tar::EntryType::GNULongLink => {
                return Err(refused("overrides the header of another member"));
            }
            _ => return Err(refused("is not a regular file")),
        };
        let field = &header.as_bytes()[..100];
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        if field[end..].iter().any(|byte| *byte != 0) {
            return Err(refused("has other data after its name in the tar header"));
        }
        let path = std::str::from_utf8(&raw).map_err(|_| refused("is not UTF-8"))?;
        let path = if is_folder { path.strip_suffix('/').unwrap_or(path) } else { path };
        safe(path).map_err(refused)?;
        let (folder, below) = match path.split_once('/') {
            Some((folder, below)) => (folder, Some(below)),
            None if is_folder => (path, None),
            None => return Err(refused("is not in a folder")),
        };
        if self.top.get_or_insert_with(|| folder.to_owned()) != folder {
            return Err(refused("is not in the same folder as the first file of the package"));
        }
        let Some(below) = below else { return Ok(()) };
        let lower = below.to_ascii_lowercase();
        for (at, _) in lower.match_indices('/') {
            if self.names.insert(lower[..at].to_owned(), true) == Some(false) {
                return Err(refused("lies below a file"));
            }
        }
        match self.names.insert(lower, is_folder) {
            None => {}
            Some(true) if is_folder => {}
            Some(before) if before != is_folder => return Err(refused("is both a file and a folder")),
            Some(_) if self.files.contains_key(below) => return Err(refused("appears twice")),
            Some(_) => return Err(refused("appears twice, in capital and small letters")),
        }
        if !is_folder {
            self.files.insert(below.to_owned(), content.to_vec());
        }
        Ok(())
    }
}

/// Says why a path is refused. Names beyond ASCII are: some file systems take different ones for the same.
fn safe(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("has no name");
    }
    if path.starts_with('/') {
        return Err("is absolute");
    }
    if path.contains(['\\', ':']) {
        return Err("has a backslash or a colon in its name");
    }
    if path.chars().any(char::is_control) {
        return Err("has control characters in its name");
    }
    if !path.is_ascii() {
        return Err("has characters in its name that are not ASCII");
    }
    if path.contains(['%', '*', '?', '"', '<', '>', '|', '~']) {
        return Err("has special characters in its name (one of % * ? \" < > | ~)");
    }
    if path.split('/').any(|part| part == "..") {
        return Err("leads out of its folder");
    }
    if path.split('/').any(|part| part.is_empty() || part == ".") {
        return Err("has an empty path segment");
    }
    if path.split('/').any(|part| part.ends_with(['.', ' ']) || part.starts_with(' ')) {
        return Err("has a name that starts or ends with a blank, or ends with a dot");
    }
    if path.len() > PATH_LIMIT {
        return Err("has a path that is too long");
    }
    if path.split('/').count() > DEPTH_LIMIT {
        return Err("is nested too deep");
    }
    Ok(())
}

fn too_large<T>(what: &'static str, limit: usize) -> Result<T, ArchiveError> {
    Err(ArchiveError::TooLarge { what, limit })
}
