use super::{Access, FetchError, Floor, KeyStore, Look, MatrixSource, Records, RolledBack, Signed, embedded};
use crate::api::{Reason, chain};
use crate::chart::{self, ArchiveError, Chart};
use crate::matrix::{Index, IndexError, Kept};
use crate::signature::{PublicKeys, SignatureError};
use crate::types::{ChartRef, Digest, Remedy};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An index that is used.
#[derive(Debug, Clone)]
pub struct Edition {
    /// The bytes that were read.
    pub signed: Arc<Signed>,
    /// Of the index.
    pub digest: Digest,
    /// What it says.
    pub index: Arc<Index>,
    /// The fingerprint of the key that has signed it, where keys are trusted.
    pub signer: Option<Digest>,
    /// What keeps the index that is in the source now from being used, where this is the last good one before it.
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
            reason: error.reason(),
            message: chain(error),
        }
    }
}

/// The index or a chart of a [`Library`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It cannot be read, or its bytes are not the promised ones.
    #[error(transparent)]
    Fetch(Arc<FetchError>),
    /// The index is invalid.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The chart cannot be opened.
    #[error(transparent)]
    Chart(#[from] ArchiveError),
    /// No trusted key has signed the index.
    #[error("the matrix index is not trusted")]
    Signature(#[from] SignatureError),
    /// The index is an old one.
    #[error("the matrix index is not trusted")]
    RolledBack(#[from] RolledBack),
    /// The source was not asked yet.
    #[error("{0} was not asked for the matrix yet; it is asked when this operator leads")]
    NotYet(String),
}

impl From<FetchError> for LibraryError {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error.into())
    }
}

impl LibraryError {
    /// As conditions say it.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Fetch(error) => error.reason(),
            Self::Index(_) => Reason::MatrixInvalid,
            Self::Chart(_) => Reason::ChartUnavailable,
            Self::Signature(_) => Reason::MatrixNotTrusted,
            Self::RolledBack(_) => Reason::MatrixRolledBack,
            Self::NotYet(_) => Reason::MatrixUnreachable,
        }
    }
}

impl Remedy for LibraryError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Fetch(error) => error.remedy(),
            Self::Index(error) => error.remedy(),
            Self::Chart(error) => error.remedy(),
            Self::Signature(error) => error.remedy(),
            Self::RolledBack(RolledBack { found, .. }) => Some(
                format!(
                    "Publish an index with a higher version. If the publisher means version {found}, accept it with kubectl annotate vdoconfig \
                     NAME vdo.vmware.com/accept-matrix-version={found}."
                )
                .into(),
            ),
            Self::NotYet(_) => None,
        }
    }
}

/// What came of asking a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polled {
    /// There is another index, or another problem, than before.
    pub news: bool,
    /// Why it is asked again soon.
    pub problem: Option<Problem>,
    /// How long the server wants to be left alone.
    pub wait: Option<Duration>,
}

/// A [`MatrixSource`] whose index and charts are read once: what was made of some bytes is kept by their digest, so nothing in here can be
/// out of date, and losing it costs time only.
pub struct Library {
    source: MatrixSource,
    keys: Option<KeyStore>,
    credentials: Option<PathBuf>,
    state: Mutex<State>,
    charts: Mutex<BTreeMap<Digest, Opened>>,
}

#[derive(Default)]
struct State {
    /// What the last look at a source that is polled found.
    look: Option<Look>,
    /// Why the last look found nothing.
    failed: Option<Arc<FetchError>>,
    /// What is used.
    edition: Option<Edition>,
    /// What the cluster has of it.
    kept: Option<Arc<Kept>>,
}

/// A chart with the bytes that it was made of.
#[derive(Clone)]
struct Opened {
    chart: Arc<Chart>,
    /// `None` for one that is in the binary.
    bytes: Option<Vec<u8>>,
}

