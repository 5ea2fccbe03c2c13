use super::{FetchError, Store};
use crate::chart::{self, ArchiveError, Chart};
use crate::matrix::{Index, IndexError};
use crate::types::{ChartRef, Digest};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An index with the digest of its bytes.
#[derive(Debug, Clone)]
pub struct Edition {
    /// Of the bytes that were read.
    pub digest: Digest,
    /// What they say.
    pub index: Arc<Index>,
}

/// A [`Store`] whose index and charts are read once: what was made of some bytes is kept by their digest, so nothing in here can be
/// out of date, and losing it costs time only.
pub struct Library {
    store: Store,
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
    /// What is in a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            store,
            edition: Mutex::default(),
            charts: Mutex::default(),
        }
    }

    /// The index of the store as it is now.
    ///
    /// # Errors
    /// When it cannot be read, or is no index.
    pub async fn index<E: From<FetchError> + From<IndexError>>(&self) -> Result<Edition, E> {
        let known = lock(&self.edition).clone();
        // What is in the binary does not change while it runs.
        if let (Store::Embedded, Some(known)) = (&self.store, &known) {
            return Ok(known.clone());
        }
        let bytes = self.store.index().await?;
        let digest = Digest::of(&bytes);
        if let Some(known) = known.filter(|known| known.digest == digest) {
            return Ok(known);
        }
        let index = Arc::new(Index::parse(&bytes)?);
        let edition = Edition { digest, index };
        *lock(&self.edition) = Some(edition.clone());
        Ok(edition)
    }

    /// A chart, opened.
    ///
    /// # Errors
    /// When it is not there, its bytes are others than promised, or they are no chart.
    pub async fn chart<E: From<FetchError> + From<ArchiveError>>(&self, wanted: &ChartRef) -> Result<Arc<Chart>, E> {
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

    type Failure = Box<dyn std::error::Error>;

    fn indexed(folder: &std::path::Path, version: u32) {
        let text = format!(
            r#"{{"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": {version}, "drivers": {{}}}}"#
        );
        std::fs::write(folder.join("index.yaml"), text).expect("a file");
    }

    #[tokio::test]
    async fn the_same_bytes_are_read_once_and_new_ones_are_seen() -> Result<(), Failure> {
        let folder = tempfile::tempdir()?;
        let library = Library::new(Store::Directory(folder.path().to_owned()));
        indexed(folder.path(), 1);
        let first = library.index::<Failure>().await?;
        assert!(Arc::ptr_eq(&first.index, &library.index::<Failure>().await?.index));
        indexed(folder.path(), 2);
        let second = library.index::<Failure>().await?;
        assert_eq!((first.index.version, second.index.version), (1, 2));
        assert_ne!(first.digest, second.digest);
        std::fs::write(folder.path().join("index.yaml"), "drivers: [")?;
        assert!(
            library.index::<Failure>().await.is_err(),
            "a broken index is not hidden by an older one"
        );
        Ok(())
    }

    #[tokio::test]
    async fn charts_are_opened_once_and_few_are_kept() -> Result<(), Failure> {
        let library = Library::new(Store::Embedded);
        let edition = library.index::<Failure>().await?;
        let charts: Vec<&ChartRef> = edition
            .index
            .drivers
            .values()
            .flat_map(|driver| &driver.versions)
            .map(|entry| &entry.chart)
            .collect();
        let first = library.chart::<Failure>(charts[0]).await?;
        assert!(Arc::ptr_eq(&first, &library.chart::<Failure>(charts[0]).await?));
        for chart in &charts[..=CHARTS] {
            library.chart::<Failure>(chart).await?;
        }
        assert!(lock(&library.charts).len() <= CHARTS);
        let mut other = charts[0].clone();
        other.digest = Digest::of(b"something else");
        assert!(
            library.chart::<Failure>(&other).await.is_err(),
            "a known chart does not answer for another digest"
        );
        Ok(())
    }
}
