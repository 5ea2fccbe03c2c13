// SPDX-License-Identifier: Apache-2.0
//! `ChartRepository`: polls a source, verifies signature and version of the index, and keeps the last good index when that fails.

mod charts;

use super::{
    Access, ConfigMaps, FetchError, Floor, KeyStore, MatrixSource, Problem, Records, RepositoryError, SettingsError, Signed, SourceState,
    Stock, credentials, directory, embedded,
};
use crate::signature::{PublicKey, PublicKeys, SignatureError};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use vdo_api::api::chain;
use vdo_api::types::Digest;
use vdo_core::chart::Chart;
use vdo_core::matrix::{Index, IndexError, StoredMatrix};
use vdo_core::mirror_lock::Lock;

/// An index that is used.
#[derive(Debug, Clone)]
pub struct LoadedIndex {
    /// Where it came from.
    pub source: String,
    /// The bytes that were read.
    pub signed: Arc<Signed>,
    /// Of the index.
    pub digest: Digest,
    /// What it says.
    pub index: Arc<Index>,
    /// The fingerprint of the key that has signed it, where keys are trusted.
    pub signer: Option<Digest>,
    /// What a mirror has of it, where it is one: the index is narrowed to that.
    pub lock: Option<Arc<Lock>>,
    /// What keeps the index that is in the source now from being used, where this is the last good one before it.
    pub problem: Option<Problem>,
}

/// What came of asking a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
pub struct ChartRepository {
    /// Whether the source is named by a flag, so that nothing else can name another one.
    fixed: bool,
    keys: Option<KeyStore>,
    credentials: Option<PathBuf>,
    state: Mutex<State>,
    /// Changes with the source.
    renamed: watch::Sender<()>,
    charts: Mutex<BTreeMap<Digest, Opened>>,
}

#[derive(Default)]
struct State {
    /// Where the index comes from.
    source: MatrixSource,
    /// Why that is not what a person wants.
    misnamed: Option<SettingsError>,
    /// What the last look at a source that is polled found.
    look: Option<SourceState>,
    /// Why that is not trusted: keys may change while it stays the same.
    distrusted: Option<String>,
    /// Why the last look found nothing.
    failed: Option<Arc<FetchError>>,
    /// What its ConfigMaps hold, where it has some, with the state in which they were read.
    stock: Option<(String, Stocked)>,
    /// What is used.
    loaded: Option<LoadedIndex>,
    /// What the cluster has of it.
    kept: Option<Arc<StoredMatrix>>,
}

/// What came of reading ConfigMaps.
type Stocked = Result<Arc<Stock>, Arc<FetchError>>;

impl State {
    /// What polls have led to: when it is another, there is something to decide.
    fn seen(&self) -> (Option<Arc<Signed>>, [Option<String>; 2]) {
        let signed = self.look.as_ref().map(|look| look.signed.clone());
        let failed = self.failed.as_ref().map(|error| chain(&**error));
        (signed, [self.distrusted.clone(), failed])
    }
}

/// A chart with the bytes that it was made of.
#[derive(Clone)]
struct Opened {
    chart: Arc<Chart>,
    bytes: Vec<u8>,
}

/// A cluster runs two charts, and four while both change.
const CHARTS: usize = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for ChartRepository {
    /// As the source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source().fmt(f)
    }
}

