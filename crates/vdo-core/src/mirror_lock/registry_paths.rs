// SPDX-License-Identifier: Apache-2.0
//! Computes the path of each image and of the matrix in the registry of a mirror, and refuses two images with the same path.

use super::{Image, Lock};
use crate::chart::ImageSource;
use std::borrow::Cow;
use std::collections::BTreeMap;
use vdo_api::types::Remedy;

/// Where the matrix lies below the prefix.
pub const MATRIX: &str = "vdo/matrix:stable";

/// Two images that a prefix would give one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{first} and {second} are different images, but both would have the path {path} in the mirror; nothing was written")]
pub struct Collision {
    first: String,
    second: String,
    path: String,
}

impl Remedy for Collision {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(
            "Mirror the driver versions that use these two images to two different prefixes: \
             vdoctl mirror prune --driver removes the versions that --driver does not select."
                .into(),
        )
    }
}

/// Where an image lies below the prefix: its path and tag, as `images.registry` of a specification finds it.
#[must_use]
pub fn placed(reference: &str) -> String {
    let image = ImageSource::parse(reference);
    let host = if image.registry.is_empty() { 0 } else { image.registry.len() + 1 };
    reference.get(host..).unwrap_or(reference).to_owned()
}

/// All images of a mirror by their places.
///
/// # Errors
/// When two of them would lie in one place.
pub fn places(lock: &Lock) -> Result<BTreeMap<String, &Image>, Collision> {
    let mut all: BTreeMap<String, &Image> = BTreeMap::new();
    for image in &lock.images {
        let path = placed(&image.reference);
        let reserved = path == MATRIX;
        let other = all.insert(path.clone(), image).filter(|other| other.digest != image.digest);
        if let Some(first) = other.map(|other| other.reference.clone()).or(reserved.then(|| "the matrix".into())) {
            return Err(Collision {
                first,
                second: image.reference.clone(),
                path,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::Digest;

    fn lock(images: &[(&str, &[u8])]) -> Lock {
        let mut lock = Lock::of("embedded".into(), Digest::of(b"index"), jiff::Timestamp::UNIX_EPOCH);
        lock.images = images
            .iter()
            .map(|(reference, content)| Image {
                reference: (*reference).to_owned(),
                digest: Digest::of(content),
                whole: None,
                from: None,
            })
            .collect();
        lock
    }

    #[test]
    fn image_place_is_path_and_tag_without_the_registry() {
        for (reference, expected) in [
            ("registry.k8s.io/csi-vsphere/driver:v3.7.3", "csi-vsphere/driver:v3.7.3"),
            ("127.0.0.1:5000/a/b:1", "a/b:1"),
            ("busybox:1", "busybox:1"),
            ("library/busybox:1", "library/busybox:1"),
            ("r.example/a@sha256:00", "a@sha256:00"),
        ] {
            assert_eq!(placed(reference), expected);
        }
    }

    #[test]
    fn places_that_two_images_would_share_are_refused_and_the_same_image_twice_is_not() {
        assert!(places(&lock(&[("a.example/x:1", b"1"), ("b.example/x:1", b"1"), ("b.example/x:2", b"2")])).is_ok());
        let error = places(&lock(&[("a.example/x:1", b"1"), ("b.example/x:1", b"2")])).expect_err("they collide");
        let text = error.to_string();
        assert!(
            ["a.example/x:1", "b.example/x:1", "nothing was written"]
                .iter()
                .all(|part| text.contains(part)),
            "{text}"
        );
        assert!(places(&lock(&[("a.example/vdo/matrix:stable", b"1")])).is_err());
    }
}
