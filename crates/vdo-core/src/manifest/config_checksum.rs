// SPDX-License-Identifier: Apache-2.0
//! Computes the checksum of the ConfigMaps and Secrets that a workload mounts; a new checksum restarts its pods.

use super::Object;
use super::labels::reseal;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{CONFIG_CHECKSUM_ANNOTATION, VOLUME_SETTINGS_ANNOTATION};
use vdo_api::types::Digest;

/// Digests of ConfigMaps and Secrets by kind, namespace and name.
type Contents = BTreeMap<(String, String, String), String>;

/// The digests of the ConfigMaps and Secrets among these objects.
pub(super) fn contents(objects: &[Object], salt: &str) -> Contents {
    objects
        .iter()
        .filter(|o| matches!((o.api_version(), o.kind()), ("v1", "ConfigMap" | "Secret")))
        .map(|o| {
            (
                (o.kind().to_owned(), o.namespace().to_owned(), o.name().to_owned()),
                content(o).digest(salt).hex(),
            )
        })
        .collect()
}

/// What pods read of their configuration: a note about it that no pod reads restarts none.
fn content(object: &Object) -> Cow<'_, Object> {
    let mut content = Cow::Borrowed(object);
    if object.annotation(VOLUME_SETTINGS_ANNOTATION).is_some() {
        content.to_mut().remove_annotation(VOLUME_SETTINGS_ANNOTATION);
    }
    content
}

/// Writes a checksum of the configuration on a workload that mounts it.
pub(super) fn set_checksum(object: &mut Object, contents: &Contents) {
    let namespace = object.namespace().to_owned();
    let consumed: String = object
        .pod_spec()
        .map(consumed_by)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(kind, name)| contents.get(&(kind, namespace.clone(), name)).cloned())
        .collect();
    if !consumed.is_empty() {
        let checksum = Digest::of(consumed.as_bytes()).hex();
        object.set_annotation(CONFIG_CHECKSUM_ANNOTATION, &checksum);
    }
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
    use crate::manifest::labels::tests::objects;
    use vdo_api::api::APPLIED_ANNOTATION;

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
}
