// SPDX-License-Identifier: Apache-2.0
//! The source "stored matrix": the index and the charts that the operator keeps in the Secret `vdo-state`, in place of the source.
//!
//! `vdoctl` decides with this source as the operator does, without the original source and its credentials.

use super::{Access, FetchError, MatrixSource, Signed, SourceState, Validators, embedded};
use std::sync::Arc;
use vdo_api::types::{ChartRef, Digest};
use vdo_core::matrix::StoredMatrix;

/// A stored matrix in place of the source that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    from: Box<MatrixSource>,
    signed: Arc<Signed>,
    stored: Arc<StoredMatrix>,
}

impl Kept {
    /// What is kept; `None` where the index was too large to be kept, or is not what was stored.
    #[must_use]
    pub fn of(stored: Arc<StoredMatrix>) -> Option<Self> {
        let signed = Signed {
            index: stored.index()?,
            signature: stored.signature.clone(),
            lock: stored.lock.clone(),
        };
        Some(Self {
            from: Box::new(stored.source.parse().ok()?),
            signed: signed.into(),
            stored,
        })
    }

    /// The source that it came from.
    #[must_use]
    pub fn source(&self) -> &MatrixSource {
        &self.from
    }

    pub(super) fn state(&self) -> SourceState {
        SourceState {
            signed: self.signed.clone(),
            validators: Validators::default(),
            good_for: None,
        }
    }

    /// A chart that is in use.
    pub(super) fn packed(&self, digest: &Digest) -> Option<&Vec<u8>> {
        self.stored.charts.get(digest).filter(|bytes| Digest::of(bytes) == *digest)
    }

    /// A chart that is in use, or in this binary, or that its source gives to anyone. A path of the operator's machine is not opened here.
    pub(super) async fn chart(&self, access: &Access, chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
        if let Some(bytes) = self.packed(&chart.digest) {
            return Ok(bytes.clone());
        }
        if let Ok(bytes) = embedded::chart(chart) {
            return Ok(bytes);
        }
        let cause = match &*self.from {
            source @ (MatrixSource::Web(_) | MatrixSource::Registry(_)) => match Box::pin(source.chart(access, chart)).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => Some(Box::new(error)),
            },
            _ => None,
        };
        Err(FetchError::NotKept {
            chart: chart.urls.first().cloned().unwrap_or_else(|| chart.digest.short()),
            source_name: self.from.to_string(),
            cause,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use vdo_api::types::Remedy as _;

    fn kept(source: &str, charts: &[&[u8]]) -> Kept {
        let charts: BTreeMap<Digest, Vec<u8>> = charts.iter().map(|bytes| (Digest::of(bytes), bytes.to_vec())).collect();
        let stored = StoredMatrix::of((source.into(), 7, None), (b"drivers: {}", Some(b"signature"), None), charts);
        Kept::of(stored.into()).expect("its index is kept")
    }

    fn named(url: &str, bytes: &[u8]) -> ChartRef {
        ChartRef {
            urls: vec![url.into()],
            digest: Digest::of(bytes),
        }
    }

    #[tokio::test]
    async fn kept_matrix_gives_index_and_the_charts_in_use_and_opens_no_path() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("index.yaml"), "drivers: {}").expect("written");
        std::fs::write(folder.path().join("other.tgz"), b"other").expect("written");
        let kept = kept(&folder.path().display().to_string(), &[b"in use"]);
        assert_eq!(kept.state().signed.index, b"drivers: {}");
        assert_eq!(kept.state().signed.signature.as_deref(), Some(&b"signature"[..]));
        let access = Access::default();
        assert_eq!(kept.chart(&access, &named("a.tgz", b"in use")).await.ok(), Some(b"in use".to_vec()));
        let error = kept
            .chart(&access, &named("other.tgz", b"other"))
            .await
            .expect_err("a path of another machine");
        assert!(error.to_string().contains("other.tgz"), "{error}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("--matrix")), "{error:?}");
    }

    #[test]
    fn kept_matrix_without_its_index_is_none() {
        let mut next = 1_u64;
        let noise: Vec<u8> = (0..400_000)
            .map(|_| {
                next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (next >> 56) as u8
            })
            .collect();
        let stored = StoredMatrix::of(("embedded".into(), 7, None), (&noise, None, None), BTreeMap::new());
        assert_eq!(Kept::of(stored.into()), None);
    }
}
