// SPDX-License-Identifier: Apache-2.0
//! Opens and lists the files of an image layout, in a folder or in a tar archive, which is read-only.

use super::LayoutError;
use super::error::io;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Take};
use std::path::{Component, Path, PathBuf};

/// The files of a layout by their paths.
#[derive(Debug)]
pub(super) enum Store {
    Folder(PathBuf),
    Tar {
        path: PathBuf,
        /// Where each file begins, and its size.
        files: BTreeMap<String, (u64, u64)>,
    },
}

impl Store {
    /// Lists what is in an archive.
    pub(super) fn tar(path: &Path) -> Result<Self, LayoutError> {
        let file = File::open(path).map_err(io(path))?;
        let length = file.metadata().map_err(io(path))?.len();
        let damaged = |problem: String| LayoutError::Archive {
            path: path.to_owned(),
            problem,
        };
        let mut files = BTreeMap::new();
        let mut archive = tar::Archive::new(file);
        let entries = archive.entries_with_seek().map_err(|error| damaged(error.to_string()))?;
        for entry in entries {
            let entry = entry.map_err(|error| damaged(error.to_string()))?;
            let name = entry.path().map_err(|error| damaged(error.to_string()))?;
            let parts = name.components().filter(|part| *part != Component::CurDir);
            let parts: Vec<_> = parts
                .map(|part| match part {
                    Component::Normal(part) => part.to_str(),
                    _ => None,
                })
                .collect();
            let Some(parts) = parts.into_iter().collect::<Option<Vec<_>>>() else {
                return Err(damaged(format!(
                    "it contains the path {}, which is outside of the archive",
                    name.display()
                )));
            };
            let name = parts.join("/");
            match entry.header().entry_type() {
                tar::EntryType::Directory | tar::EntryType::XGlobalHeader => continue,
                tar::EntryType::Regular | tar::EntryType::Continuous => {}
                other => return Err(damaged(format!("{name} is neither a file nor a folder but {other:?}"))),
            }
            let (start, size) = (entry.raw_file_position(), entry.size());
            if start.saturating_add(size) > length {
                return Err(damaged(format!("it ends in the middle of {name}")));
            }
            if files.insert(name.clone(), (start, size)).is_some() {
                return Err(damaged(format!("it contains {name} twice")));
            }
        }
        Ok(Self::Tar {
            path: path.to_owned(),
            files,
        })
    }

    /// What people call it.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Folder(path) | Self::Tar { path, .. } => path,
        }
    }

    /// The folder, to be written.
    pub(super) fn folder(&self) -> Result<&Path, LayoutError> {
        match self {
            Self::Folder(path) => Ok(path),
            Self::Tar { path, .. } => Err(LayoutError::Archive {
                path: path.clone(),
                problem: "an archive is not changed in place".into(),
            }),
        }
    }

    /// What people call one of its files.
    pub(super) fn name(&self, file: &str) -> PathBuf {
        self.path().join(file)
    }

    /// A file, from its beginning.
    pub(super) fn open(&self, file: &str) -> Result<Take<File>, LayoutError> {
        let name = self.name(file);
        match self {
            Self::Folder(_) => Ok(File::open(&name).map_err(io(&name))?.take(u64::MAX)),
            Self::Tar { path, files } => {
                let missing = || io(&name)(std::io::ErrorKind::NotFound.into());
                let (start, size) = *files.get(file).ok_or_else(missing)?;
                let mut open = File::open(path).map_err(io(path))?;
                open.seek(SeekFrom::Start(start)).map_err(io(path))?;
                Ok(open.take(size))
            }
        }
    }

    /// How many bytes a file has, if it is there.
    pub(super) fn size(&self, file: &str) -> Option<u64> {
        match self {
            Self::Folder(path) => fs::metadata(path.join(file))
                .ok()
                .filter(fs::Metadata::is_file)
                .map(|found| found.len()),
            Self::Tar { files, .. } => files.get(file).map(|(_, size)| *size),
        }
    }

    /// The hex digits of all blobs.
    pub(super) fn blobs(&self) -> Result<Vec<String>, LayoutError> {
        match self {
            Self::Folder(path) => {
                let folder = path.join(super::BLOBS);
                let entries = fs::read_dir(&folder).map_err(io(&folder))?;
                let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
                names.collect::<std::io::Result<_>>().map_err(io(&folder))
            }
            Self::Tar { files, .. } => {
                let below = |name: &String| name.strip_prefix(super::BLOBS)?.strip_prefix('/').map(str::to_owned);
                Ok(files.keys().filter_map(below).collect())
            }
        }
    }
}
