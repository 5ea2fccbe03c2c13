use crate::types::DriverVersion;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The parts of a release that the engine itself understands. Everything else in it belongs to the templates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Release {
    /// The driver version.
    pub version: DriverVersion,
    /// The day the driver version was released; gives the package its modification times.
    #[serde(default)]
    pub date: Option<String>,
    /// Where the facts were read.
    #[serde(default)]
    pub upstream: Option<Upstream>,
    /// The container images, by the name templates use in `image("…")`.
    #[serde(default)]
    pub images: BTreeMap<String, ImageSource>,
}

/// The manifest a release was made from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Upstream {
    /// The source repository.
    pub repository: String,
    /// The tag in it.
    pub tag: String,
    /// SHA-256 of each manifest file that was compared, by the path in the repository.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Of each file that was compared, the SHA-256 of every object in it: of its JSON with sorted keys, by the object's name.
    #[serde(default)]
    pub objects: BTreeMap<String, BTreeMap<String, String>>,
}

/// One container image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSource {
    /// The registry host; replaced when the user names a mirror.
    pub registry: String,
    /// The path below the registry.
    pub repository: String,
    /// The tag.
    pub tag: String,
    /// The digest of the image index, where it is known.
    #[serde(default)]
    pub digest: Option<crate::types::Digest>,
    /// Where the same image was published again after its first registry was shut down.
    #[serde(default)]
    pub republished: Option<Box<ImageSource>>,
}

impl ImageSource {
    /// As the driver's manifest names it, without a digest.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}/{}:{}", self.registry, self.repository, self.tag)
    }
}
