use super::{FetchError, KeyStore, Store, embedded};
use crate::api::{Reason, chain};
use crate::chart::{self, ArchiveError, Chart};
use crate::matrix::{Index, IndexError};
use crate::signature::SignatureError;
use crate::types::{ChartRef, Digest, Remedy};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An index with the digest of its bytes.
#[derive(Debug, Clone)]
pub struct Edition {
    /// Of the bytes that were read.
    pub digest: Digest,
    /// What they say.
    pub index: Arc<Index>,
    /// The fingerprint of the key that has signed them, where keys are trusted.
    pub signer: Option<Digest>,
    /// What keeps the index that is in the store now from being used, where this is the last good one before it.
    pub problem: Option<Problem>,
}

/// Why an index is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// As conditions say it.
    pub reason: Reason,
    /// For a person.
    pub message: String,
}

impl From<&LibraryError> for Problem {
    fn from(error: &LibraryError) -> Self {
        Self {
            reason: match error {
                LibraryError::Signature(_) => Reason::MatrixNotTrusted,
                _ => Reason::MatrixInvalid,
            },
            message: chain(error),
        }
    }
}

/// The index or a chart of a [`Library`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It cannot be read, or its bytes are not the promised ones.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The index is invalid.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The chart cannot be opened.
    #[error(transparent)]
    Chart(#[from] ArchiveError),
    /// No trusted key has signed the index.
    #[error("the matrix index is not trusted")]
    Signature(#[from] SignatureError),
}

impl Remedy for LibraryError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Fetch(error) => error.remedy(),
            Self::Index(error) => error.remedy(),
            Self::Chart(error) => error.remedy(),
            Self::Signature(error) => error.remedy(),
        }
    }
}

/// A [`Store`] whose index and charts are read once: what was made of some bytes is kept by their digest, so nothing in here can be
/// out of date, and losing it costs time only.
pub struct Library {
    store: Store,
    keys: Option<KeyStore>,
    edition: Mutex<Option<Edition>>,
    charts: Mutex<BTreeMap<Digest, Arc<Chart>>>,
}

