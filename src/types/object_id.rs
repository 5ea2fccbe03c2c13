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

/// What an object is called in the cluster: group, kind, namespace (empty when cluster-scoped) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    /// Group and kind.
    #[serde(flatten)]
    pub group_kind: GroupKind,
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

impl fmt::Display for ObjectId {
    /// `DaemonSet kube-system/vsphere-cloud-controller-manager`, the way people name objects to each other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind(), self.name)
        } else {
            write!(f, "{} {}/{}", self.kind(), self.namespace, self.name)
        }
    }
}
