// SPDX-License-Identifier: Apache-2.0
//! Decides which live objects are in sync with the desired objects, also where the server stores a value in its own form.

use super::lock;
use serde_json::Value;
use std::sync::Mutex;
use vdo_api::types::{ById, Ids};
use vdo_core::manifest::{Object, object_differences};

/// The objects that are in sync.
#[derive(Default)]
pub struct InSync {
    /// Where the server has written a value in its own way, so that a comparison would see a difference for ever: the digest of
    /// what is desired, and the live object. Losing this costs an apply.
    server_normalized: Mutex<ById<(String, Value)>>,
}

impl InSync {
    /// Takes the answer to an apply: what the server made of it is in sync.
    pub(in crate::cluster) fn answered(&self, desired: &Object, live: &Object) {
        if object_differences(desired, live).is_empty() {
            lock(&self.server_normalized).swap_remove(live.identity());
        } else {
            self.settle(desired, live);
        }
    }

    /// Remembers that a live object, as it is now, is in sync, whatever a comparison says.
    pub fn settle(&self, desired: &Object, live: &Object) {
        let state = (desired.applied().unwrap_or_default().to_owned(), meaning(live));
        lock(&self.server_normalized).insert(live.id(), state);
    }

    /// Those of these pairs of a desired and a live object that are in sync, by a comparison or by the server's answer for the object as it
    /// is now.
    #[must_use]
    pub fn among<'a>(&self, pairs: impl IntoIterator<Item = (&'a Object, &'a Object)>) -> Ids {
        let server_normalized = lock(&self.server_normalized);
        let in_sync = |(desired, live): &(&Object, &Object)| {
            let confirmed = |(was, seen): &(String, Value)| Some(was.as_str()) == desired.applied() && *seen == meaning(live);
            (desired.applied() == live.applied() && object_differences(desired, live).is_empty())
                || server_normalized.get(live.identity()).is_some_and(confirmed)
        };
        pairs.into_iter().filter(in_sync).map(|(_, live)| live.id()).collect()
    }
}

/// What an apply decides: the object without its status and without what the server counts up.
fn meaning(object: &Object) -> Value {
    let mut value = object.value().clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for counted in ["resourceVersion", "generation", "managedFields"] {
            metadata.shift_remove(counted);
        }
    }
    if let Some(map) = value.as_object_mut() {
        map.shift_remove("status");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::api::APPLIED_ANNOTATION;

    fn object(data: &str, applied: &str, version: &str) -> Object {
        let metadata = json!({"name": "a", "namespace": "n", "resourceVersion": version, "annotations": {APPLIED_ANNOTATION: applied}});
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": data}})).expect("an object")
    }

    fn wanted(data: &str, applied: &str) -> Object {
        let mut value = object(data, applied, "").into_value();
        value["metadata"].as_object_mut().expect("metadata").shift_remove("resourceVersion");
        Object::new(value).expect("an object")
    }

    #[test]
    fn in_sync_object_stays_in_sync_until_change() {
        let all = InSync::default();
        let in_sync = |wanted: &Object, live: &Object| !all.among([(wanted, live)]).is_empty();
        let (one, live) = (wanted("1", "d1"), object("1", "d1", "5"));
        assert!(in_sync(&one, &live));
        assert!(!in_sync(&one, &object("2", "d1", "6")), "another manager changed it");
        assert!(!in_sync(&wanted("1", "d2"), &live), "something else is wanted");
        assert!(in_sync(&wanted("1", "d1"), &object("1", "d1", "7")), "alike is enough");
    }

    #[test]
    fn in_sync_object_normalized_by_server_counts_as_unchanged() {
        let all = InSync::default();
        let in_sync = |wanted: &Object, live: &Object| !all.among([(wanted, live)]).is_empty();
        let (one, live) = (wanted("1", "d1"), object("1", "d1", "5"));
        // The server writes a value in its own way.
        let (long, short) = (wanted("1000m", "d1"), object("1", "d1", "5"));
        assert!(!in_sync(&long, &short));
        all.answered(&long, &short);
        assert!(in_sync(&long, &short) && in_sync(&long, &object("1", "d1", "9")));
        assert!(!in_sync(&long, &object("3", "d1", "9")) && !in_sync(&wanted("1000m", "d2"), &short));
        // Until it writes it as it is wanted.
        all.answered(&one, &live);
        assert!(!in_sync(&long, &short));
    }
}
