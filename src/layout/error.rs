use crate::oci::BlobError;
use crate::types::Remedy;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The layout cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// There is one already.
    #[error("{} holds an OCI image layout already", root.display())]
    Exists {
        /// The folder.
        root: PathBuf,
    },
    /// There is none.
    #[error("{} holds no OCI image layout: its file oci-layout cannot be read", root.display())]
    None {
        /// The folder.
        root: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is of another version.
    #[error("{} does not say version 1.0.0, the only one that is known", path.display())]
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
    #[error("{what} is not understood")]
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
    /// A blob is not the one described.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

impl Remedy for LayoutError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Exists { .. } => Some("Name an empty folder, or remove this one.".into()),
            Self::None { .. } | Self::Version { .. } => Some("Name a folder that holds oci-layout, index.json and blobs.".into()),
            Self::Io { .. } => None,
            Self::Json { .. } | Self::TooLarge { .. } => Some("Build or copy the layout again.".into()),
            Self::Blob(error) => error.remedy(),
        }
    }
}

pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> LayoutError {
    let path = path.to_owned();
    move |source| LayoutError::Io { path, source }
}
