// SPDX-License-Identifier: Apache-2.0
//! Sets the digest of the mirror's lock on every image of rendered objects, and finds images outside of the mirror's registry.

use super::Lock;
use super::registry_paths::placed;
use crate::chart;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Gives every image of the objects the digest that it had when the mirror was pulled, so that a tag that moves changes nothing. `registry` is
/// where the images are pulled from, when that is named. What has a digest already, and what is not in the mirror, stays as it is.
pub fn pin(objects: &mut [Value], lock: &Lock, registry: Option<&str>) {
    let named = |reference: &str| match registry {
        Some(registry) => format!("{}/{}", registry.trim_end_matches('/'), placed(reference)),
        None => reference.to_owned(),
    };
    let digests: BTreeMap<String, String> = lock
        .images
        .iter()
        .map(|image| (named(&image.reference), image.digest.to_string()))
        .collect();
    chart::for_each_image(objects, &mut |image| {
        if let Some(digest) = digests.get(image.as_str()) {
            *image = format!("{image}@{digest}");
        }
    });
}

/// The images of the objects that are not pulled from below this registry and path.
#[must_use]
pub fn outside<'a>(objects: impl IntoIterator<Item = &'a Value>, registry: &str) -> Vec<String> {
    let below = format!("{}/", registry.trim_end_matches('/'));
    let each = objects.into_iter().flat_map(|object| chart::images(std::slice::from_ref(object)));
    let all: BTreeSet<String> = each.filter(|image| !image.starts_with(&below)).collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror_lock::Image;
    use serde_json::json;
    use vdo_api::types::Digest;

    fn pods(images: [&str; 3]) -> Vec<Value> {
        let [a, b, c] = images;
        vec![
            json!({"kind": "Deployment", "spec": {"template": {"spec": {
                "initContainers": [{"image": a}], "containers": [{"image": b}, {"name": "without"}]}}}}),
            json!({"kind": "Pod", "spec": {"containers": [{"image": c}]}}),
        ]
    }

    #[test]
    fn images_of_the_lock_get_their_digest_wherever_they_are_pulled_from() {
        let digest = Digest::of(b"driver");
        let mut lock = Lock::of("embedded".into(), Digest::of(b"index"), jiff::Timestamp::UNIX_EPOCH);
        lock.images.push(Image {
            reference: "registry.k8s.io/csi/driver:v1".into(),
            digest: digest.clone(),
            whole: None,
            from: None,
        });
        let mut objects = pods([
            "r.example/vsphere/csi/driver:v1",
            "registry.k8s.io/csi/driver:v1",
            "r.example/vsphere/other:v1",
        ]);
        pin(&mut objects, &lock, Some("r.example/vsphere"));
        let pinned = format!("r.example/vsphere/csi/driver:v1@{digest}");
        assert_eq!(
            objects,
            pods([&pinned, "registry.k8s.io/csi/driver:v1", "r.example/vsphere/other:v1"])
        );
        let mut again = objects.clone();
        pin(&mut again, &lock, Some("r.example/vsphere"));
        assert_eq!(again, objects, "what has a digest stays");
        pin(&mut objects, &lock, None);
        let named = format!("registry.k8s.io/csi/driver:v1@{digest}");
        assert_eq!(objects, pods([&pinned, &named, "r.example/vsphere/other:v1"]));
    }

    #[test]
    fn images_outside_are_those_that_are_not_below_the_registry() {
        let objects = pods(["r.example/vsphere/a:1", "r.example/vsphere-other/b:1", "docker.io/c:1"]);
        assert_eq!(
            outside(&objects, "r.example/vsphere"),
            ["docker.io/c:1", "r.example/vsphere-other/b:1"]
        );
    }
}
