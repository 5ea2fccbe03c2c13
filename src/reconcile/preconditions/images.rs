// SPDX-License-Identifier: Apache-2.0
//! ImagesMirrored: whether the images of the drivers are pulled from the mirror registry of `spec.images.registry` (pure).

use vdo_api::api::{ConditionType, Reason, VDOConfigSpec};
use vdo_core::mirror_lock::{Lock, outside};
use vdo_core::plan::Desired;
use vdo_core::status::Precondition;

const KIND: ConditionType = ConditionType::ImagesMirrored;

/// What is known of the images of these objects.
pub(in crate::reconcile) fn mirrored<'a>(
    spec: &VDOConfigSpec,
    lock: Option<&Lock>,
    desired: impl Iterator<Item = &'a Desired>,
) -> Precondition {
    let registry = spec.images.as_ref().and_then(|images| images.registry.as_deref());
    let fails = |message: String| Precondition::fails(KIND, Reason::ImagesOutsideMirror, message);
    let Some(registry) = registry else {
        return match lock {
            None => Precondition {
                kind: KIND,
                holds: None,
                reason: Reason::NotRequested,
                message: "spec.images.registry names no mirror".into(),
            },
            Some(_) => {
                fails("the matrix comes from a mirror, but the images do not: set spec.images.registry to HOST/PREFIX of the mirror".into())
            }
        };
    };
    let found = outside(desired.map(|desired| desired.object.value()), registry);
    match found.as_slice() {
        [] => Precondition::holds(KIND, format!("all images are pulled from {registry}")),
        images => fails(format!(
            "these images are not pulled from {registry}: {}. Remove the overrides of these images, or mirror the images and override them with names that begin with {registry}/",
            images.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::api::Images;
    use vdo_api::types::Digest;
    use vdo_core::manifest::Object;

    fn reported(registry: Option<&str>, lock: bool, image: &str) -> (Option<bool>, Reason, String) {
        let spec = VDOConfigSpec {
            images: Some(Images {
                registry: registry.map(Into::into),
                pull_secrets: Vec::new(),
            }),
            ..VDOConfigSpec::default()
        };
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "a"}, "spec": {"containers": [{"image": image}]}});
        let desired = [Desired {
            wave: 0,
            driver: "toy".into(),
            object: Object::new(pod).expect("an object"),
        }];
        let lock = lock.then(|| Lock::of("embedded".into(), Digest::of(b""), jiff::Timestamp::UNIX_EPOCH));
        let reported = mirrored(&spec, lock.as_ref(), desired.iter());
        (reported.holds, reported.reason, reported.message)
    }

    #[test]
    fn images_outside_of_the_registry_that_is_named_are_listed() {
        let (holds, reason, message) = reported(Some("r.example/m"), false, "docker.io/a:1");
        assert_eq!((holds, reason), (Some(false), Reason::ImagesOutsideMirror));
        assert!(message.contains("docker.io/a:1"), "{message}");
        assert_eq!(reported(Some("r.example/m"), true, "r.example/m/a:1@sha256:0").0, Some(true));
        assert_eq!(reported(None, false, "docker.io/a:1").0, None);
        let (holds, _, message) = reported(None, true, "docker.io/a:1");
        assert!(holds == Some(false) && message.contains("spec.images.registry"), "{message}");
    }
}
