// SPDX-License-Identifier: Apache-2.0
//! The labels and annotations of owned objects: apply set, digest, and the configuration checksum that restarts pods.

use super::Object;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{
    APPLIED_ANNOTATION, CONFIG_CHECKSUM_ANNOTATION, DRIVER_LABEL, MANAGED_BY, MANAGED_BY_LABEL, PART_OF_LABEL, VOLUME_SETTINGS_ANNOTATION,
};

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
/// The checksum on the workload itself tells with which configuration its pods began; see [`remember_configuration`].
pub fn stamp(objects: &mut [Object], owner: &Owner) {
    objects.iter_mut().for_each(Object::encode_strings);
    let contents: BTreeMap<(String, String, String), String> = objects
        .iter()
        .filter(|o| matches!((o.api_version(), o.kind()), ("v1", "ConfigMap" | "Secret")))
        .map(|o| {
            (
                (o.kind().to_owned(), o.namespace().to_owned(), o.name().to_owned()),
                content(o).digest(&owner.salt).hex(),
            )
        })
        .collect();
    for object in objects.iter_mut() {
        object.set_label(MANAGED_BY_LABEL, MANAGED_BY);
        object.set_label(PART_OF_LABEL, &owner.apply_set);
        object.set_label(DRIVER_LABEL, &owner.driver);
        object.set_label("app.kubernetes.io/part-of", "vdo");
        object.set_label("app.kubernetes.io/version", &owner.version);
        let namespace = object.namespace().to_owned();
        let consumed: String = object
            .pod_spec()
            .map(consumed_by)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(kind, name)| contents.get(&(kind, namespace.clone(), name)).cloned())
            .collect();
        if !consumed.is_empty() {
            let checksum = vdo_api::types::Digest::of(consumed.as_bytes()).hex();
            object.set_annotation(CONFIG_CHECKSUM_ANNOTATION, &checksum);
        }
        seal(object, &owner.salt);
    }
}

/// What pods read of their configuration: a note about it that no pod reads restarts none.
fn content(object: &Object) -> Cow<'_, Object> {
    let mut content = Cow::Borrowed(object);
    if object.annotation(VOLUME_SETTINGS_ANNOTATION).is_some() {
        content.to_mut().remove_annotation(VOLUME_SETTINGS_ANNOTATION);
    }
    content
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

/// Takes over from a live workload of ours with which configuration its pods began. When that is another one than now, the
/// pod template gets the checksum too, and the pods are rolled. A workload that is new, or adopted from another manager, begins
/// with the configuration of now: its template is as its author wrote it, so that taking it over rolls nothing.
pub fn remember_configuration(object: &mut Object, live: &Object, salt: &str) {
    let Some(now) = object.annotation(CONFIG_CHECKSUM_ANNOTATION).map(str::to_owned) else {
        return;
    };
    let began = match (
        live.annotation(CONFIG_CHECKSUM_ANNOTATION),
        live.pod_annotation(CONFIG_CHECKSUM_ANNOTATION),
    ) {
        (Some(began), _) => began.to_owned(),
        (None, Some(_)) => "unknown".to_owned(),
        (None, None) => return,
    };
    if began != now {
        object.set_annotation(CONFIG_CHECKSUM_ANNOTATION, &began);
        object.set_pod_annotation(CONFIG_CHECKSUM_ANNOTATION, &now);
        reseal(object, salt);
    }
}

/// The ConfigMaps and Secrets that a pod reads at its start, by kind and name.
pub(crate) fn consumed_by(pod: &Value) -> BTreeSet<(String, String)> {
    let mut names = BTreeSet::new();
    collect(pod, &mut names);
    names
}

fn collect(value: &Value, names: &mut BTreeSet<(String, String)>) {
    const REFERENCES: [(&str, &str, &str); 8] = [
        ("configMap", "name", "ConfigMap"),
        ("secret", "secretName", "Secret"),
        ("secret", "name", "Secret"),
        ("configMapRef", "name", "ConfigMap"),
        ("secretRef", "name", "Secret"),
        ("configMapKeyRef", "name", "ConfigMap"),
        ("secretKeyRef", "name", "Secret"),
        ("nodePublishSecretRef", "name", "Secret"),
    ];
    match value {
        Value::Object(map) => {
            for (field, key, kind) in REFERENCES {
                if let Some(name) = map.get(field).and_then(|reference| reference.get(key)).and_then(Value::as_str) {
                    names.insert((kind.to_owned(), name.to_owned()));
                }
            }
            map.values().for_each(|value| collect(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn objects(password: &str) -> Vec<Object> {
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
    fn stamp_changed_secret_changes_only_its_consumers() {
        let (before, after) = (objects("b25l"), objects("dHdv"));
        let changed: Vec<String> = before
            .iter()
            .zip(&after)
            .filter(|(a, b)| a.applied() != b.annotation(APPLIED_ANNOTATION))
            .map(|(a, _)| a.to_string())
            .collect();
        assert_eq!(changed, ["Secret ns/s", "DaemonSet ns/consumer"]);
        assert_eq!(
            before[2].value().pointer("/spec/template/metadata"),
            None,
            "pods that mount nothing are left alone"
        );
    }

    #[test]
    fn stamp_changed_configuration_starts_rollout() {
        let [first, second] = ["b25l", "dHdv"].map(|password| objects(password).remove(1));
        assert_eq!(first.pod_annotation(CONFIG_CHECKSUM_ANNOTATION), None, "as its author wrote it");
        let next = |live: &Object, mut wanted: Object| {
            remember_configuration(&mut wanted, live, "uid");
            wanted
        };
        let changed = next(&first, second.clone());
        assert_eq!(
            changed.pod_annotation(CONFIG_CHECKSUM_ANNOTATION),
            second.annotation(CONFIG_CHECKSUM_ANNOTATION)
        );
        assert_eq!(next(&changed, second.clone()), changed, "it comes to rest");
        assert_eq!(next(&changed, first.clone()), first, "and there is a way back");
        let mut bare = changed.clone();
        bare.remove_annotation(CONFIG_CHECKSUM_ANNOTATION);
        assert!(
            next(&bare, second).pod_annotation(CONFIG_CHECKSUM_ANNOTATION).is_some(),
            "what is not known rolls nothing back"
        );
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
