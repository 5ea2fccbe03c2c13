// SPDX-License-Identifier: Apache-2.0
//! The documents of what authors: `vdoctl matrix lint`, `init`, `publish`, `withdraw`, `deprecate` and `verify`, and those of `vdoctl chart`.

use super::super::output::View;
use super::matrix::version;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use vdo_api::types::{Digest, DriverName, DriverVersion};
use vdo_core::chart::compare::{Deviation, Kind};
use vdo_core::matrix::Image;

/// A matrix that was published, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PublishedView {
    pub version: u64,
    pub generated: Option<Timestamp>,
    pub expires: Option<Timestamp>,
    /// The digest of the index.
    pub digest: Digest,
    /// The fingerprint of the key that has signed it.
    pub signer: Option<Digest>,
}

/// A matrix that was begun.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MatrixInitView {
    pub place: String,
    pub matrix: PublishedView,
    /// How many charts were copied.
    pub charts: usize,
}

impl View for MatrixInitView {
    const KIND: &'static str = "MatrixInit";
}

/// A version that must not, or should not, be chosen any more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixMarkView {
    pub driver: DriverName,
    pub version: DriverVersion,
    /// `withdrawn` or `deprecated`.
    pub state: String,
    /// What to use instead.
    #[serde(rename = "use")]
    pub instead: Option<DriverVersion>,
    pub dry_run: bool,
    pub matrix: PublishedView,
}

impl View for MatrixMarkView {
    const KIND: &'static str = "MatrixMark";
}

/// Versions that were published, or would be.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixPublishView {
    pub dry_run: bool,
    pub versions: Vec<CheckedView>,
    pub matrix: PublishedView,
}

/// A version, and what was found about it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckedView {
    pub driver: DriverName,
    pub version: DriverVersion,
    /// The digest of the chart.
    pub digest: Digest,
    /// The minors for which it was rendered.
    pub kubernetes: Vec<String>,
    pub images: Vec<Image>,
    pub comparison: Option<ComparisonView>,
    /// Rights that the version before does not need.
    pub rights: Vec<String>,
    /// What the API server of a cluster was asked about.
    pub tried: Option<String>,
}

/// A version beside the one before it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ComparisonView {
    pub from: DriverVersion,
    pub breaking: Vec<String>,
    pub recreated: Vec<String>,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

impl View for MatrixPublishView {
    const KIND: &'static str = "MatrixPublish";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.versions.iter().map(|one| version(&one.driver, &one.version)).collect())
    }
}

/// The digests of images that were asked of their registries.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixDigestsView {
    pub dry_run: bool,
    pub asked: usize,
    pub found: usize,
    pub written: usize,
    /// Images without a digest, each with why.
    pub missing: Vec<String>,
    /// Null where nothing changed.
    pub matrix: Option<PublishedView>,
}

impl View for MatrixDigestsView {
    const KIND: &'static str = "MatrixDigests";
}

/// Who has signed an index.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MatrixVerifyView {
    pub file: String,
    pub digest: String,
    /// The fingerprint of the key.
    pub signer: String,
}

impl View for MatrixVerifyView {
    const KIND: &'static str = "MatrixVerify";
}

/// Every mistake in an index, and in the charts that it names.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixLintView {
    pub file: String,
    pub good: bool,
    pub findings: Vec<MistakeView>,
    pub charts_checked: usize,
    pub charts_elsewhere: usize,
}

/// A mistake in an index.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MistakeView {
    pub file: String,
    /// From 1, where it is known.
    pub line: Option<u64>,
    /// The version or the driver; empty for the top.
    pub at: String,
    /// The field there; empty where it is about the whole.
    pub field: String,
    pub problem: String,
}

impl View for MatrixLintView {
    const KIND: &'static str = "MatrixLint";
}

/// The images of a version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImageListView {
    pub driver: DriverName,
    pub version: DriverVersion,
    pub images: Vec<String>,
    /// Those whose registry was shut down.
    pub unavailable: Vec<String>,
}

impl View for ImageListView {
    const KIND: &'static str = "ImageList";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.images.clone())
    }
}

/// A chart against the driver's own manifests.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChartComparisonView {
    pub driver: DriverName,
    pub version: DriverVersion,
    pub differences: Vec<DifferenceView>,
    /// Listed deviations that are not there.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub stale: Vec<Deviation>,
}

/// A place where they differ.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DifferenceView {
    #[schemars(with = "Map<String, Value>")]
    pub object: vdo_api::types::ObjectId,
    /// A JSON pointer; empty for the whole object.
    pub path: String,
    pub kind: Kind,
    pub original: Option<Value>,
    pub rendered: Option<Value>,
    /// Whether a deviation intends it.
    pub intended: bool,
    /// Why it is intended.
    pub reason: Option<String>,
}

impl View for ChartComparisonView {
    const KIND: &'static str = "ChartComparison";
}

/// Whether a chart may be published.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChartLintView {
    pub chart: String,
    pub releases: Vec<DriverVersion>,
    pub good: bool,
    pub findings: Vec<ChartMistakeView>,
}

/// A mistake in releases of a chart.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChartMistakeView {
    pub releases: Vec<DriverVersion>,
    pub problem: String,
}

impl View for ChartLintView {
    const KIND: &'static str = "ChartLint";
}
