// SPDX-License-Identifier: Apache-2.0
//! `ChartRepository::chart`: opens the charts of a source once, and checks them against the digest of the index.

use super::{CHARTS, ChartRepository, Opened, lock};
use crate::fetch::{FetchError, MatrixSource, RepositoryError};
use std::sync::Arc;
use vdo_api::types::{ChartRef, Digest};
use vdo_core::chart::{self, Chart};

impl ChartRepository {
    /// A chart, opened.
    ///
    /// # Errors
    /// When it is not there, its bytes are others than promised, or are not a chart.
    pub async fn chart(&self, wanted: &ChartRef) -> Result<Arc<Chart>, RepositoryError> {
        if let Some(known) = lock(&self.charts).get(&wanted.digest) {
            return Ok(known.chart.clone());
        }
        let bytes = self.package(wanted).await?;
        let chart = Arc::new(chart::open(&bytes)?);
        self.remember(&wanted.digest, chart.clone(), bytes);
        Ok(chart)
    }

    /// A chart that was kept elsewhere, opened: its source need not have it any more. `None` where these are not its bytes.
    #[must_use]
    pub fn restore(&self, digest: &Digest, bytes: &[u8]) -> Option<Arc<Chart>> {
        if let Some(known) = lock(&self.charts).get(digest) {
            return Some(known.chart.clone());
        }
        let chart = Arc::new(chart::open(bytes).ok().filter(|_| Digest::of(bytes) == *digest)?);
        self.remember(digest, chart.clone(), bytes.to_vec());
        Some(chart)
    }

    fn remember(&self, digest: &Digest, chart: Arc<Chart>, bytes: Vec<u8>) {
        let mut charts = lock(&self.charts);
        if charts.len() >= CHARTS {
            charts.clear();
        }
        charts.insert(digest.clone(), Opened { chart, bytes });
    }

    /// The bytes of a chart, which are those that were promised.
    ///
    /// # Errors
    /// When it is not there, or its bytes are others.
    pub async fn package(&self, wanted: &ChartRef) -> Result<Vec<u8>, RepositoryError> {
        let source = self.source();
        let kept = lock(&self.state)
            .kept
            .as_ref()
            .and_then(|kept| kept.charts.get(&wanted.digest).cloned());
        let kept = kept.or_else(|| match &source {
            MatrixSource::Kept(kept) => kept.packed(&wanted.digest).cloned(),
            _ => None,
        });
        match kept.filter(|bytes| Digest::of(bytes) == wanted.digest) {
            Some(bytes) => Ok(bytes),
            None => match self.stock() {
                // What is kept outlives what it was loaded from.
                Some(Err(_)) if matches!(source, MatrixSource::Kept(_)) => Ok(source.chart(&self.access().await?, wanted).await?),
                Some(stock) => Ok(stock.map_err(RepositoryError::Fetch)?.chart(wanted)?),
                None => Ok(source.chart(&self.access().await?, wanted).await?),
            },
        }
    }

    /// A file beside the index; `None` where there is none of this name. Nothing vouches for it yet.
    ///
    /// # Errors
    /// When it cannot be read, or has more bytes than `limit`.
    pub async fn beside(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FetchError> {
        self.source().beside(&self.access().await?, name, limit).await
    }

    /// The bytes of a chart that was opened, or is kept.
    #[must_use]
    pub fn packed(&self, digest: &Digest) -> Option<Vec<u8>> {
        if let Some(known) = lock(&self.charts).get(digest) {
            return Some(known.bytes.clone());
        }
        lock(&self.state).kept.as_ref()?.charts.get(digest).cloned()
    }
}
