use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// A group and a kind, without the version: the same object can be read at several versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind, for example `DaemonSet`.
    pub kind: String,
}

impl fmt::Display for GroupKind {
    /// `DaemonSet.apps`, or only the kind for the core group, as KEP-3659 writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// What an object is called in the cluster: group, kind, namespace (empty when cluster-scoped) and name.
///
/// Thousands of them are compared and looked up in every reconcile, so a copy shares its texts, all of one kind share that, and a digest of
/// their texts distinguishes two of them. Their order is that of the texts.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct ObjectId {
    key: u128,
    kind: Arc<GroupKind>,
    name: Arc<Name>,
}

/// What an [`ObjectId`] holds besides its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The namespace; empty for objects that have none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// As it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    kind: GroupKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
}

/// All kinds that were ever named. There are as many as an API server and the charts have.
static KINDS: Mutex<BTreeSet<Arc<GroupKind>>> = Mutex::new(BTreeSet::new());

fn shared(kind: GroupKind) -> Arc<GroupKind> {
    let mut all = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(&kind) {
        return known.clone();
    }
    let new = Arc::new(kind);
    all.insert(new.clone());
    new
}

impl ObjectId {
    /// An id from its parts.
    pub fn new(group: impl Into<String>, kind: impl Into<String>, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Written {
            kind: GroupKind {
                group: group.into(),
                kind: kind.into(),
            },
            namespace: namespace.into(),
            name: name.into(),
        }
        .into()
    }

    /// Group and kind.
    #[must_use]
    pub fn group_kind(&self) -> &GroupKind {
        &self.kind
    }

    /// The kind alone.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind.kind
    }

    /// The API group alone.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.kind.group
    }

    /// Whether both are of one kind, in one namespace or in none.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.kind, &other.kind) && self.namespace == other.namespace
    }
}

impl From<Written> for ObjectId {
    fn from(Written { kind, namespace, name }: Written) -> Self {
        Self {
            key: key([&kind.group, &kind.kind, &namespace, &name]),
            kind: shared(kind),
            name: Arc::new(Name { namespace, name }),
        }
    }
}

impl From<ObjectId> for Written {
    fn from(id: ObjectId) -> Self {
        let Name { namespace, name } = Arc::unwrap_or_clone(id.name);
        Self {
            kind: Arc::unwrap_or_clone(id.kind),
            namespace,
            name,
        }
    }
}

/// Half of the digest of these texts: no two objects can be named so that they are taken for one.
fn key(texts: [&str; 4]) -> u128 {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    let mut half = [0; 16];
    half.copy_from_slice(&digest.finalize()[..16]);
    u128::from_le_bytes(half)
}

impl Deref for ObjectId {
    type Target = Name;

    fn deref(&self) -> &Name {
        &self.name
    }
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for ObjectId {}

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        #[expect(clippy::cast_possible_truncation, reason = "any part of a digest is as good as a hash")]
        state.write_u64(self.key as u64);
    }
}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.key == other.key {
            return Ordering::Equal;
        }
        // All of one kind share it.
        let kinds = || match Arc::ptr_eq(&self.kind, &other.kind) {
            true => Ordering::Equal,
            false => self.kind.cmp(&other.kind),
        };
        kinds().then_with(|| self.name.cmp(&other.name))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}|{}", self.kind, self.namespace, self.name.name)
    }
}

impl fmt::Display for ObjectId {
    /// `DaemonSet kube-system/vsphere-cloud-controller-manager`, the way people name objects to each other. One without a name stands for
    /// all of its kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, namespace, name) = (self.kind(), &self.namespace, &self.name.name);
        match (namespace.is_empty(), name.is_empty()) {
            (true, true) => write!(f, "{kind} objects"),
            (false, true) => write!(f, "{kind} objects in namespace {namespace}"),
            (true, false) => write!(f, "{kind} {name}"),
            (false, false) => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

/// Something of each of many objects, in the order in which it was put in.
pub type ById<T> = IndexMap<ObjectId, T, BuildHasherDefault<OfKey>>;

/// A set of objects, in the order in which they were put in.
pub type Ids = IndexSet<ObjectId, BuildHasherDefault<OfKey>>;

/// The hash of an [`ObjectId`], which is a part of its digest already.
#[derive(Debug, Default)]
pub struct OfKey(u64);

impl Hasher for OfKey {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, part: u64) {
        self.0 = part;
    }

    /// Nothing else is hashed by it; what would be is mixed in, so that nothing is lost.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_id_equality_and_order_follow_text() {
        let parts = ["", "a", "b", "ab"];
        let mut all = Vec::new();
        for group in parts {
            for kind in parts {
                for namespace in parts {
                    all.extend(parts.map(|name| ([group, kind, namespace, name], ObjectId::new(group, kind, namespace, name))));
                }
            }
        }
        for (one, a) in &all {
            for (other, b) in &all {
                assert_eq!((a == b, a.cmp(b)), (one == other, one.cmp(other)), "{one:?} {other:?}");
            }
        }
        let set: Ids = all.iter().chain(&all).map(|(_, id)| id.clone()).collect();
        assert_eq!(set.len(), all.len());
    }

    #[test]
    fn object_id_without_name_is_displayed_as_all_of_its_kind() {
        for (namespace, name, text) in [
            ("ns", "a", "VDOConfig ns/a"),
            ("ns", "", "VDOConfig objects in namespace ns"),
            ("", "a", "VDOConfig a"),
            ("", "", "VDOConfig objects"),
        ] {
            assert_eq!(ObjectId::new("", "VDOConfig", namespace, name).to_string(), text);
        }
    }

    #[test]
    fn object_id_is_beside_those_of_its_kind_and_namespace() {
        let id = ObjectId::new("apps", "Deployment", "n", "a");
        for (other, beside) in [
            (ObjectId::new("apps", "Deployment", "n", "b"), true),
            (ObjectId::new("apps", "Deployment", "m", "a"), false),
            (ObjectId::new("apps", "DaemonSet", "n", "a"), false),
            (ObjectId::new("example.com", "Deployment", "n", "a"), false),
        ] {
            assert_eq!(id.is_beside(&other), beside, "{other:?}");
        }
    }
    /// Many of them are in one table, so few may fall into one place of it.
    #[test]
    fn object_id_hashes_differ() {
        use std::hash::BuildHasher;
        let state = BuildHasherDefault::<OfKey>::default();
        let ids = (0..100).map(|n| ObjectId::new("", "ConfigMap", "n", n.to_string()));
        let hashes: BTreeSet<u64> = ids.map(|id| state.hash_one(id)).collect();
        assert_eq!(hashes.len(), 100);
        let mixed = |bytes: &[u8]| {
            let mut hasher = OfKey::default();
            hasher.write(bytes);
            hasher.finish()
        };
        assert_eq!((mixed(&[1, 2]), mixed(&[3, 0, 0, 0, 0, 0, 0, 0, 1])), (0x0102, 2));
    }
}
