// SPDX-License-Identifier: Apache-2.0
//! Marks adopted objects with the tool that made them, and decides which of them stay when they are no longer desired.
//! The mark is an annotation on the object itself, so that it outlives the inventory.

use super::{Entry, Ownership, ownership};
use crate::manifest::{Object, is_owned, reseal};
use serde_json::Value;
use std::collections::BTreeSet;
use vdo_api::api::{
    ADOPTED_FROM_ANNOTATION, APPLIED_ANNOTATION, DRIVER_LABEL, MANAGED_BY_LABEL, PART_OF_LABEL, RELEASED_ANNOTATION,
    VOLUME_SETTINGS_ANNOTATION,
};
use vdo_api::types::{ById, Ids, ObjectId};

/// Kinds that workloads of others use beside the driver.
const SHARED: [&str; 7] = [
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
];

/// The labels by which an object is known to be ours.
pub const OWN_LABELS: [&str; 3] = [MANAGED_BY_LABEL, PART_OF_LABEL, DRIVER_LABEL];

/// The annotations that only mean something to the operator.
pub const OWN_ANNOTATIONS: [&str; 3] = [APPLIED_ANNOTATION, ADOPTED_FROM_ANNOTATION, VOLUME_SETTINGS_ANNOTATION];

/// An object as another owner would write it: without our marks.
#[must_use]
pub fn unmarked(object: &Object) -> Value {
    let mut value = object.value().clone();
    for (field, marks) in [("labels", &OWN_LABELS[..]), ("annotations", &OWN_ANNOTATIONS[..])] {
        let pointer = format!("/metadata/{field}");
        let Some(map) = value.pointer_mut(&pointer).and_then(Value::as_object_mut) else {
            continue;
        };
        map.retain(|key, _| !marks.contains(&key.as_str()));
        if map.is_empty()
            && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.shift_remove(field);
        }
    }
    value
}

/// Marks a desired object whose live one another tool made, with the name of that tool. One that the inventory has, by its UID, was made by us
/// even if its labels were edited, and so was one that an uninstallation left.
pub fn remember_adoption(desired: &mut Object, live: &Object, known: Option<&Entry>, apply_set: &str, salt: &str) {
    let is_known = known.is_some_and(|entry| entry.uid.as_deref() == Some(live.uid())) || live.annotation(RELEASED_ANNOTATION).is_some();
    let from = match (adopted_from(live), ownership(live, apply_set)) {
        (_, Ownership::Foreign { .. }) => return,
        (Some(from), _) => from.to_owned(),
        (None, Ownership::Adoptable { how }) if !is_known => how.to_string(),
        (None, Ownership::Adoptable { .. } | Ownership::Ours) => return,
    };
    if adopted_from(desired) != Some(&from) {
        desired.set_annotation(ADOPTED_FROM_ANNOTATION, &from);
        reseal(desired, salt);
    }
}

/// The tool that made an object.
#[must_use]
pub fn adopted_from(object: &Object) -> Option<&str> {
    object.annotation(ADOPTED_FROM_ANNOTATION).filter(|from| !from.is_empty())
}

/// The drivers that are left running when they are not desired any more: a workload of theirs was there before us.
#[must_use]
pub fn left_running<'a>(inventory: &'a ById<Entry>, live: &ById<Object>, desired: &Ids, apply_set: &str) -> BTreeSet<&'a str> {
    let mut all = BTreeSet::new();
    for (id, entry) in inventory {
        let was_there = |live: &Object| live.pod_spec().is_some() && is_owned(live, apply_set) && adopted_from(live).is_some();
        if live.get(id).is_some_and(was_there) {
            all.insert(entry.driver.as_str());
        }
    }
    all.retain(|driver| !inventory.iter().any(|(id, entry)| entry.driver == *driver && desired.contains(id)));
    all
}

/// Why an object that is not desired any more stays, if it was adopted or belongs to a driver that was.
pub(super) fn stays(id: &ObjectId, entry: &Entry, live: &Object, is_desired: bool, left: &BTreeSet<&str>) -> Option<String> {
    if left.contains(entry.driver.as_str()) {
        return Some(format!("{} was installed before VDO, and keeps running without VDO", entry.driver));
    }
    let from = adopted_from(live)?;
    (!is_desired || SHARED.contains(&id.kind())).then(|| format!("it was adopted from {from}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::is_sealed;
    use serde_json::{Value, json};

    fn object(metadata: &Value) -> Object {
        let mut value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"k": "v"}});
        for (key, part) in metadata.as_object().into_iter().flatten() {
            value["metadata"][key] = part.clone();
        }
        Object::new(value).expect("an object")
    }

    /// The mark is set by what is found, kept while the object is ours, and part of what is applied.
    #[test]
    fn adopted_object_bears_the_name_of_the_tool_that_made_it() {
        let ours = |from: &str| {
            json!({"labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/part-of": "set"},
                "annotations": {ADOPTED_FROM_ANNOTATION: from}})
        };
        let known = Entry {
            api_version: "v1".into(),
            driver: "vsphere-csi".into(),
            wave: 0,
            uid: Some("known".into()),
            applied: None,
        };
        for (live, expected) in [
            (json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}}), Some("Helm")),
            (json!({}), Some("an unknown manager")),
            (json!({"uid": "recreated"}), Some("an unknown manager")),
            // We made it, and left it behind when we were removed.
            (json!({"annotations": {RELEASED_ANNOTATION: "true"}}), None),
            // A user has taken our labels off.
            (json!({"uid": "known"}), None),
            (
                json!({"uid": "known", "annotations": {ADOPTED_FROM_ANNOTATION: "Helm"}}),
                Some("Helm"),
            ),
            (ours("Helm"), Some("Helm")),
            (ours(""), None),
            (json!({"labels": {"argocd.argoproj.io/instance": "a"}}), None),
        ] {
            let mut desired = object(&json!({}));
            reseal(&mut desired, "salt");
            let before = desired.clone();
            remember_adoption(&mut desired, &object(&live), Some(&known), "set", "salt");
            assert_eq!(adopted_from(&desired), expected, "{live}");
            assert!(is_sealed(&desired, "salt"), "{live}");
            assert_eq!(desired.applied() != before.applied(), expected.is_some(), "{live}");
        }
    }
}