/// A cluster runs two charts, and four while both change.
const CHARTS: usize = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Library {
    /// As the source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Library {
    /// Whether everything comes out of the binary.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        self.source == MatrixSource::Embedded
    }

    /// Whether [`Self::poll`] is to be called from time to time.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.source.is_polled()
    }

    /// What is in a source.
    #[must_use]
    pub fn new(source: MatrixSource) -> Self {
        Self::at(Some(source), None, None)
    }

    /// What is in this source, of which only an index is used that one of these keys has signed; without a source what is in the binary.
    #[must_use]
    pub fn at(source: Option<MatrixSource>, keys: Option<PathBuf>, credentials: Option<PathBuf>) -> Self {
        Self {
            source: source.unwrap_or(MatrixSource::Embedded),
            keys: keys.map(KeyStore),
            credentials,
            state: Mutex::default(),
            charts: Mutex::default(),
        }
    }

    fn access(&self) -> Result<Access, FetchError> {
        self.credentials.as_deref().map_or_else(|| Ok(Access::default()), Access::of_folder)
    }

    /// The keys that are trusted now. What is in the binary needs none.
    fn keys(&self) -> Result<Option<PublicKeys>, SignatureError> {
        self.keys.as_ref().filter(|_| !self.is_embedded()).map(KeyStore::keys).transpose()
    }

    /// Asks the source what it has now.
    pub async fn poll(&self) -> Polled {
        // An index may be signed anew without being changed: what is not trusted is read as a whole again.
        let known = lock(&self.state).look.clone().filter(|look| self.verify(&look.signed).is_ok());
        let looked = match self.access() {
            Ok(access) => self.source.look(&access, known.as_ref()).await,
            Err(error) => Err(error),
        };
        let mut state = lock(&self.state);
        let before = (
            state.look.as_ref().map(|look| look.signed.clone()),
            state.failed.as_ref().map(|error| chain(&**error)),
        );
        let (problem, wait) = match looked {
            Ok(look) => {
                let (problem, wait) = (self.verify(&look.signed).err().map(LibraryError::from), look.good_for);
                state.failed = None;
                state.look = Some(look);
                (problem, wait)
            }
            Err(error) => {
                let (error, wait) = (Arc::new(error), None);
                let wait = error.wait().or(wait);
                state.failed = Some(error.clone());
                (Some(LibraryError::Fetch(error)), wait)
            }
        };
        let after = (
            state.look.as_ref().map(|look| look.signed.clone()),
            state.failed.as_ref().map(|error| chain(&**error)),
        );
        Polled {
            news: before != after,
            problem: problem.as_ref().map(Problem::from),
            wait,
        }
    }

    /// The index to decide with: that of the source, as it is now or was when it was polled last. Where that cannot be used, the one before,
    /// with the problem.
    ///
    /// # Errors
    /// When it cannot be used, and there was none before.
    pub async fn index(&self, records: &Records) -> Result<Edition, LibraryError> {
        lock(&self.state).kept.clone_from(&records.kept);
        let known = lock(&self.state).edition.clone();
        // What is in the binary does not change while it runs.
        if let (true, Some(known)) = (self.is_embedded(), &known) {
            return Ok(known.clone());
        }
        let error = match self.newest(records, known.as_ref()).await {
            Ok((edition, failed)) => {
                lock(&self.state).edition = Some(edition.clone());
                return Ok(Edition {
                    problem: failed.map(|error| Problem::from(&LibraryError::Fetch(error))),
                    ..edition
                });
            }
            Err(error) => error,
        };
        let source = self.to_string();
        let kept = records.kept.as_ref().filter(|kept| kept.source == source);
        let known = known.or_else(|| {
            let signed = Signed {
                index: kept?.index()?,
                signature: kept?.signature.clone(),
            };
            self.accept(&signed.into(), &Records::default(), None).ok()
        });
        match known {
            Some(known) => {
                lock(&self.state).edition = Some(known.clone());
                // Before it was asked, nothing is wrong with it.
                let problem = (!matches!(error, LibraryError::NotYet(_))).then(|| Problem::from(&error));
                Ok(Edition { problem, ..known })
            }
            None => Err(error),
        }
    }

    /// The index that was used last, or would be if nothing were known of earlier ones.
    pub async fn known(&self) -> Option<Arc<Index>> {
        let known = lock(&self.state).edition.clone();
        match known {
            Some(edition) => Some(edition.index),
            None => Some(self.newest(&Records::default(), None).await.ok()?.0.index),
        }
    }

    /// The index of the source, and why it may be another one by now.
    async fn newest(&self, records: &Records, known: Option<&Edition>) -> Result<(Edition, Option<Arc<FetchError>>), LibraryError> {
        let (look, failed) = match self.is_polled() {
            true => {
                let state = lock(&self.state);
                (state.look.clone(), state.failed.clone())
            }
            false => (Some(self.source.look(&Access::default(), None).await?), None),
        };
        match (look, failed) {
            (Some(look), failed) => Ok((self.accept(&look.signed, records, known)?, failed)),
            (None, Some(failed)) => Err(LibraryError::Fetch(failed)),
            (None, None) => Err(LibraryError::NotYet(self.to_string())),
        }
    }

    fn verify(&self, signed: &Signed) -> Result<Option<Digest>, SignatureError> {
        let Some(keys) = self.keys()? else { return Ok(None) };
        Ok(Some(keys.verify(&signed.index, signed.signature.as_deref())?.fingerprint()))
    }

    /// Nothing of an index is looked at before its signature was verified.
    fn accept(&self, signed: &Arc<Signed>, records: &Records, known: Option<&Edition>) -> Result<Edition, LibraryError> {
        let signer = self.verify(signed)?;
        let digest = Digest::of(&signed.index);
        let index = match known.filter(|known| known.digest == digest) {
            Some(known) => known.index.clone(),
            None => Arc::new(parse(&signed.index)?),
        };
        if !self.is_embedded() {
            let keys = self.keys()?;
            let is_trusted = |key: &str| {
                keys.as_ref()
                    .is_none_or(|keys| keys.fingerprints().any(|known| known.to_string() == key))
            };
            let source = self.to_string();
            let used = known.map(|known| Floor {
                source: source.clone(),
                version: known.index.version,
                signer: known.signer.as_ref().map(ToString::to_string),
            });
            let records = Records {
                floors: records.floors.iter().cloned().chain(used).collect(),
                kept: None,
                pardoned: records.pardoned,
            };
            records.judge(&source, index.version, is_trusted)?;
        }
        Ok(Edition {
            signed: signed.clone(),
            digest,
            index,
            signer,
            problem: None,
        })
    }

    /// When the index that was used last was generated, if it has that time.
    #[must_use]
    pub fn generated(&self) -> Option<jiff::Timestamp> {
        lock(&self.state).edition.as_ref()?.index.generated
    }

    /// A chart, opened.
    ///
    /// # Errors
    /// When it is not there, its bytes are others than promised, or they are no chart.
    pub async fn chart(&self, wanted: &ChartRef) -> Result<Arc<Chart>, LibraryError> {
        if let Some(known) = lock(&self.charts).get(&wanted.digest) {
            return Ok(known.chart.clone());
        }
        let kept = lock(&self.state)
            .kept
            .as_ref()
            .and_then(|kept| kept.charts.get(&wanted.digest).cloned());
        let bytes = match kept.filter(|bytes| Digest::of(bytes) == wanted.digest) {
            Some(bytes) => bytes,
            None => self.source.chart(&self.access()?, wanted).await?,
        };
        let chart = Arc::new(chart::open(&bytes)?);
        let opened = Opened {
            chart: chart.clone(),
            bytes: Some(bytes).filter(|_| embedded::chart(wanted).is_err()),
        };
        let mut charts = lock(&self.charts);
        if charts.len() >= CHARTS {
            charts.clear();
        }
        charts.insert(wanted.digest.clone(), opened);
        Ok(chart)
    }

    /// The bytes of a chart that was opened, or is kept, unless it is in the binary as well.
    #[must_use]
    pub fn packed(&self, digest: &Digest) -> Option<Vec<u8>> {
        if let Some(known) = lock(&self.charts).get(digest) {
            return known.bytes.clone();
        }
        lock(&self.state).kept.as_ref()?.charts.get(digest).cloned()
    }
}

