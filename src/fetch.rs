//! Where the matrix index and charts come from. Bytes leave here only after their digest was checked.
//!
//! [`Store`] is the one door; each kind of place has a file of its own. A [`Library`] keeps what was read, by its digest.

mod directory;
pub mod embedded;
mod keys;
mod repository;

pub use directory::index_file;
pub use keys::KeyStore;
pub use repository::{Edition, Library, LibraryError, Problem};

use crate::types::{ChartRef, Digest, Remedy};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// The bytes could not be had, or are not the ones that were asked for.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No location of the chart leads to a chart in this store.
    #[error("none of {locations} is {store}")]
    NotFound {
        /// Where was looked.
        store: String,
        /// The locations of the chart.
        locations: String,
    },
    /// The bytes are not those the matrix promises.
    #[error("{what} has the digest {found}, the matrix says {expected}; it was changed after it was published, so it is not used")]
    DigestMismatch {
        /// The chart and where it came from.
        what: String,
        /// By the matrix.
        expected: Digest,
        /// Of the bytes.
        found: Digest,
    },
    /// The matrix index cannot be had.
    #[error("the matrix index cannot be had; the one in use stays, and without one nothing is chosen")]
    Index(#[source] Box<FetchError>),
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than anything of its kind.
    #[error("{} is larger than {limit} bytes, so it is not read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// The chart in the binary cannot be packaged.
    #[error("the embedded chart {name} cannot be packaged; this build of VDO is broken")]
    Package {
        /// The package.
        name: String,
        /// Why.
        #[source]
        source: crate::chart::PackageError,
    },
}

impl Remedy for FetchError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::NotFound { .. } => Some("Put the chart beside the matrix, or correct its location in the matrix.".into()),
            Self::DigestMismatch { .. } => Some("Restore the published chart, or correct its digest in the matrix.".into()),
            Self::Index(source) => source.remedy(),
            Self::Read { .. } => Some("Check that the file exists and may be read.".into()),
            Self::TooLarge { .. } => Some("Check that it is the right file.".into()),
            Self::Package { .. } => None,
        }
    }
}

/// A place that holds a matrix index and charts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// The binary itself.
    Embedded,
    /// An index file, or a folder with `index.yaml`; the charts are beside it, at the relative locations that the index names. A
    /// chart that is not there may come out of the binary: its digest says that it is the same.
    Local(PathBuf),
}

impl fmt::Display for Store {
    /// `embedded`, or the path: the word that status shows as the source of the matrix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
            Self::Local(path) => path.display().fmt(f),
        }
    }
}

impl Store {
    /// The bytes of the matrix index. Nothing vouches for them yet: signature and version are the caller's to check.
    ///
    /// # Errors
    /// When they cannot be read.
    #[expect(
        clippy::unused_async,
        reason = "stores that speak to a network need it, and callers should not care which one they have"
    )]
    pub async fn index(&self) -> Result<Vec<u8>, FetchError> {
        match self {
            Self::Embedded => Ok(embedded::index().to_vec()),
            Self::Local(path) => directory::index(path),
        }
    }

    /// The signature of the index, if there is one. There is none of what is in the binary, which is trusted as the program itself is.
    ///
    /// # Errors
    /// When it cannot be read.
    #[expect(
        clippy::unused_async,
        reason = "stores that speak to a network need it, and callers should not care which one they have"
    )]
    pub async fn signature(&self) -> Result<Option<Vec<u8>>, FetchError> {
        match self {
            Self::Embedded => Ok(None),
            Self::Local(path) => directory::signature(path),
        }
    }

    /// The bytes of a chart package, with the digest the reference asks for.
    ///
    /// # Errors
    /// When the chart is not there or its bytes are others than promised.
    #[expect(
        clippy::unused_async,
        reason = "stores that speak to a network need it, and callers should not care which one they have"
    )]
    pub async fn chart(&self, chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
        match self {
            Self::Embedded => embedded::chart(chart),
            Self::Local(path) => directory::chart(path, chart),
        }
    }
}

/// Lets only the promised bytes pass.
fn verified(what: impl FnOnce() -> String, bytes: Vec<u8>, expected: &Digest) -> Result<Vec<u8>, FetchError> {
    let found = Digest::of(&bytes);
    if found == *expected {
        return Ok(bytes);
    }
    Err(FetchError::DigestMismatch {
        what: what(),
        expected: expected.clone(),
        found,
    })
}
