// SPDX-License-Identifier: Apache-2.0
//! `ObjectId`: group, kind, namespace and name of a Kubernetes object, without the version.

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A group and a kind, without the version: the same object can be read at several versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// What an object is called in the cluster: group, kind, namespace and name. The order is that of these texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    #[serde(flatten)]
    group_kind: GroupKind,
    /// The namespace; empty for objects that have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// An id from its parts.
    pub fn new(group: impl Into<String>, kind: impl Into<String>, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            group_kind: GroupKind {
                group: group.into(),
                kind: kind.into(),
            },
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The command that deletes the object.
    #[must_use]
    pub fn deletion(&self) -> String {
        let place = match &*self.namespace {
            "" => String::new(),
            namespace => format!(" -n {namespace}"),
        };
        format!("kubectl delete {}{place} {}", self.kind().to_lowercase(), self.name)
    }

    /// Group and kind.
    #[must_use]
    pub fn group_kind(&self) -> &GroupKind {
        &self.group_kind
    }

    /// The kind alone.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.group_kind.kind
    }

    /// The API group alone.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group_kind.group
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}|{}", self.group_kind, self.namespace, self.name)
    }
}

impl fmt::Display for ObjectId {
    /// `DaemonSet kube-system/vsphere-cloud-controller-manager`, the way people name objects to each other. One without a name stands for
    /// all of its kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, namespace, name) = (self.kind(), &self.namespace, &self.name);
        match (namespace.is_empty(), name.is_empty()) {
            (true, true) => write!(f, "{kind} objects"),
            (false, true) => write!(f, "{kind} objects in namespace {namespace}"),
            (true, false) => write!(f, "{kind} {name}"),
            (false, false) => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

/// Something of each of many objects, in the order in which it was put in.
pub type ById<T> = IndexMap<ObjectId, T>;

/// A set of objects, in the order in which they were put in.
pub type Ids = IndexSet<ObjectId>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_id_order_follows_its_texts_and_its_json_has_them() {
        let id = |group, kind, namespace, name| ObjectId::new(group, kind, namespace, name);
        let sorted = [
            id("", "b", "b", "b"),
            id("a", "a", "", "a"),
            id("a", "a", "a", "a"),
            id("a", "a", "a", "b"),
            id("a", "a", "b", "a"),
            id("a", "b", "", ""),
        ];
        assert!(sorted.is_sorted(), "{sorted:?}");
        for (id, written) in [
            (&sorted[1], r#"{"group":"a","kind":"a","name":"a"}"#),
            (&sorted[3], r#"{"group":"a","kind":"a","namespace":"a","name":"b"}"#),
        ] {
            assert_eq!(serde_json::to_string(id).expect("JSON"), written);
            assert_eq!(serde_json::from_str::<ObjectId>(written).expect("an id"), *id);
        }
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
}
