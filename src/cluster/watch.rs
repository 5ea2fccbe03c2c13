// SPDX-License-Identifier: Apache-2.0
//! `Watch`: which objects a watch or list selects: kind, namespace, and label, field, name, or "runs a driver".

use kube::api::TypeMeta;
use vdo_api::types::ObjectId;
use vdo_core::installed::Installed;
use vdo_core::manifest::Object;

/// Which objects of a kind are watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Select {
    /// All of them.
    All,
    /// Those with these labels.
    Labels(String),
    /// Those with these fields, of which the API server knows a few for each kind.
    Fields(String),
    /// The one with this name. Secrets are watched in no other way.
    Name(String),
    /// Those that run a driver for vSphere or speak of one, whatever they are called. The API server sends all, and these are kept.
    Drivers,
}

impl Select {
    /// Whether an object that the API server sent is one of them.
    pub(super) fn keeps(&self, object: &Object) -> bool {
        !matches!(self, Self::Drivers) || Installed::of(object).is_some()
    }
}

/// One watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// For example `apps/v1`.
    pub api_version: String,
    /// For example `DaemonSet`.
    pub kind: String,
    /// The namespace; empty for cluster-scoped kinds, or for all namespaces.
    pub namespace: String,
    /// Which objects.
    pub select: Select,
}

impl Watch {
    /// A watch from its parts.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, namespace: impl Into<String>, select: Select) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            select,
        }
    }

    /// What its objects are; items of a list do not say it themselves.
    pub(super) fn types(&self) -> TypeMeta {
        TypeMeta {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
        }
    }

    pub(super) fn id(&self) -> ObjectId {
        let group = self.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let name = if let Select::Name(name) = &self.select { name.as_str() } else { "" };
        ObjectId::new(group, &self.kind, &self.namespace, name)
    }
}

/// Whether a watch with this id shows the object with that one.
pub(super) fn covers(own: &ObjectId, id: &ObjectId) -> bool {
    shows(own, id) && (own.name.is_empty() || own.name == id.name)
}

/// Whether a watch with this id shows objects of the kind and in the namespace of that one.
pub(super) fn shows(own: &ObjectId, id: &ObjectId) -> bool {
    own.group_kind() == id.group_kind() && (own.namespace.is_empty() || own.namespace == id.namespace)
}
