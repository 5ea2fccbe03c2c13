// SPDX-License-Identifier: Apache-2.0
//! Stamps objects with the operator's labels and annotations: the apply set, and the digest of the whole object.
//! `config_checksum.rs` computes the checksum that restarts pods.

use super::Object;
use super::config_checksum::{contents, set_checksum};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use vdo_api::api::{APPLIED_ANNOTATION, DRIVER_LABEL, MANAGED_BY, MANAGED_BY_LABEL, PART_OF_LABEL};

/// Who owns a set of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The id of the apply set, see [`apply_set_id`].
    pub apply_set: String,
    /// The driver.
    pub driver: String,
    /// The version of the driver.
    pub version: String,
    /// Goes into every digest; the UID of the cluster.
    pub salt: String,
}

/// The id of the apply set whose parent is a ConfigMap of this name, as KEP-3659 computes it.
#[must_use]
pub fn apply_set_id(name: &str, namespace: &str) -> String {
    let digest = Sha256::digest(format!("{name}.{namespace}.ConfigMap.").as_bytes());
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(digest))
}

/// Whether an object bears our mark for this apply set.
#[must_use]
pub fn is_owned(object: &Object, apply_set: &str) -> bool {
    object.owner() == Some(apply_set)
}

/// Marks objects as owned, with the texts of Secrets as the API server keeps them: labels, a checksum of the configuration on the workloads that mount it, and the digest of the
/// whole object, in this order, so that a changed configuration also changes the digest of its consumers.
///
/// The checksum on the workload itself tells with which configuration its pods began; see [`remember_configuration`](super::remember_configuration).
pub fn stamp(objects: &mut [Object], owner: &Owner) {
    objects.iter_mut().for_each(Object::encode_strings);
    let contents = contents(objects, &owner.salt);
    for object in objects.iter_mut() {
        object.set_label(MANAGED_BY_LABEL, MANAGED_BY);
        object.set_label(PART_OF_LABEL, &owner.apply_set);
        object.set_label(DRIVER_LABEL, &owner.driver);
        object.set_label("app.kubernetes.io/part-of", "vdo");
        object.set_label("app.kubernetes.io/version", &owner.version);
        set_checksum(object, &contents);
        seal(object, &owner.salt);
    }
}

/// Writes the digest of the whole object into its annotation, which must not be there.
pub(super) fn seal(object: &mut Object, salt: &str) {
    let digest = object.digest(salt).to_string();
    object.set_annotation(APPLIED_ANNOTATION, &digest);
}

/// Writes the digest of an object that was changed.
pub(crate) fn reseal(object: &mut Object, salt: &str) {
    object.remove_annotation(APPLIED_ANNOTATION);
    seal(object, salt);
}

/// Whether an object is what the digest in its annotation says.
#[must_use]
pub fn is_sealed(object: &Object, salt: &str) -> bool {
    let Some(applied) = object.applied() else { return false };
    let mut bare = object.clone();
    bare.remove_annotation(APPLIED_ANNOTATION);
    if bare.digest(salt).to_string() == applied {
        return true;
    }
    // It had no annotation before.
    let mut value = bare.into_value();
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    if value.pointer("/metadata/annotations").is_some_and(is_empty)
        && let Some(metadata) = value["metadata"].as_object_mut()
    {
        metadata.shift_remove("annotations");
    }
    Object::new(value).is_ok_and(|bare| bare.digest(salt).to_string() == applied)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::manifest) fn objects(password: &str) -> Vec<Object> {
        let workload = |name: &str, volumes: Value| json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "ns"}, "spec": {"template": {"spec": {"volumes": volumes}}}});
        let mut all: Vec<Object> = [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}, "data": {"password": password}}),
            workload("consumer", json!([{"name": "v", "secret": {"secretName": "s"}}])),
            workload("other", json!([{"name": "v", "emptyDir": {}}])),
        ]
        .into_iter()
        .map(|value| Object::new(value).expect("an object"))
        .collect();
        let owner = Owner {
            apply_set: apply_set_id("inventory", "vdo"),
            driver: "d".into(),
            version: "1.0.0".into(),
            salt: "uid".into(),
        };
        stamp(&mut all, &owner);
        all
    }

    #[test]
    fn object_is_sealed_until_something_of_it_is_changed() {
        for object in objects("b25l") {
            assert!(is_sealed(&object, "uid"), "{object}");
            assert!(!is_sealed(&object, "another"), "{object}");
            let mut changed = object.clone();
            changed.set_label("app.kubernetes.io/version", "9.9.9");
            assert!(!is_sealed(&changed, "uid"), "{object}");
            changed = object;
            changed.remove_annotation(APPLIED_ANNOTATION);
            assert!(!is_sealed(&changed, "uid"), "{changed}");
        }
    }

    #[test]
    fn ownership_needs_both_labels() {
        let all = objects("b25l");
        assert!(all.iter().all(|o| is_owned(o, &apply_set_id("inventory", "vdo"))));
        assert!(!is_owned(&all[0], &apply_set_id("inventory", "elsewhere")));
    }
}
