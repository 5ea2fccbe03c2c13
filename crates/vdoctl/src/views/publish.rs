// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl chart`, and of `vdoctl matrix` lint, init, publish, withdraw, deprecate and verify.

use super::super::output::View;
use super::matrix::version;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use vdo_api::types::{Digest, DriverName, DriverVersion};
use vdo_core::chart::compare::{Deviation, Kind};
use vdo_core::matrix::Image;

/// A matrix that was published, or that would be published.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PublishedView {
    pub version: u64,
    pub generated: Option<Timestamp>,
    pub expires: Option<Timestamp>,
    /// The digest of the index.
    pub digest: Digest,
    /// The fingerprint of the key that has signed the index.
    pub signer: Option<Digest>,
}

/// A new matrix.
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

/// A version that was withdrawn or deprecated.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixMarkView {
    pub driver: DriverName,
    pub version: DriverVersion,
    /// `withdrawn` or `deprecated`.
    pub state: String,
    /// The version to use instead.
    #[serde(rename = "use")]
    pub instead: Option<DriverVersion>,
    pub dry_run: bool,
    pub matrix: PublishedView,
}

impl View for MatrixMarkView {
    const KIND: &'static str = "MatrixMark";
}

/// The versions that were published, or that would be published.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixPublishView {
    pub dry_run: bool,
    pub versions: Vec<CheckedView>,
    pub matrix: PublishedView,
}

/// A version, with the results of its checks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckedView {
    pub driver: DriverName,
    pub version: DriverVersion,
    /// The digest of the chart.
    pub digest: Digest,
    /// The Kubernetes minors for which the chart was rendered.
    pub kubernetes: Vec<String>,
    pub images: Vec<Image>,
    pub comparison: Option<ComparisonView>,
    /// The rights that the previous version does not need.
    pub rights: Vec<String>,
    /// A sentence about the dry run in a cluster; null if no cluster was named.
    pub tried: Option<String>,
}

/// The differences between a version and the previous version.
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

/// The digests of images that were requested from the registries.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MatrixDigestsView {
    pub dry_run: bool,
    pub asked: usize,
    pub found: usize,
    pub written: usize,
    /// The images without a digest, each with the reason.
    pub missing: Vec<String>,
    /// The matrix with the new digests; null if nothing changed.
    pub matrix: Option<PublishedView>,
}

impl View for MatrixDigestsView {
    const KIND: &'static str = "MatrixDigests";
}

/// The key that has signed an index.
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

/// Every mistake in an index, and in the charts that the index names.
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
    /// The number of the line, from 1; null if the line is unknown.
    pub line: Option<u64>,
    /// The version or the driver with the mistake; empty if the mistake is at the top level.
    pub at: String,
    /// The field with the mistake; empty if the mistake is not in a single field.
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
    /// The images whose registry was shut down.
    pub unavailable: Vec<String>,
}

impl View for ImageListView {
    const KIND: &'static str = "ImageList";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.images.clone())
    }
}

/// The comparison of a chart with the driver's own manifests.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChartComparisonView {
    pub driver: DriverName,
    pub version: DriverVersion,
    pub differences: Vec<DifferenceView>,
    /// The deviations that the chart lists and that do not exist.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub stale: Vec<Deviation>,
}

/// A difference between the chart and the driver's own manifests.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DifferenceView {
    #[schemars(with = "Map<String, Value>")]
    pub object: vdo_api::types::ObjectId,
    /// A JSON pointer; empty for the whole object.
    pub path: String,
    pub kind: Kind,
    pub original: Option<Value>,
    pub rendered: Option<Value>,
    /// Whether the chart lists the difference as a deviation.
    pub intended: bool,
    /// Why the difference is intended.
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
