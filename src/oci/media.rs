//! Media types of this room.

/// A list of manifests, one for each platform or artifact.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The manifest of an image or of an artifact.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The configuration of an image.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// A layer: a tar archive, compressed by gzip.
pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The configuration of an artifact that has none: the two bytes `{}`.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// A software bill of materials in SPDX.
pub const SPDX: &str = "application/spdx+json";
