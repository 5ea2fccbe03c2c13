//! Which live objects are in sync with what is desired, remembered from one reconcile to the next.

use super::lock;
use serde_json::Value;
use std::cell::OnceCell;
use std::sync::{Arc, Mutex};
use vdo_api::types::{ById, Ids, ObjectId};
use vdo_core::manifest::{Object, object_differences};

/// The objects that are in sync. Losing it costs time only.
#[derive(Default)]
pub struct InSync {
    /// Where the server has written a value in its own way, so that a comparison alone would see a difference for ever: the digest of
    /// what is wanted, and what there is.
    server_normalized: Mutex<ById<(String, Value)>>,
    last: Mutex<Last>,
}

/// What was compared last, and what came out.
#[derive(Default)]
struct Last {
    pairs: Vec<Pair>,
    /// Which are in sync; `None` when an answer of the server is newer.
    in_sync: Option<Arc<Ids>>,
}

/// What is wanted and what there is.
struct Pair {
    wanted: Object,
    live: Object,
    alike: bool,
}

impl Pair {
    fn is(&self, wanted: &Object, live: &Object) -> bool {
        self.wanted.is_same(wanted) && self.live.is_same(live)
    }
}

impl InSync {
    /// Takes the answer to an apply: what the server made of it is in sync.
    pub(in crate::cluster) fn answered(&self, wanted: &Object, live: &Object) {
        if object_differences(wanted, live).is_empty() {
            lock(&self.server_normalized).swap_remove(&live.id());
            lock(&self.last).in_sync = None;
        } else {
            self.settle(wanted, live);
        }
    }

    /// Remembers that a live object, as it is now, is in sync, whatever a comparison says.
    pub fn settle(&self, wanted: &Object, live: &Object) {
        lock(&self.server_normalized).insert(live.id(), (wanted.applied().unwrap_or_default().to_owned(), meaning(live)));
        lock(&self.last).in_sync = None;
    }

    /// Those of these pairs, each of what is wanted and what there is, that are in sync, by a comparison or by the server's answer
    /// for the object as it is now. What was compared in the last reconcile is not compared again.
    #[must_use]
    pub fn among<'a>(&self, pairs: impl IntoIterator<Item = (&'a Object, &'a Object)>) -> Arc<Ids> {
        let pairs: Vec<_> = pairs.into_iter().collect();
        let (server_normalized, mut last) = (lock(&self.server_normalized), lock(&self.last));
        let all_known = || last.pairs.len() == pairs.len() && last.pairs.iter().zip(&pairs).all(|(known, (w, l))| known.is(w, l));
        if let Some(in_sync) = last.in_sync.as_ref().filter(|_| all_known()) {
            return in_sync.clone();
        }
        let before = std::mem::take(&mut last.pairs);
        // Mostly they come in the same order again.
        let elsewhere: OnceCell<ById<usize>> = OnceCell::new();
        let find = |id: &ObjectId| {
            let all = elsewhere.get_or_init(|| before.iter().enumerate().map(|(at, pair)| (pair.live.id(), at)).collect());
            before.get(*all.get(id)?)
        };
        let mut in_sync = Ids::default();
        for (at, (wanted, live)) in pairs.into_iter().enumerate() {
            let id = live.identity();
            let same = |known: &&Pair| known.is(wanted, live);
            let known = before.get(at).filter(same).or_else(|| find(id).filter(same));
            let alike = match known {
                Some(known) => known.alike,
                None => wanted.applied() == live.applied() && object_differences(wanted, live).is_empty(),
            };
            let confirmed = |(was, seen): &(String, Value)| Some(was.as_str()) == wanted.applied() && *seen == meaning(live);
            if alike || server_normalized.get(id).is_some_and(confirmed) {
                in_sync.insert(id.clone());
            }
            let (wanted, live) = (wanted.clone(), live.clone());
            last.pairs.push(Pair { wanted, live, alike });
        }
        let in_sync = Arc::new(in_sync);
        last.in_sync = Some(in_sync.clone());
        in_sync
    }
}

/// What an apply decides: the object without its status and without what the server counts up.
fn meaning(object: &Object) -> Value {
    let mut value = object.look().into_owned();
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
        assert!(in_sync(&one, &live) && in_sync(&one, &live), "also at the second look");
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
