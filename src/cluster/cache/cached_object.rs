// SPDX-License-Identifier: Apache-2.0
//! The form in which the cache stores one object (tree, JSON text or identity only), and the comparison of two states.

use super::memory_limits::{Room, Share};
use super::transform::trim;
use crate::cluster::bounded_deserialize::{WHOLE, identity_only, place, weight};
use serde_json::Value;
use std::sync::Arc;
use vdo_core::manifest::Object;

/// An object as the cache keeps it.
#[derive(Clone)]
pub(super) struct CachedObject {
    content: Content,
    /// The room that it takes; none for one that is reduced to its identity.
    _share: Option<Arc<Share>>,
}

#[derive(Clone, PartialEq)]
enum Content {
    Whole(Object),
    /// Of a kind with many objects: the fields that are looked at, as JSON. A tree takes ten times the memory.
    Text(Arc<str>),
}

/// How much an object may take of which a few fields are kept, as a tree. A node has 10 KiB, a broken pod of the CSI driver 60.
const SMALL: usize = 128 << 10;

impl CachedObject {
    /// An object that takes its part of this room. One that is too large, or for which no room is left, is reduced to its identity; `false`
    /// then.
    pub(super) fn new(object: Object, room: &Room) -> (Self, bool) {
        let (content, bytes) = match trim(&object) {
            Some(small) => {
                let (weight, text) = (weight(small.value()), small.value().to_string());
                let fits = weight <= SMALL;
                // All of them are never trees at the same time.
                let bytes = text.len().max(weight / 4);
                (Content::Text(text.into()), fits.then_some(bytes))
            }
            None => {
                let weight = weight(object.value());
                (Content::Whole(object.clone()), Some(weight))
            }
        };
        if let Some(share) = bytes.and_then(|bytes| room.take(bytes)) {
            let whole = Self {
                content,
                _share: Some(Arc::new(share)),
            };
            return (whole, true);
        }
        (Self::identity(&object), false)
    }

    fn identity(object: &Object) -> Self {
        let mut value = object.value().clone();
        identity_only(&mut value);
        let content = match place(object.kind()) {
            WHOLE => Object::new(value).map_or_else(|_| Content::Text("".into()), Content::Whole),
            _ => {
                // It changes with every heartbeat.
                value["metadata"]
                    .as_object_mut()
                    .map(|metadata| metadata.shift_remove("resourceVersion"));
                Content::Text(value.to_string().into())
            }
        };
        Self { content, _share: None }
    }

    /// The one that is known, where it is the same: then nothing is kept twice.
    pub(super) fn or_known(self, known: Option<&Self>) -> Self {
        let same = |known: &&Self| match (&known.content, &self.content) {
            (Content::Whole(one), Content::Whole(other)) => one.resource_version() == other.resource_version() && one == other,
            (one, other) => one == other,
        };
        known.filter(same).cloned().unwrap_or(self)
    }

    pub(super) fn object(&self) -> Option<Object> {
        match &self.content {
            Content::Whole(object) => Some(object.clone()),
            Content::Text(text) => Object::new(serde_json::from_str(text).ok()?).ok(),
        }
    }

    /// Whether nothing but the resource version differs, which changes with every heartbeat.
    pub(super) fn means(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Whole(one), Content::Whole(other)) => same_meaning(one.value(), other.value()),
            (one, other) => one == other,
        }
    }
}

fn same_meaning(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    let equal = |(key, value): (&String, &Value)| match (key.as_str(), new.get(key)) {
        ("metadata", Some(other)) => same_metadata(value, other),
        (_, other) => other == Some(value),
    };
    old.len() == new.len() && old.iter().all(equal)
}

/// The resource version is always there, so the same number of fields are the same fields.
fn same_metadata(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    old.len() == new.len()
        && old
            .iter()
            .all(|(key, value)| key == "resourceVersion" || new.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Select, Watch};
    use serde_json::json;

    fn kept(kind: &str, version: &str, more: &Value) -> CachedObject {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "resourceVersion": version}, "spec": more});
        let room = super::super::memory_limits::Rooms::default().of(&Watch::new("v1", kind, "", Select::All));
        CachedObject::new(Object::new(value).expect("an object"), &room).0
    }

    /// Anyone may label a pod.
    #[test]
    fn watch_cache_object_that_is_too_large_is_reduced_to_its_identity() {
        let labels: serde_json::Map<String, Value> = (0..5000).map(|number| (format!("l{number}"), "x".into())).collect();
        let room = super::super::memory_limits::Rooms::default().of(&Watch::new("v1", "Pod", "", Select::All));
        for (kind, fits) in [("Pod", false), ("ConfigMap", true)] {
            let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": labels});
            let value = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "status": {"phase": "Running"}});
            let (kept, whole) = CachedObject::new(Object::new(value).expect("an object"), &room);
            let kept = kept.object().expect("an object");
            assert_eq!((kept.name(), kept.uid(), whole), ("a", "u", fits), "{kind}");
            assert_eq!(kept.value().get("status").is_some(), fits, "{kind}");
        }
        let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "x".repeat(1 << 20)}});
        let all: Vec<_> = (0..100)
            .map(|_| CachedObject::new(Object::new(large.clone()).expect("an object"), &room))
            .collect();
        assert_eq!(all.iter().filter(|(_, whole)| *whole).count(), 23, "of 24 MiB");
        drop(all);
        assert!(
            CachedObject::new(Object::new(large).expect("an object"), &room).1,
            "room is given back"
        );
    }

    #[test]
    fn watch_cache_heartbeat_only_update_is_no_change() {
        for (kind, field) in [("ConfigMap", "x"), ("Node", "providerID")] {
            let (one, beat) = (kept(kind, "1", &json!({field: "p"})), kept(kind, "2", &json!({field: "p"})));
            assert!(one.means(&beat), "{kind}");
            assert!(!one.means(&kept(kind, "2", &json!({field: "q"}))), "{kind}");
            let object = one.object().expect("an object");
            assert_eq!((object.kind(), object.text(&format!("/spec/{field}"))), (kind, "p"));
        }
    }

    #[test]
    fn watch_cache_whole_object_keeps_newest_resource_version() {
        let beat = kept("ConfigMap", "2", &json!({"x": "p"})).or_known(Some(&kept("ConfigMap", "1", &json!({"x": "p"}))));
        let version = beat.object().map(|object| object.resource_version().to_owned());
        assert_eq!(version.as_deref(), Some("2"), "of an object that is kept whole the version counts");
    }
}
