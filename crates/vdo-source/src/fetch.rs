// SPDX-License-Identifier: Apache-2.0
//! Reads the matrix index and charts from a source; `FetchError` says why a read failed. Every chart is checked against its digest.
//!
//! [`MatrixSource`] has one file for each kind of source (embedded, folder, web server, registry, ConfigMaps). A [`ChartRepository`] caches
//! what was read by its digest, and decides which index is used.

mod configmap_source;
mod directory;
pub mod embedded;
mod former_auto_upgrade;
mod index_downgrade;
mod keys;
mod registry;
mod repository;
mod repository_error;
mod source;
mod source_precedence;
mod source_state;
mod stored_matrix_source;
mod web;

pub use configmap_source::{ConfigMaps, ConfigMapsError, INDEX_FILE, Stock};
pub use directory::{chart_file, credentials, index_file};
pub use index_downgrade::{Floor, Records, RolledBack};
pub use keys::KeyStore;
pub use registry::RegistrySource;
pub use repository::{ChartRepository, LoadedIndex, Polled};
pub use repository_error::{Problem, RepositoryError};
pub use source::MatrixSource;
pub use source_precedence::{CONFIG_MAPS, Named, Naming, Origin, SOURCE_SECRET, SettingsError, named_source, settings};
pub use source_state::{Signed, SourceState, Validators};
pub use stored_matrix_source::Kept;
pub use web::Web;

pub use vdo_oci::web::{Access, AccessError, Led, WebError};

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;
use vdo_api::api::Reason;
use vdo_api::types::{Digest, Remedy};
use vdo_oci::registry::{Fault, RegistryError};

/// The bytes could not be had, or are not the ones that were asked for.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No location of the chart leads to a chart in this store.
    #[error("the chart cannot be found: none of its locations ({locations}) is {store}")]
    NotFound {
        /// Where was looked.
        store: String,
        /// The locations of the chart.
        locations: String,
    },
    /// The bytes are not those the matrix promises.
    #[error("{what} has the digest {found}, but the matrix lists {expected}; it was changed after it was published, so it is not used")]
    DigestMismatch {
        /// The chart and where it came from.
        what: String,
        /// By the matrix.
        expected: Digest,
        /// Of the bytes.
        found: Digest,
    },
    /// The matrix index cannot be had.
    #[error("cannot read the matrix index; the index in use is kept, and without an index no version is selected")]
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
    /// A web server does not give it.
    #[error("cannot read {url}")]
    Web {
        /// The address.
        url: String,
        /// Why.
        #[source]
        source: Box<WebError>,
    },
    /// ConfigMaps do not hold it.
    #[error("{place} cannot be used")]
    ConfigMaps {
        /// The ConfigMaps.
        place: String,
        /// Why.
        #[source]
        source: ConfigMapsError,
    },
    /// The cluster does not keep a chart of the matrix that it keeps.
    #[error("chart {chart} is not in use, so the cluster keeps no copy of it; the operator reads charts from {source_name}")]
    NotKept {
        /// Its first location.
        chart: String,
        /// Where the operator has the matrix from.
        source_name: String,
        /// Why that does not give it here, where it was asked.
        #[source]
        cause: Option<Box<FetchError>>,
    },
    /// A registry does not give it.
    #[error(transparent)]
    Registry(Box<RegistryError>),
    /// The credentials for the source cannot be used.
    #[error("the credentials for the source of the matrix cannot be used")]
    Access(#[from] AccessError),
    /// The chart in the binary cannot be packaged.
    #[error("the embedded chart {name} cannot be packaged; this build of VDO is broken")]
    Package {
        /// The package.
        name: String,
        /// Why.
        #[source]
        source: vdo_core::chart::PackageError,
    },
}

impl FetchError {
    /// As conditions say it.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Index(source) => match &**source {
                Self::Web { .. } | Self::Access(_) => Reason::MatrixUnreachable,
                Self::Registry(error) if !error.is_content() => Reason::MatrixUnreachable,
                Self::ConfigMaps { .. } => Reason::MatrixIncomplete,
                _ => Reason::MatrixInvalid,
            },
            Self::DigestMismatch { .. } => Reason::DigestMismatch,
            Self::Registry(error) if matches!(error.fault(), Fault::Blob(_)) => Reason::DigestMismatch,
            _ => Reason::ChartUnavailable,
        }
    }

    /// How long a server asks to be left alone.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Index(source) => source.wait(),
            Self::Web { source, .. } => match **source {
                WebError::Status { wait, .. } => wait,
                _ => None,
            },
            Self::Registry(error) => error.wait(),
            _ => None,
        }
    }
}

impl From<RegistryError> for FetchError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error.into())
    }
}

impl Remedy for FetchError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::NotFound { .. } => Some("Put the chart into the folder of the matrix, or correct its location in the matrix.".into()),
            Self::DigestMismatch { .. } => Some("Restore the published chart, or correct its digest in the matrix.".into()),
            Self::Index(source) => source.remedy(),
            Self::Read { .. } => Some("Check that the file exists and that you may read it.".into()),
            Self::TooLarge { .. } => Some("Check that it is the right file.".into()),
            Self::Web { source, .. } => source.remedy(),
            Self::ConfigMaps { source, .. } => source.remedy(),
            Self::NotKept { .. } => {
                Some("Name that matrix or a copy of it with --matrix SOURCE, and its credentials with --matrix-credentials FOLDER.".into())
            }
            Self::Registry(error) => error.remedy(),
            Self::Access(_) => Some("Correct the files of --matrix-credentials.".into()),
            Self::Package { .. } => None,
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
