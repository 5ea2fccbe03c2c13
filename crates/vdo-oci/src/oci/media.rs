// SPDX-License-Identifier: Apache-2.0
//! The constants for media types: OCI, Docker, Helm charts, Sigstore bundles, CycloneDX and the artifacts of VDO.

/// A list of manifests, one for each platform or artifact.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The manifest of an image or of an artifact.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// A list of manifests, as Docker calls it.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// The manifest of an image, as Docker calls it.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// The configuration of an image.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// A layer: a tar archive, compressed by gzip.
pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The configuration of an artifact that has none: the two bytes `{}`.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// What is in it.
pub const EMPTY_JSON: &[u8] = b"{}";
/// A compatibility matrix with its signatures and charts.
pub const MATRIX: &str = "application/vnd.vdo.matrix.v1";
/// The index of a compatibility matrix.
pub const MATRIX_INDEX: &str = "application/vnd.vdo.matrix.index.v1+yaml";
/// A signature beside an index: the base64 of it alone.
pub const SIGNATURE: &str = "application/vnd.vdo.signature.v1+base64";
/// A Sigstore bundle: a signature with what belongs to it.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// What Helm calls the configuration of a chart: its `Chart.yaml` as JSON.
pub const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// The package of a chart.
pub const HELM_CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// A software bill of materials in CycloneDX.
pub const CYCLONEDX: &str = "application/vnd.cyclonedx+json";
