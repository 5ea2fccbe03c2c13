// SPDX-License-Identifier: Apache-2.0
//! Applies the events of a watch (initial list, change, deletion, error) to the objects of the cache.

use super::cached_object::CachedObject;
use super::lock;
use super::memory_limits::Room;
use super::own_writes::{Gone, buried};
use crate::cluster::ClusterError;
use crate::cluster::bounded_deserialize::Arrived;
use crate::cluster::watch::Watch;
use kube::runtime::watcher::{self, Event};
use std::sync::Mutex;
use std::time::Instant;
use vdo_api::types::ById;

#[derive(Default)]
pub(super) struct Content {
    /// In the order of their ids.
    pub(super) objects: ById<CachedObject>,
    /// Objects of a list that is still coming in; the old ones are served until it is complete.
    pub(super) incoming: Option<ById<CachedObject>>,
    pub(super) synced: bool,
    pub(super) error: Option<ClusterError>,
    /// When the right to go on watching was last refused, and the error of it.
    pub(super) refused: Option<(Instant, ClusterError)>,
}

/// Takes an event in; whether anything changed that may matter.
pub(super) fn take_in<const FIELDS: usize>(
    content: &mut Content,
    gone: &Mutex<Gone>,
    (watch, room): (&Watch, &Room),
    event: Result<Event<Arrived<FIELDS>>, watcher::Error>,
) -> bool {
    let own = |found: Arrived<FIELDS>| {
        let is_cut = found.is_cut;
        let object = found.object(watch).filter(|object| watch.select.keeps(object))?;
        let id = object.id();
        let (kept, whole) = CachedObject::new(object, room);
        if is_cut || !whole {
            tracing::warn!(object = %id, "the operator reads only the name: the object is too large, or there are too many objects of its kind");
        }
        Some((id, kept))
    };
    match event {
        Ok(Event::Init) => {
            content.incoming = Some(ById::default());
            false
        }
        Ok(Event::InitApply(found)) => {
            if let (Some(incoming), Some((id, found))) = (&mut content.incoming, own(found)) {
                let found = found.or_known(content.objects.get(&id));
                incoming.insert_sorted(id, found);
            }
            false
        }
        Ok(Event::InitDone) => {
            let new = content.incoming.take().unwrap_or_default();
            let matters = !content.synced || !same(&content.objects, &new);
            content.objects = new;
            content.synced = true;
            content.error = None;
            content.refused = None;
            matters
        }
        Ok(Event::Apply(found)) => {
            content.refused = None;
            let id = found.id(watch);
            let Some((id, found)) = own(found) else {
                // It may have been one of them until now.
                return content.objects.shift_remove(&id).is_some();
            };
            let matters = content.objects.get(&id).is_none_or(|old| !old.means(&found));
            let found = found.or_known(content.objects.get(&id));
            content.objects.insert_sorted(id, found);
            matters
        }
        Ok(Event::Delete(found)) => {
            let Some(found) = found.object(watch) else { return false };
            let id = found.id();
            let shown = content.objects.shift_remove(&id).is_some();
            // Before the content is unlocked: an object is never missing without its deletion recorded.
            buried(&mut lock(gone), id, &found);
            shown
        }
        Err(error) => {
            tracing::warn!(watch = %watch.id(), %error, "a watch failed and is retried");
            let error = ClusterError::of_watch(&watch.api_version, &watch.id(), error);
            // It keeps showing its last state, which must not be taken for the current one.
            let news = content.synced && content.refused.is_none();
            content.refused = error.as_ref().and_then(ClusterError::repeated).map(|error| (Instant::now(), error));
            content.error = error;
            news && content.refused.is_some()
        }
    }
}

fn same(old: &ById<CachedObject>, new: &ById<CachedObject>) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|((a, x), (b, y))| a == b && x.means(y))
}

#[cfg(test)]
mod tests {
    use super::super::memory_limits::Rooms;
    use super::*;
    use crate::cluster::bounded_deserialize::WHOLE;
    use crate::cluster::watch::Select;
    use serde_json::json;
    use vdo_api::types::ObjectId;

    #[test]
    fn watch_cache_deletion_is_recorded_with_its_version() {
        let watch = Watch::new("v1", "Service", "n", Select::All);
        let found = |version: u64| {
            let metadata = json!({"name": "a", "namespace": "n", "resourceVersion": version.to_string()});
            serde_json::from_value::<Arrived<WHOLE>>(json!({"metadata": metadata})).expect("an object")
        };
        let room = Rooms::default().of(&watch);
        let (mut content, gone) = (Content::default(), Mutex::default());
        assert!(take_in(&mut content, &gone, (&watch, &room), Ok(Event::Apply(found(5)))));
        assert!(lock(&gone).is_empty());
        assert!(take_in(&mut content, &gone, (&watch, &room), Ok(Event::Delete(found(6)))));
        assert!(content.objects.is_empty());
        let id = ObjectId::new("", "Service", "n", "a");
        assert_eq!(lock(&gone).get(&id).map(|(version, _)| *version), Some(6));
    }
}