impl ChartRepository {
    /// Whether everything comes out of the binary.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        self.source().is_embedded()
    }

    /// Whether [`Self::poll`] is to be called from time to time.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.source().is_polled()
    }

    /// Whether a flag names the source, so that nothing in the cluster can.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    fn source(&self) -> MatrixSource {
        lock(&self.state).source.clone()
    }

    /// What changes with the source.
    #[must_use]
    pub fn renamed(&self) -> watch::Receiver<()> {
        self.renamed.subscribe()
    }

    /// Takes the index from where the cluster says, unless a flag names a source. Where it says nothing that can be followed, the last good
    /// index stays.
    pub fn follow(&self, settings: Result<MatrixSource, SettingsError>) {
        if self.fixed {
            return;
        }
        let mut state = lock(&self.state);
        let before = (state.source.clone(), state.misnamed.clone());
        match settings {
            Ok(source) => (state.source, state.misnamed) = (source, None),
            Err(error) => state.misnamed = Some(error),
        }
        if before.0 != state.source {
            (state.look, state.distrusted, state.failed, state.stock) = (None, None, None, None);
            self.renamed.send_replace(());
        }
    }

    /// The ConfigMaps that are the source.
    #[must_use]
    pub fn config_maps(&self) -> Option<ConfigMaps> {
        lock(&self.state).source.config_maps().cloned()
    }

    /// Whether an index is used only if a trusted key has signed it.
    #[must_use]
    pub fn trusts_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// The fingerprints of the keys that are trusted now; `None` while they cannot be read.
    #[must_use]
    pub fn trusted(&self) -> Option<Vec<String>> {
        let keys = self.keys().ok()?;
        let fingerprints = keys.iter().flat_map(PublicKeys::fingerprints);
        Some(fingerprints.map(|key| key.to_string()).collect())
    }

    /// Hands over what the ConfigMaps of the source hold. It is read only where they are in another `state` than when they were read last.
    pub fn supply(&self, place: &ConfigMaps, state: &str, read: impl FnOnce() -> Result<Stock, FetchError>) {
        let is_known = |own: &State| own.stock.as_ref().is_some_and(|(known, _)| known == state);
        if is_known(&lock(&self.state)) {
            return;
        }
        let found = read().map(Arc::new).map_err(|error| Arc::new(FetchError::Index(Box::new(error))));
        let mut own = lock(&self.state);
        if own.source.config_maps() == Some(place) {
            own.stock = Some((state.to_owned(), found));
        }
    }

    fn stock(&self) -> Option<Stocked> {
        lock(&self.state).stock.as_ref().map(|(_, stock)| stock.clone())
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
            fixed: source.is_some(),
            keys: keys.map(KeyStore),
            credentials,
            state: Mutex::new(State {
                source: source.unwrap_or_default(),
                ..State::default()
            }),
            charts: Mutex::default(),
            renamed: watch::Sender::default(),
        }
    }

    async fn access(&self) -> Result<Access, FetchError> {
        let Some(folder) = self.credentials.clone() else {
            return Ok(Access::default());
        };
        let read = vdo_files::aside(directory::DEADLINE, {
            let folder = folder.clone();
            move || credentials(&folder)
        });
        read.await.unwrap_or_else(|source| Err(FetchError::Read { path: folder, source }))
    }

    /// The keys that are trusted now. What is in the binary needs none.
    fn keys(&self) -> Result<Option<PublicKeys>, SignatureError> {
        self.keys.as_ref().filter(|_| !self.is_embedded()).map(KeyStore::keys).transpose()
    }

    /// Asks the source what it has now.
    pub async fn poll(&self) -> Polled {
        // An index may be signed again without being changed: what is not trusted is read as a whole again.
        let (source, known) = {
            let state = lock(&self.state);
            (state.source.clone(), state.look.clone())
        };
        let known = known.filter(|look| self.verify(&look.signed).is_ok());
        let looked = match self.access().await {
            Ok(access) => source.fetch(&access, known.as_ref()).await,
            Err(error) => Err(error),
        };
        let verified = looked.as_ref().ok().map(|look| self.verify(&look.signed));
        let mut state = lock(&self.state);
        if state.source != source {
            // Another one was named meanwhile, which is asked next.
            return Polled::default();
        }
        let before = state.seen();
        let (problem, wait) = match looked {
            Ok(look) => {
                let (problem, wait) = (verified.and_then(Result::err).map(RepositoryError::from), look.good_for);
                state.distrusted = problem.as_ref().map(|error| chain(error));
                state.failed = None;
                state.look = Some(look);
                (problem, wait)
            }
            Err(error) => {
                let error = Arc::new(error);
                let wait = error.wait();
                state.failed = Some(error.clone());
                (Some(RepositoryError::Fetch(error)), wait)
            }
        };
        Polled {
            news: before != state.seen(),
            problem: problem.as_ref().map(Problem::from),
            wait,
        }
    }

    /// The index to decide with: that of the source, as it is now or was when it was polled last. Where that cannot be used, the one before,
    /// with the problem.
    ///
    /// # Errors
    /// When it cannot be used, and there was none before.
    pub async fn index(&self, records: &Records) -> Result<LoadedIndex, RepositoryError> {
        lock(&self.state).kept.clone_from(&records.kept);
        let known = lock(&self.state).loaded.clone();
        // What is in the binary does not change while it runs.
        let source = self.to_string();
        let same = known.as_ref().filter(|known| known.source == source);
        let misnamed = lock(&self.state).misnamed.clone();
        if let (true, Some(known), None) = (self.is_embedded(), same, &misnamed) {
            return Ok(known.clone());
        }
        let newest = match misnamed {
            Some(error) => Err(RepositoryError::Misnamed(error)),
            None => self.newest(records, known.as_ref()).await,
        };
        let error = match newest {
            Ok((loaded, failed)) => {
                lock(&self.state).loaded = Some(loaded.clone());
                return Ok(LoadedIndex {
                    problem: failed.map(|error| Problem::from(&RepositoryError::Fetch(error))),
                    ..loaded
                });
            }
            Err(error) => error,
        };
        let kept = records.kept.as_ref().filter(|kept| kept.source == source);
        let known = known.or_else(|| {
            let signed = Signed {
                index: kept?.index()?,
                signature: kept?.signature.clone(),
                lock: kept?.lock.clone(),
            };
            self.accept(&signed.into(), &Records::default(), None).ok()
        });
        match known {
            Some(known) => {
                lock(&self.state).loaded = Some(known.clone());
                // Before it was asked, nothing is wrong with it.
                let problem = (!matches!(error, RepositoryError::NotYet(_))).then(|| Problem::from(&error));
                Ok(LoadedIndex { problem, ..known })
            }
            None => Err(error),
        }
    }

    /// The index that was used last, or would be if nothing were known of earlier ones.
    pub async fn known(&self) -> Option<Arc<Index>> {
        let known = lock(&self.state).loaded.clone();
        match known {
            Some(loaded) => Some(loaded.index),
            None => Some(self.newest(&Records::default(), None).await.ok()?.0.index),
        }
    }

    /// The index of the source, and why it may be another one by now.
    async fn newest(
        &self,
        records: &Records,
        known: Option<&LoadedIndex>,
    ) -> Result<(LoadedIndex, Option<Arc<FetchError>>), RepositoryError> {
        let (look, failed) = match self.source() {
            MatrixSource::ConfigMaps(_) => match self.stock().transpose() {
                Ok(stock) => (stock.map(|stock| stock.state()), None),
                Err(error) => (None, Some(error)),
            },
            source if source.is_polled() => {
                let state = lock(&self.state);
                (state.look.clone(), state.failed.clone())
            }
            source => (Some(source.fetch(&Access::default(), None).await?), None),
        };
        match (look, failed) {
            (Some(look), failed) => Ok((self.accept(&look.signed, records, known)?, failed)),
            (None, Some(failed)) => Err(RepositoryError::Fetch(failed)),
            (None, None) => Err(RepositoryError::NotYet(self.to_string())),
        }
    }

    fn verify(&self, signed: &Signed) -> Result<Option<Digest>, SignatureError> {
        signer(self.keys()?.as_ref(), signed)
    }

    /// Nothing of an index is looked at before its signature was verified.
    fn accept(&self, signed: &Arc<Signed>, records: &Records, known: Option<&LoadedIndex>) -> Result<LoadedIndex, RepositoryError> {
        let (source, keys) = (self.to_string(), self.keys()?);
        let signer = signer(keys.as_ref(), signed)?;
        let digest = Digest::of(&signed.index);
        let (index, lock) = match known.filter(|known| known.digest == digest && known.signed.lock == signed.lock) {
            Some(known) => (known.index.clone(), known.lock.clone()),
            None => {
                let lock = signed.lock.as_deref().map(|lock| Lock::parse(lock, &digest)).transpose()?;
                let index = parse(&signed.index)?;
                // What decides which image runs has to be signed, where anything has to be.
                let lock = match signer {
                    Some(_) => lock.map(|lock| lock.vouched(&index)),
                    None => lock,
                };
                let index = lock.as_ref().map(|lock| lock.narrow(&index)).unwrap_or(index);
                (Arc::new(index), lock.map(Arc::new))
            }
        };
        if !self.is_embedded() {
            let is_trusted = |key: &str| {
                keys.as_ref()
                    .is_none_or(|keys| keys.fingerprints().any(|known| known.to_string() == key))
            };
            let used = known.map(|known| Floor {
                source: known.source.clone(),
                version: known.index.version,
                signer: known.signer.as_ref().map(ToString::to_string),
            });
            let records = Records {
                floors: records.floors.iter().cloned().chain(used).collect(),
                kept: None,
                pardoned: records.pardoned,
            };
            let signer = signer.as_ref().map(ToString::to_string);
            records.judge((&source, signer.as_deref()), index.version, is_trusted)?;
        }
        Ok(LoadedIndex {
            source,
            signed: signed.clone(),
            digest,
            index,
            signer,
            lock,
            problem: None,
        })
    }

    /// When the index that was used last was generated, if it has that time.
    #[must_use]
    pub fn generated(&self) -> Option<jiff::Timestamp> {
        lock(&self.state).loaded.as_ref()?.index.generated
    }
}

/// The fingerprint of the key that has signed an index, where keys are trusted.
fn signer(keys: Option<&PublicKeys>, signed: &Signed) -> Result<Option<Digest>, SignatureError> {
    let verified = keys.map(|keys| keys.verify(&signed.index, signed.signature.as_deref()));
    Ok(verified.transpose()?.map(PublicKey::fingerprint))
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
mod tests;