/// A cluster runs two charts, and four while both change.
const CHARTS: usize = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Library {
    /// As the store.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl Library {
    /// Whether everything comes out of the binary.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        self.store == Store::Embedded
    }

    /// What is in a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            store,
            keys: None,
            edition: Mutex::default(),
            charts: Mutex::default(),
        }
    }

    /// The matrix at this path, of which only an index is used that one of these keys has signed; without a path the one in the binary.
    #[must_use]
    pub fn at(matrix: Option<PathBuf>, keys: Option<PathBuf>) -> Self {
        Self {
            keys: keys.map(KeyStore),
            ..Self::new(matrix.map_or(Store::Embedded, Store::Local))
        }
    }

    /// The index of the store as it is now; where that cannot be used, the one before, with the problem.
    ///
    /// # Errors
    /// When it cannot be used, and there was none before.
    pub async fn index(&self) -> Result<Edition, LibraryError> {
        let known = lock(&self.edition).clone();
        // What is in the binary does not change while it runs.
        if let (Store::Embedded, Some(known)) = (&self.store, &known) {
            return Ok(known.clone());
        }
        let error = match self.read(known.as_ref()).await {
            Ok(edition) => {
                *lock(&self.edition) = Some(edition.clone());
                return Ok(edition);
            }
            Err(error) => error,
        };
        match known {
            Some(known) => Ok(Edition {
                problem: Some(Problem::from(&error)),
                ..known
            }),
            None => Err(error),
        }
    }

    /// Reads the index as it is now. Nothing of it is looked at before its signature was verified.
    async fn read(&self, known: Option<&Edition>) -> Result<Edition, LibraryError> {
        let bytes = self.store.index().await?;
        let signer = match self.keys.as_ref().filter(|_| !self.is_embedded()) {
            Some(keys) => {
                let signature = self.store.signature().await?;
                Some(keys.keys()?.verify(&bytes, signature.as_deref())?.fingerprint())
            }
            None => None,
        };
        let digest = Digest::of(&bytes);
        let index = match known.filter(|known| known.digest == digest) {
            Some(known) => known.index.clone(),
            None => Arc::new(self.parse(&bytes)?),
        };
        Ok(Edition {
            digest,
            index,
            signer,
            problem: None,
        })
    }

    /// A file of the original operator names no charts; those of this build are lent to it.
    fn parse(&self, bytes: &[u8]) -> Result<Index, IndexError> {
        let index = Index::parse(bytes)?;
        let mut entries = index.drivers.values().flat_map(|driver| &driver.versions);
        if entries.any(|entry| entry.chart.urls.is_empty()) {
            return Ok(index.with_charts_of(&Index::parse(embedded::index())?));
        }
        Ok(index)
    }

    /// When the index that was used last was generated, if it has that time.
    #[must_use]
    pub fn generated(&self) -> Option<jiff::Timestamp> {
        lock(&self.edition).as_ref()?.index.generated
    }

    /// A chart, opened.
    ///
    /// # Errors
    /// When it is not there, its bytes are others than promised, or they are no chart.
    pub async fn chart(&self, wanted: &ChartRef) -> Result<Arc<Chart>, LibraryError> {
        if let Some(known) = lock(&self.charts).get(&wanted.digest) {
            return Ok(known.clone());
        }
        let chart = Arc::new(chart::open(&self.store.chart(wanted).await?)?);
        let mut charts = lock(&self.charts);
        if charts.len() >= CHARTS {
            charts.clear();
        }
        charts.insert(wanted.digest.clone(), chart.clone());
        Ok(chart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(folder: &std::path::Path, version: u32) {
        let text = format!(
            r#"{{"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": {version}, "drivers": {{}}}}"#
        );
        std::fs::write(folder.join("index.yaml"), text).expect("a file");
    }

    #[tokio::test]
    async fn matrix_index_same_bytes_parsed_once_and_new_bytes_seen() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let library = Library::new(Store::Local(folder.path().to_owned()));
        indexed(folder.path(), 1);
        let first = library.index().await?;
        assert!(Arc::ptr_eq(&first.index, &library.index().await?.index));
        indexed(folder.path(), 2);
        let second = library.index().await?;
        assert_eq!((first.index.version, second.index.version), (1, 2));
        assert_ne!(first.digest, second.digest);
        Ok(())
    }

    #[tokio::test]
    async fn matrix_index_unreadable_keeps_last_good_and_reports_problem() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let library = Library::new(Store::Local(folder.path().to_owned()));
        indexed(folder.path(), 2);
        let second = library.index().await?;
        std::fs::write(folder.path().join("index.yaml"), "drivers: [")?;
        let kept = library.index().await?;
        assert!(Arc::ptr_eq(&kept.index, &second.index), "a broken index takes no place");
        assert_eq!(
            kept.problem.map(|problem| problem.reason),
            Some(Reason::MatrixInvalid),
            "and is not hidden"
        );
        std::fs::remove_file(folder.path().join("index.yaml"))?;
        let problem = library.index().await?.problem.map(|problem| problem.message).unwrap_or_default();
        assert!(problem.contains("index.yaml"), "{problem}");
        indexed(folder.path(), 3);
        let third = library.index().await?;
        assert_eq!((third.index.version, third.problem), (3, None));
        Ok(())
    }

    #[tokio::test]
    async fn matrix_index_missing_without_earlier_one_is_error() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        indexed(folder.path(), 0);
        let fresh = Library::new(Store::Local(folder.path().join("nothing.yaml")));
        assert!(fresh.index().await.is_err(), "without one before there is nothing to keep");
        Ok(())
    }

    #[tokio::test]
    async fn chart_cache_same_digest_opened_once_and_size_bounded() -> Result<(), Box<dyn std::error::Error>> {
        let library = Library::new(Store::Embedded);
        let edition = library.index().await?;
        let charts: Vec<&ChartRef> = edition
            .index
            .drivers
            .values()
            .flat_map(|driver| &driver.versions)
            .map(|entry| &entry.chart)
            .collect();
        let first = library.chart(charts[0]).await?;
        assert!(Arc::ptr_eq(&first, &library.chart(charts[0]).await?));
        for chart in &charts[..=CHARTS] {
            library.chart(chart).await?;
        }
        assert!(lock(&library.charts).len() <= CHARTS);
        Ok(())
    }

    #[tokio::test]
    async fn chart_cache_known_chart_with_other_digest_is_error() -> Result<(), Box<dyn std::error::Error>> {
        let library = Library::new(Store::Embedded);
        let edition = library.index().await?;
        let known = &edition.index.drivers.values().next().expect("a driver").versions[0].chart;
        library.chart(known).await?;
        let mut other = known.clone();
        other.digest = Digest::of(b"something else");
        assert!(
            library.chart(&other).await.is_err(),
            "a known chart does not answer for another digest"
        );
        Ok(())
    }
}
