// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl matrix list`, `show` and `source`, and the matrix in the documents of other verbs.

use super::super::output::View;
use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vdo_api::api::MatrixStatus;
use vdo_api::types::{ChartRef, Digest, DriverName, DriverVersion};
use vdo_core::matrix::{Confidence, Entry, Feature, Image, Index, Requirement, State, Support, UpgradesFrom};

/// The matrix that the decision is based on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixView {
    /// The source of the matrix.
    pub source: String,
    pub version: u64,
    pub generated: Option<Timestamp>,
    /// When the matrix expires, as its publisher has stated.
    pub expires: Option<Timestamp>,
    /// The digest of the index of the matrix.
    pub digest: Digest,
    /// Why this matrix is used: `flag` (a flag names the matrix), `operator` (the operator of the cluster uses the matrix) or `vdoctl` (the
    /// matrix is built into vdoctl).
    pub decided_by: String,
    /// The cluster whose operator uses the matrix.
    pub cluster: Option<String>,
}

/// The matrix that the decision is based on, with its age and the newest Kubernetes in the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KnownMatrixView {
    #[serde(flatten)]
    pub matrix: MatrixView,
    pub kubernetes: NewestView,
    /// Whether the matrix is older than half a year.
    pub old: bool,
}

/// The newest minor of Kubernetes that a matrix knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NewestView {
    pub newest: Option<String>,
    pub released: Option<Date>,
}

/// The matrix that is built into this vdoctl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct OwnMatrixView {
    pub source: String,
    pub version: u64,
    pub generated: Option<Timestamp>,
    pub expires: Option<Timestamp>,
    pub digest: Digest,
}

/// A version of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VersionView<R = DriverName> {
    pub driver: DriverName,
    pub version: DriverVersion,
    /// The Kubernetes versions that the driver version supports.
    pub kubernetes: SupportView,
    /// The vCenter versions that the driver version supports.
    pub vsphere: SupportView,
    /// The drivers that must be installed too.
    pub requires: Vec<R>,
    pub state: StateView,
    pub chart: ChartRef,
}

/// A range of supported versions, with the evidence for the range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SupportView {
    pub min: Option<String>,
    pub max: Option<String>,
    pub confidence: Confidence,
    /// The names of the sources.
    pub evidence: Vec<String>,
}

/// Whether a version may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StateView {
    /// `good`, `deprecated` or `withdrawn`.
    pub word: String,
    pub reason: Option<String>,
    /// The version to use instead.
    #[serde(rename = "use")]
    pub instead: Option<DriverVersion>,
}

/// The versions of a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MatrixListView {
    pub matrix: KnownMatrixView,
    pub versions: Vec<VersionView>,
}

/// All data of the matrix about a version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MatrixEntryView {
    pub matrix: KnownMatrixView,
    pub entry: EntryView,
}

/// A version, with the details that only `matrix show` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryView {
    #[serde(flatten)]
    pub version: VersionView<Requirement>,
    pub features: BTreeMap<String, FeatureView>,
    pub upgrades_from: Option<UpgradesFrom>,
    pub images: Vec<ImageView>,
    pub released: Option<Date>,
    /// The addresses of the driver's own manifests, for a comparison by hand.
    pub manifests: Vec<String>,
}

/// A feature of a version, with the vCenter versions that support the feature.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FeatureView {
    pub vsphere: RangeView,
    pub evidence: Vec<String>,
    pub note: Option<String>,
}

/// A range of versions, both ends inclusive.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RangeView {
    pub min: Option<String>,
    pub max: Option<String>,
}

/// An image of a version.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageView {
    pub name: String,
    #[serde(rename = "ref")]
    pub reference: String,
    pub digest: Option<Digest>,
    /// The source that states the digest, if the digest was not measured.
    pub stated_in: Option<String>,
}

/// The source of the operator's matrix.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixSourceView {
    pub in_use: Option<MatrixStatus>,
    /// The places that can name a source, in the order of their precedence.
    pub named: Vec<PlaceView>,
    pub upgrades_disabled: bool,
}

/// A place that can name the source of the matrix.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlaceView {
    #[serde(rename = "where")]
    pub place: String,
    pub source: Option<String>,
    /// Whether the operator uses the source that this place names.
    pub counts: bool,
}

pub(super) fn version(driver: &str, version: &DriverVersion) -> String {
    format!("{driver}/{version}")
}

impl View for MatrixListView {
    const KIND: &'static str = "MatrixList";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.versions.iter().map(|one| version(&one.driver, &one.version)).collect())
    }
}

impl View for MatrixEntryView {
    const KIND: &'static str = "MatrixEntry";
}

impl View for MatrixSourceView {
    const KIND: &'static str = "MatrixSource";
}

impl From<&Support> for SupportView {
    fn from(support: &Support) -> Self {
        Self {
            min: support.range.min().map(str::to_owned),
            max: support.range.max().map(str::to_owned),
            confidence: support.confidence,
            evidence: support.evidence.clone(),
        }
    }
}

impl From<&State> for StateView {
    fn from(state: &State) -> Self {
        let (word, verdict) = match state {
            State::Good => ("good", None),
            State::Deprecated(verdict) => ("deprecated", Some(verdict)),
            State::Withdrawn(verdict) => ("withdrawn", Some(verdict)),
        };
        Self {
            word: word.to_owned(),
            reason: verdict.map(|verdict| verdict.reason.clone()),
            instead: verdict.and_then(|verdict| verdict.instead.clone()),
        }
    }
}

impl<R> VersionView<R> {
    fn with(driver: &str, entry: &Entry, requires: Vec<R>) -> Self {
        Self {
            driver: driver.to_owned(),
            version: entry.version.clone(),
            kubernetes: (&entry.kubernetes).into(),
            vsphere: (&entry.vsphere).into(),
            requires,
            state: (&entry.state).into(),
            chart: entry.chart.clone(),
        }
    }
}

impl VersionView {
    pub(crate) fn of(driver: &str, entry: &Entry) -> Self {
        let requires = entry.requires.iter().map(|required| required.driver.clone());
        Self::with(driver, entry, requires.collect())
    }

    /// Every version of an index.
    pub(crate) fn all(index: &Index) -> Vec<Self> {
        let drivers = index.drivers.iter();
        let all = drivers.flat_map(|(name, driver)| driver.versions.iter().map(move |entry| Self::of(name, entry)));
        all.collect()
    }
}

impl EntryView {
    pub(crate) fn of(index: &Index, driver: &str, entry: &Entry) -> Self {
        let feature = |feature: &Feature| FeatureView {
            vsphere: RangeView {
                min: feature.vsphere.min().map(str::to_owned),
                max: feature.vsphere.max().map(str::to_owned),
            },
            evidence: feature.evidence.clone(),
            note: feature.note.clone(),
        };
        let image = |image: &Image| ImageView {
            name: image.name.clone(),
            reference: image.reference.clone(),
            digest: image.digest.clone(),
            stated_in: image.digest.as_ref().and_then(|digest| index.stated_in(digest)).map(str::to_owned),
        };
        Self {
            version: VersionView::with(driver, entry, entry.requires.clone()),
            features: entry.features.iter().map(|(name, one)| (name.clone(), feature(one))).collect(),
            upgrades_from: entry.upgrades_from.clone(),
            images: entry.images.iter().map(image).collect(),
            released: index.released.driver(driver, &entry.version),
            manifests: entry.manifests.clone(),
        }
    }
}
