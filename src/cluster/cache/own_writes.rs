// SPDX-License-Identifier: Apache-2.0
//! Remembers the operator's own writes, which take precedence until a watch shows them or a newer state.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;

/// How long a write counts that no watch has shown: another manager may have undone it in between.
const BELIEVE: Duration = Duration::from_secs(10);

/// What was written and may not have come back through a watch yet.
pub(super) struct Written {
    pub(super) object: Object,
    /// It was deleted; until the watch shows it gone, it is shown with a deletion time.
    pub(super) deleted: bool,
    pub(super) version: u64,
    pub(super) at: Instant,
}

/// What a watch has shown to be deleted a short while ago, and at which version.
pub(super) type Gone = HashMap<ObjectId, (u64, Instant)>;

/// What was written by us and is not shown yet takes precedence over what is shown, unless the object was deleted since.
pub(super) fn corrected(written: &mut HashMap<ObjectId, Written>, gone: &Gone, id: &ObjectId, shown: Option<Object>) -> Option<Object> {
    let Some(own) = written.get(id) else { return shown };
    let deleted = gone.get(id).is_some_and(|(version, _)| *version > own.version);
    let caught_up = shown.as_ref().map_or(own.deleted || deleted, |o| version(o) >= own.version);
    if caught_up || own.at.elapsed() > BELIEVE {
        written.remove(id);
        return shown;
    }
    Some(own.object.clone())
}

/// Remembers that an object was deleted for as long as a write of ours from before may be believed: the answer to it may come after the
/// news of the deletion.
pub(super) fn buried(gone: &mut Gone, id: ObjectId, found: &Object) {
    gone.retain(|_, (_, at)| at.elapsed() <= BELIEVE);
    gone.insert(id, (version(found), Instant::now()));
}

pub(super) fn version(object: &Object) -> u64 {
    version_number(object.resource_version())
}

/// Resource versions of one server are numbers that grow. 0 where there is none.
#[must_use]
pub fn version_number(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(version: u64) -> Object {
        let value = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": version.to_string()}});
        Object::new(value).expect("an object")
    }

    /// An object may be deleted before we have the answer to the write that created it.
    #[test]
    fn watch_cache_object_deleted_right_after_our_write_is_gone() {
        let id = object(5).id();
        for (deleted_at, shown, expected) in [
            (None, None, Some(5)),
            (None, Some(4), Some(5)),
            (None, Some(6), Some(6)),
            (Some(4), None, Some(5)),
            (Some(6), None, None),
            (Some(6), Some(8), Some(8)),
        ] {
            let own = Written {
                object: object(5),
                deleted: false,
                version: 5,
                at: Instant::now(),
            };
            let mut written = HashMap::from([(id.clone(), own)]);
            let gone = deleted_at
                .map(|version| (id.clone(), (version, Instant::now())))
                .into_iter()
                .collect();
            let found = corrected(&mut written, &gone, &id, shown.map(object));
            assert_eq!(
                found.as_ref().map(version),
                expected,
                "deleted at {deleted_at:?}, shown at {shown:?}"
            );
        }
    }
}
