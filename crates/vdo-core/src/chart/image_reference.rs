// SPDX-License-Identifier: Apache-2.0
//! Computes the image reference of a render from mirrors, overrides and digests, and finds images whose registry was shut down.

use super::opened_chart::Chart;
use super::release::ImageSource;
use serde_json::Value;
use std::collections::BTreeMap;

/// The reference of an image as the cluster should pull it.
///
/// `settings` is the value `images` of the chart: `overrides.<name>` wins, `useRepublished` takes the image from where it was
/// published again, `registry` replaces the registry and keeps the path, `useDigests` adds the digest where the release knows it.
pub(super) fn reference(images: &BTreeMap<String, ImageSource>, settings: Option<&Value>, name: &str) -> Result<String, String> {
    let text = |pointer: &str| {
        settings
            .and_then(|s| s.pointer(pointer))
            .and_then(Value::as_str)
            .filter(|s| !s.is_empty())
    };
    let image = images.get(name).ok_or_else(|| {
        let known: Vec<&str> = images.keys().map(String::as_str).collect();
        format!("the release has no image {name:?}; it has {}", known.join(", "))
    })?;
    let chosen = settings
        .and_then(|s| s.get("overrides"))
        .and_then(|o| o.get(name))
        .and_then(Value::as_str);
    if let Some(chosen) = chosen.filter(|s| !s.is_empty()) {
        return Ok(chosen.to_owned());
    }
    let asked = |key: &str| settings.and_then(|s| s.get(key)).and_then(Value::as_bool).unwrap_or(false);
    let image = match &image.republished {
        Some(again) if asked("useRepublished") => again,
        _ => image,
    };
    let registry = text("/registry").unwrap_or(&image.registry).trim_end_matches('/');
    let reference = image.from(registry);
    Ok(match &image.digest {
        Some(digest) if asked("useDigests") || image.tag.is_empty() => format!("{reference}@{digest}"),
        _ => reference,
    })
}

/// Images that cannot be pulled from where a render takes them, because their registry was shut down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The registry, with a path where only a part of it is gone.
    pub registry: String,
    /// The references.
    pub images: Vec<String>,
    /// Whether each of them was published again elsewhere: the value `images.useRepublished` takes them from there.
    pub republished: bool,
}

/// Which images of a render come from a registry that the chart knows to be shut down.
#[must_use]
pub fn unavailable(chart: &Chart, images: &[String]) -> Vec<Unavailable> {
    let closed = chart.metadata.annotations.get("vdo.vmware.com/closed-registries");
    let registries = closed.into_iter().flat_map(|all| all.split(',')).map(str::trim);
    let is_again = |image: &String| {
        let mut sources = chart.release.images.values();
        sources.any(|source| source.republished.is_some() && source.reference() == *image)
    };
    let of = |registry: &str| {
        let below = format!("{registry}/");
        let gone: Vec<String> = images.iter().filter(|image| image.starts_with(&below)).cloned().collect();
        (!gone.is_empty()).then(|| Unavailable {
            registry: registry.to_owned(),
            republished: gone.iter().all(is_again),
            images: gone,
        })
    };
    registries.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn image_reference_each_setting_selects_registry_tag_and_digest() {
        let digest = vdo_api::types::Digest::of(b"image");
        let images = BTreeMap::from([(
            "driver".to_owned(),
            ImageSource {
                registry: "registry.k8s.io".into(),
                repository: "csi-vsphere/driver".into(),
                tag: "v3.7.3".into(),
                digest: Some(digest.clone()),
                republished: Some(Box::new(ImageSource {
                    registry: "new.example".into(),
                    repository: "driver".into(),
                    tag: "v3.7.3-1".into(),
                    digest: None,
                    republished: None,
                })),
            },
        )]);
        let plain = "registry.k8s.io/csi-vsphere/driver:v3.7.3";
        for (settings, expected) in [
            (json!({}), plain.to_owned()),
            (json!({"registry": "", "overrides": {}}), plain.to_owned()),
            (
                json!({"registry": "r.example/m/"}),
                "r.example/m/csi-vsphere/driver:v3.7.3".to_owned(),
            ),
            (json!({"useDigests": true}), format!("{plain}@{digest}")),
            (
                json!({"useRepublished": true, "useDigests": true}),
                "new.example/driver:v3.7.3-1".to_owned(),
            ),
            (json!({"useRepublished": true, "registry": "r"}), "r/driver:v3.7.3-1".to_owned()),
            (json!({"registry": "r", "overrides": {"driver": "own:1"}}), "own:1".to_owned()),
        ] {
            assert_eq!(reference(&images, Some(&settings), "driver"), Ok(expected), "{settings}");
        }
        assert!(reference(&images, None, "drvier").is_err_and(|e| e.contains("it has driver")));
    }
}
