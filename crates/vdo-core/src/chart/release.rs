// SPDX-License-Identifier: Apache-2.0
//! The type `Release`: version, date, upstream manifest and images of one version, and image references as data.
//! `releases.rs` reads the release files.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::types::DriverVersion;

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
    /// The registry host, replaced when the user names a mirror; empty where the manifest names none.
    #[serde(default)]
    pub registry: String,
    /// The path below the registry.
    pub repository: String,
    /// The tag; empty where the manifest has only a digest.
    #[serde(default)]
    pub tag: String,
    /// The digest of the image index, where it is known.
    #[serde(default)]
    pub digest: Option<vdo_api::types::Digest>,
    /// Where the same image was published again after its first registry was shut down.
    #[serde(default)]
    pub republished: Option<Box<ImageSource>>,
}

impl ImageSource {
    /// As the driver's manifest names it, without a digest.
    #[must_use]
    pub fn reference(&self) -> String {
        self.from(&self.registry)
    }

    /// The same from another registry, without a digest.
    pub(super) fn from(&self, registry: &str) -> String {
        let before = if registry.is_empty() {
            String::new()
        } else {
            format!("{registry}/")
        };
        let tag = if self.tag.is_empty() {
            String::new()
        } else {
            format!(":{}", self.tag)
        };
        format!("{before}{}{tag}", self.repository)
    }

    /// The image that a reference names. Without a host it has no registry, and container runtimes look for it on docker.io.
    #[must_use]
    pub fn parse(reference: &str) -> Self {
        let (path, digest) = match reference.split_once('@') {
            Some((path, digest)) => (path, digest.parse().ok()),
            None => (reference, None),
        };
        let end = path.rfind('/').map_or(0, |at| at + 1);
        let (path, tag) = match path[end..].split_once(':') {
            Some((name, tag)) => (&path[..end + name.len()], tag),
            None => (path, ""),
        };
        let host = path
            .split_once('/')
            .filter(|(host, _)| host.contains(['.', ':']) || *host == "localhost");
        let (registry, repository) = host.unwrap_or(("", path));
        Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.to_owned(),
            digest,
            republished: None,
        }
    }

    /// As a release file has it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut image = json!({"registry": self.registry, "repository": self.repository, "tag": self.tag});
        if let Some(digest) = &self.digest {
            image["digest"] = json!(digest);
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_reference_parses_and_is_written_the_same() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (reference, registry, repository, tag, pinned) in [
            (
                "registry.k8s.io/csi-vsphere/driver:v3.7.3".to_owned(),
                "registry.k8s.io",
                "csi-vsphere/driver",
                "v3.7.3",
                false,
            ),
            ("localhost:5000/a:1".to_owned(), "localhost:5000", "a", "1", false),
            ("antrea/agent:v2".to_owned(), "", "antrea/agent", "v2", false),
            ("busybox".to_owned(), "", "busybox", "", false),
            (format!("r.example/a/b@{digest}"), "r.example", "a/b", "", true),
            (format!("r.example/a/b:v1@{digest}"), "r.example", "a/b", "v1", true),
        ] {
            let image = ImageSource::parse(&reference);
            assert_eq!(
                (
                    image.registry.as_str(),
                    image.repository.as_str(),
                    image.tag.as_str(),
                    image.digest.is_some()
                ),
                (registry, repository, tag, pinned)
            );
            let suffix = if pinned { format!("@{digest}") } else { String::new() };
            assert_eq!(image.reference() + &suffix, reference);
            let again: ImageSource = serde_json::from_value(image.to_value()).expect("an image");
            assert_eq!(again, image);
        }
    }
}
