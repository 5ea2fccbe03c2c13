use crate::manifest::Object;
use crate::rbac::is_prerequisite;
use crate::types::{ById, ObjectId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that may exist because of us. Written as a superset before the first write and narrowed after the last
/// removal, so that a killed process loses track of nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// The objects.
    pub objects: ById<Entry>,
    /// The identity under which the storage driver registers volumes in vCenter: fixed by the first installation.
    pub cluster_id: Option<String>,
    /// The state that a person has approved, where approval is asked for.
    pub approved: Option<String>,
}

/// What is known of an object in the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The version at which the API is asked for it.
    pub api_version: String,
    /// The driver it belongs to.
    pub driver: String,
    /// The wave it was applied in.
    pub wave: u8,
    /// It was there before us, so it stays when we go.
    pub adopted: bool,
    /// The instance, once it exists.
    pub uid: Option<String>,
    /// What was applied when everything was as wanted last, see [`applied`].
    pub applied: Option<String>,
}

/// The digest of what is applied of an object, in sixteen digits.
#[must_use]
pub fn applied(object: &Object) -> Option<&str> {
    let digest = object.applied()?.rsplit(':').next()?;
    digest.get(..16)
}

/// A stored inventory cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the inventory in ConfigMap {name} cannot be read, and nothing is changed; restore it from a backup, or delete it: it is then rebuilt from the labels of the objects before anything is removed"
)]
pub struct InventoryError {
    name: String,
    #[source]
    source: Damage,
}

impl InventoryError {
    pub(super) fn new(name: &str, source: Damage) -> Self {
        Self {
            name: name.to_owned(),
            source,
        }
    }
}

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    #[error("the list of objects is none")]
    Text(#[source] serde_json::Error),
    #[error("its part in ConfigMap {0} is not there")]
    Missing(String),
    #[error("its part in ConfigMap {0} was changed by somebody")]
    Changed(String),
}

/// An object and its entry. The fields are written out, because a flattened struct is read through a copy of everything in it, and
/// an inventory is read in every reconcile.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    group: String,
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    api_version: String,
    driver: String,
    wave: u8,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    adopted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    applied: Option<String>,
}

impl Line {
    fn new(id: &ObjectId, entry: &Entry) -> Self {
        let entry = entry.clone();
        Self {
            group: id.group().to_owned(),
            kind: id.kind().to_owned(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            api_version: entry.api_version,
            driver: entry.driver,
            wave: entry.wave,
            adopted: entry.adopted,
            uid: entry.uid,
            applied: entry.applied,
        }
    }

    fn parts(self) -> (ObjectId, Entry) {
        let id = ObjectId::new(self.group, self.kind, self.namespace, self.name);
        let entry = Entry {
            api_version: self.api_version,
            driver: self.driver,
            wave: self.wave,
            adopted: self.adopted,
            uid: self.uid,
            applied: self.applied,
        };
        (id, entry)
    }
}

const CLUSTER_ID: &str = "clusterId";
const APPROVED: &str = "approved";

impl Entry {
    /// Whether a live object may be the instance that is meant: the one recorded, or any while none is.
    #[must_use]
    pub fn is(&self, live: &Object) -> bool {
        self.uid.as_deref().is_none_or(|uid| uid == live.uid())
    }
}

impl Inventory {
    /// One line of text for each object.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut all: Vec<_> = self.objects.iter().collect();
        all.sort_by_key(|(id, _)| *id);
        let line = |(id, entry)| serde_json::to_string(&Line::new(id, entry)).unwrap_or_default();
        all.into_iter().map(line).collect()
    }

    /// Adds a list of such lines. What the administrator brings was listed once; it is not ours to remove.
    pub(super) fn read(&mut self, text: &str) -> Result<(), serde_json::Error> {
        let lines: Vec<Line> = serde_json::from_str(text)?;
        let ours = lines.into_iter().map(Line::parts).filter(|(id, _)| !is_prerequisite(id));
        self.objects.extend(ours);
        Ok(())
    }

    /// All but the objects.
    pub(super) fn rest(&self) -> BTreeMap<String, String> {
        let all = [(CLUSTER_ID, &self.cluster_id), (APPROVED, &self.approved)];
        all.into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)))
            .collect()
    }

    /// An inventory with nothing but that.
    pub(super) fn with_rest(data: &BTreeMap<String, String>) -> Self {
        Self {
            objects: ById::default(),
            cluster_id: data.get(CLUSTER_ID).cloned(),
            approved: data.get(APPROVED).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(data: &BTreeMap<String, String>) -> Result<Inventory, InventoryError> {
        Inventory::parse("i", data, &BTreeMap::new())
    }

    #[test]
    fn inventory_written_then_parsed_is_equal() {
        let entry = |uid: Option<&str>| Entry {
            api_version: "apps/v1".into(),
            driver: "d".into(),
            wave: 3,
            adopted: uid.is_none(),
            uid: uid.map(Into::into),
            applied: uid.map(Into::into),
        };
        let inventory = Inventory {
            objects: ById::from_iter([
                (ObjectId::new("apps", "DaemonSet", "ns", "a"), entry(Some("u"))),
                (ObjectId::new("storage.k8s.io", "CSIDriver", "", "c"), entry(None)),
            ]),
            cluster_id: Some("id".into()),
            approved: Some("state".into()),
        };
        assert_eq!(parse(&inventory.kept("i").index).expect("readable"), inventory);
        assert_eq!(parse(&Inventory::default().kept("i").index).expect("empty"), Inventory::default());
    }

    #[test]
    fn inventory_of_before_forgets_what_the_administrator_brings() {
        let line = |group: &str, kind: &str| {
            format!(r#"{{"group":"{group}","kind":"{kind}","name":"x","apiVersion":"v1","driver":"d","wave":1}}"#)
        };
        let lines = [
            line("", "Namespace"),
            line("rbac.authorization.k8s.io", "ClusterRole"),
            line("apps", "DaemonSet"),
        ];
        let read = parse(&BTreeMap::from([("objects".into(), format!("[{}]", lines.join(",")))])).expect("readable");
        let kinds: Vec<&str> = read.objects.keys().map(ObjectId::kind).collect();
        assert_eq!(kinds, ["DaemonSet"]);
    }

    #[test]
    fn inventory_damaged_data_is_error() {
        for data in [
            BTreeMap::from([("objects".into(), "[{".into())]),
            BTreeMap::from([("objects".into(), String::new())]),
            BTreeMap::from([("clusterId".into(), "id".into())]),
            BTreeMap::new(),
        ] {
            assert!(parse(&data).is_err(), "{data:?}");
        }
    }
}
