// SPDX-License-Identifier: Apache-2.0
//! Why an image layout cannot be read or written, with the remedy.

use crate::oci::BlobError;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use vdo_api::types::Remedy;

/// The layout cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// There is one already.
    #[error("{} already contains an OCI image layout", root.display())]
    Exists {
        /// The folder.
        root: PathBuf,
    },
    /// There is none.
    #[error("{} contains no OCI image layout: its file oci-layout cannot be read", root.display())]
    None {
        /// The folder.
        root: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is of another version.
    #[error("{} does not have version 1.0.0, the only supported version", path.display())]
    Version {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    Io {
        /// The file or its folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A document is not what it should be.
    #[error("{what} cannot be parsed")]
    Json {
        /// Its file, or its type and digest.
        what: String,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A document is larger than any of its kind.
    #[error("{what} is larger than {limit} bytes, so it is not read")]
    TooLarge {
        /// Its type and digest.
        what: String,
        /// In bytes.
        limit: u64,
    },
    /// An archive cannot be used.
    #[error("{} cannot be used: {problem}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Another program writes into it.
    #[error("another vdoctl process is writing into {}", root.display())]
    Busy {
        /// The folder.
        root: PathBuf,
    },
    /// A blob is not the one described.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

impl Remedy for LayoutError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Exists { .. } => Some("Name an empty folder, or remove this folder.".into()),
            Self::None { .. } | Self::Version { .. } => Some("Name a folder that contains oci-layout, index.json and blobs.".into()),
            Self::Io { source, .. } => Some(match source.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    "Free some space, and run the command again; complete files are kept.".into()
                }
                std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                    "Check that you may read and write there, or name another folder.".into()
                }
                _ => "Copy or pull the missing files again.".into(),
            }),
            Self::Json { .. } | Self::TooLarge { .. } | Self::Archive { .. } => Some("Build or copy the layout again.".into()),
            Self::Busy { .. } => Some("Run the command again when the other vdoctl has finished.".into()),
            Self::Blob(error) => error.remedy(),
        }
    }
}

pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> LayoutError {
    let path = path.to_owned();
    move |source| LayoutError::Io { path, source }
}
