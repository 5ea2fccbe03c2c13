// SPDX-License-Identifier: Apache-2.0
//! The manifest of an image or artifact with its files, and the index, a list of manifests; as data.

use super::{Annotations, Descriptor, TITLE, media};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// An image (configuration and layers) or an artifact (blobs of any kind).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// [`media::MANIFEST`]; Helm leaves it out.
    #[serde(default = "manifest_type")]
    pub media_type: String,
    /// Which kind of artifact it is; images have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// Lowest first.
    pub layers: Vec<Descriptor>,
    /// What the artifact is about; it makes this manifest a referrer of that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Free text by key.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

impl Manifest {
    /// An image.
    #[must_use]
    pub fn image(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: manifest_type(),
            artifact_type: None,
            config,
            layers,
            subject: None,
            annotations: Annotations::new(),
        }
    }

    /// An artifact without a configuration that belongs to another manifest.
    #[must_use]
    pub fn referrer(artifact_type: &str, blob: Descriptor, subject: Descriptor) -> Self {
        Self {
            artifact_type: Some(artifact_type.to_owned()),
            subject: Some(subject),
            ..Self::image(Descriptor::of(media::EMPTY, b"{}"), vec![blob])
        }
    }
}

impl Manifest {
    /// Which kind of artifact it is. Before artifacts had a type of their own, that of the configuration was it.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.artifact_type.as_deref().unwrap_or(&self.config.media_type)
    }

    /// The files of an artifact by their paths: the layers that have a title.
    ///
    /// # Errors
    /// In words, when one is outside of the folder, or is named twice.
    pub fn files(&self) -> Result<Vec<(String, Descriptor)>, String> {
        let mut paths = BTreeSet::new();
        let mut all = Vec::new();
        for layer in &self.layers {
            let Some(path) = layer.annotations.get(TITLE).cloned() else {
                continue;
            };
            let inside = !path.contains('\\') && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
            if !inside {
                return Err(format!("the file {path:?}, which is outside of its folder"));
            }
            if !paths.insert(path.clone()) {
                return Err(format!("two files named {path:?}"));
            }
            all.push((path, layer.clone()));
        }
        Ok(all)
    }
}

/// A list of manifests: the platforms of one image, or all that a layout holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// [`media::INDEX`]; some tools leave it out of `index.json`.
    #[serde(default = "index_type")]
    pub media_type: String,
    /// The manifests, and indexes below this one.
    pub manifests: Vec<Descriptor>,
    /// Free text by key.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

fn manifest_type() -> String {
    media::MANIFEST.to_owned()
}

fn index_type() -> String {
    media::INDEX.to_owned()
}

impl Index {
    /// A list of these.
    #[must_use]
    pub fn new(manifests: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: index_type(),
            manifests,
            annotations: Annotations::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_of_an_image_has_no_field_of_an_artifact() {
        let config = Descriptor::of(media::CONFIG, b"c");
        let text = serde_json::to_string(&Manifest::image(config, Vec::new())).expect("JSON");
        for field in ["artifactType", "subject", "annotations", "platform"] {
            assert!(!text.contains(field), "{text}");
        }
    }

    #[test]
    fn manifest_without_media_type_is_read() {
        let text = r#"{"schemaVersion":2,"config":{"mediaType":"c","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}"#;
        let manifest: Manifest = serde_json::from_str(text).expect("a manifest");
        assert_eq!(manifest.media_type, media::MANIFEST);
    }

    #[test]
    fn index_without_media_type_is_read() {
        let index: Index = serde_json::from_str(r#"{"schemaVersion":2,"manifests":[]}"#).expect("an index");
        assert_eq!(index, Index::new(Vec::new()));
    }
}
