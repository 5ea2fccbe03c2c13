// SPDX-License-Identifier: Apache-2.0
//! The limits of memory for the objects of the cache: per watch, for driver namespaces, for all namespaces, and for the cluster.

use crate::cluster::{Select, Watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of what namespaces of drivers and of the operator hold, by its weight as trees. 2,000 objects of drivers have 20 MiB.
const NAMESPACED: usize = 48 << 20;
/// Of what any namespace may hold, so that tenants write it.
const TENANTS: usize = 40 << 20;
/// Of objects of the cluster. 5,000 nodes have 10 MiB.
const CLUSTER: usize = 40 << 20;
/// Of what one watch shows, so that the objects of one kind leave room for the others.
const OF_A_WATCH: usize = 24 << 20;

/// Kinds that are in namespaces and are watched in all of them.
const IN_NAMESPACES: [&str; 9] = [
    "ConfigMap",
    "DaemonSet",
    "Deployment",
    "EndpointSlice",
    "Event",
    "PersistentVolumeClaim",
    "Pod",
    "ReplicaSet",
    "StatefulSet",
];

/// Room that is taken and given back.
#[derive(Clone)]
pub(super) struct Room(Arc<Inner>);

struct Inner {
    used: AtomicUsize,
    most: usize,
    /// What it is a part of.
    whole: Option<Room>,
}

/// Room that an object takes until it is dropped.
pub(super) struct Share {
    bytes: usize,
    room: Room,
}

/// The room of a cache.
pub(super) struct Rooms {
    namespaced: Room,
    tenants: Room,
    cluster: Room,
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            namespaced: Room::new(NAMESPACED, None),
            tenants: Room::new(TENANTS, None),
            cluster: Room::new(CLUSTER, None),
        }
    }
}

impl Rooms {
    /// The room of a watch. What is named is one object, which has to have room whatever else there is: the operator's state is one.
    pub(super) fn of(&self, watch: &Watch) -> Room {
        let whole = match (watch.namespace.is_empty(), &watch.select) {
            (false, Select::Name(_)) => return Room::new(usize::MAX, None),
            (false, _) => &self.namespaced,
            (true, _) if IN_NAMESPACES.contains(&watch.kind.as_str()) => &self.tenants,
            (true, _) => &self.cluster,
        };
        Room::new(OF_A_WATCH, Some(whole.clone()))
    }
}

impl Room {
    fn new(most: usize, whole: Option<Self>) -> Self {
        Self(Arc::new(Inner {
            used: AtomicUsize::new(0),
            most,
            whole,
        }))
    }

    /// Takes so many bytes; `None` where they are not left.
    pub(super) fn take(&self, bytes: usize) -> Option<Share> {
        self.enter(bytes).then(|| Share { bytes, room: self.clone() })
    }

    fn enter(&self, bytes: usize) -> bool {
        let Inner { used, most, whole } = &*self.0;
        let fits = |used: usize| used.checked_add(bytes).filter(|used| used <= most);
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        if whole.as_ref().is_some_and(|whole| !whole.enter(bytes)) {
            used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }

    fn leave(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.leave(bytes);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.leave(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_of_tenants_is_not_that_of_the_cluster_nor_of_what_is_named() {
        let rooms = Rooms::default();
        let watch = |kind: &str, namespace: &str, select: Select| rooms.of(&Watch::new("v1", kind, namespace, select));
        let labels = || Select::Labels("a=b".into());
        let full: Vec<_> = (0..3).map(|_| watch("Pod", "", labels()).take(OF_A_WATCH)).collect();
        assert_eq!(full.iter().flatten().count(), 1, "half of one watch is left for all others");
        let rest = watch("Deployment", "", Select::Name("d".into()))
            .take(TENANTS - OF_A_WATCH)
            .expect("it is left");
        assert!(watch("Pod", "", labels()).take(1).is_none());
        for (kind, namespace, select) in [
            ("Node", "", Select::All),
            ("ConfigMap", "n", Select::All),
            ("Secret", "n", Select::Name("state".into())),
        ] {
            assert!(watch(kind, namespace, select).take(OF_A_WATCH).is_some(), "{kind}");
        }
        drop((full, rest));
        assert!(watch("Pod", "", labels()).take(OF_A_WATCH).is_some());
    }

    #[test]
    fn room_is_given_back_and_never_more_than_the_whole() {
        let whole = Room::new(100, None);
        let (one, other) = (Room::new(60, Some(whole.clone())), Room::new(60, Some(whole.clone())));
        let first = one.take(60).expect("it fits");
        assert!(one.take(1).is_none(), "its own room is full");
        let second = other.take(40).expect("it fits");
        assert!(other.take(1).is_none(), "the whole is full");
        drop(first);
        assert!(other.take(20).is_some() && other.take(21).is_none());
        drop(second);
        assert!(whole.take(100).is_some() && whole.take(usize::MAX).is_none());
    }
}