/// A file of the original operator names no charts; those of this build are lent to it.
fn parse(bytes: &[u8]) -> Result<Index, IndexError> {
    let index = Index::parse(bytes)?;
    let mut entries = index.drivers.values().flat_map(|driver| &driver.versions);
    if entries.any(|entry| entry.chart.urls.is_empty()) {
        return Ok(index.with_charts_of(&Index::parse(embedded::index())?));
    }
    Ok(index)
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
        let library = Library::new(MatrixSource::Local(folder.path().to_owned()));
        indexed(folder.path(), 1);
        let first = library.index(&Records::default()).await?;
        assert!(Arc::ptr_eq(&first.index, &library.index(&Records::default()).await?.index));
        indexed(folder.path(), 2);
        let second = library.index(&Records::default()).await?;
        assert_eq!((first.index.version, second.index.version), (1, 2));
        assert_ne!(first.digest, second.digest);
        Ok(())
    }

    #[tokio::test]
    async fn matrix_index_unreadable_keeps_last_good_and_reports_problem() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let library = Library::new(MatrixSource::Local(folder.path().to_owned()));
        indexed(folder.path(), 2);
        let second = library.index(&Records::default()).await?;
        std::fs::write(folder.path().join("index.yaml"), "drivers: [")?;
        let kept = library.index(&Records::default()).await?;
        assert!(Arc::ptr_eq(&kept.index, &second.index), "a broken index takes no place");
        assert_eq!(
            kept.problem.map(|problem| problem.reason),
            Some(Reason::MatrixInvalid),
            "and is not hidden"
        );
        std::fs::remove_file(folder.path().join("index.yaml"))?;
        let problem = library
            .index(&Records::default())
            .await?
            .problem
            .map(|problem| problem.message)
            .unwrap_or_default();
        assert!(problem.contains("index.yaml"), "{problem}");
        indexed(folder.path(), 3);
        let third = library.index(&Records::default()).await?;
        assert_eq!((third.index.version, third.problem), (3, None));
        Ok(())
    }

    #[tokio::test]
    async fn matrix_index_missing_without_earlier_one_is_error() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        indexed(folder.path(), 0);
        let fresh = Library::new(MatrixSource::Local(folder.path().join("nothing.yaml")));
        assert!(
            fresh.index(&Records::default()).await.is_err(),
            "without one before there is nothing to keep"
        );
        Ok(())
    }

    #[tokio::test]
    async fn chart_cache_same_digest_opened_once_and_size_bounded() -> Result<(), Box<dyn std::error::Error>> {
        let library = Library::new(MatrixSource::Embedded);
        let edition = library.index(&Records::default()).await?;
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
        let library = Library::new(MatrixSource::Embedded);
        let edition = library.index(&Records::default()).await?;
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
