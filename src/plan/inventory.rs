use super::LastApplied;
use crate::manifest::Object;
use crate::rbac::is_prerequisite;
use crate::types::{ById, DriverName, ObjectId};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    /// What was applied last, by driver.
    pub last: BTreeMap<DriverName, LastApplied>,
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

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    #[error("the list of objects is none")]
    Text(#[source] serde_json::Error),
    #[error("its part {0} is not what was stored; another user changed it")]
    Changed(String),
}

/// An inventory that the API server would not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the inventory in ConfigMap {name} would have {size} bytes, and the API server takes {most}; the largest part is what is kept of driver {driver}. Nothing was changed: use a chart with fewer or smaller objects",
    most = Inventory::MOST
)]
pub struct InventoryTooLarge {
    /// The ConfigMap.
    pub name: String,
    /// What it would have.
    pub size: usize,
    /// Of which driver most is kept.
    pub driver: String,
}

/// The content of the ConfigMap with an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it lists, as text.
    pub data: BTreeMap<String, String>,
    /// What was applied last, one key for each driver and its content, base64.
    pub binary: BTreeMap<String, String>,
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
            uid: self.uid,
            applied: self.applied,
        };
        (id, entry)
    }
}

const OBJECTS: &str = "objects";
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
    /// How many bytes one ConfigMap takes; the rest of 1 MiB is left to its metadata.
    pub const MOST: usize = 1000 * 1024;

    /// As it is stored.
    #[must_use]
    pub fn stored(&self) -> Stored {
        let mut all: Vec<_> = self.objects.iter().collect();
        all.sort_by_key(|(id, _)| *id);
        let line = |(id, entry)| serde_json::to_string(&Line::new(id, entry)).unwrap_or_default();
        let lines: Vec<String> = all.into_iter().map(line).collect();
        let mut data = BTreeMap::from([(OBJECTS.to_owned(), format!("[\n{}\n]", lines.join(",\n")))]);
        for (key, value) in [(CLUSTER_ID, &self.cluster_id), (APPROVED, &self.approved)] {
            data.extend(value.clone().map(|value| (key.to_owned(), value)));
        }
        let binary = self
            .last
            .iter()
            .map(|(driver, last)| (part(driver, last), STANDARD.encode(last.bytes())));
        Stored {
            data,
            binary: binary.collect(),
        }
    }

    /// Whether the API server would take it.
    ///
    /// # Errors
    /// When it is too large.
    pub fn fits(&self, name: &str) -> Result<(), InventoryTooLarge> {
        let stored = self.stored();
        let size = stored.data.values().chain(stored.binary.values()).map(String::len).sum();
        if size <= Self::MOST {
            return Ok(());
        }
        let entries = |driver: &str| self.objects.values().filter(|entry| entry.driver == driver).count();
        let weight = |driver: &String| entries(driver) * 250 + self.last.get(driver).map_or(0, |last| last.bytes().len());
        Err(InventoryTooLarge {
            name: name.to_owned(),
            size,
            driver: self.drivers().into_iter().max_by_key(weight).unwrap_or_default(),
        })
    }

    /// Reads what was stored. What the administrator brings was listed once; it is not ours to remove.
    ///
    /// # Errors
    /// When it is not what was stored.
    pub fn parse(name: &str, stored: &Stored) -> Result<Self, InventoryError> {
        let damaged = |source| InventoryError {
            name: name.to_owned(),
            source,
        };
        let text = stored.data.get(OBJECTS).map_or("", String::as_str);
        let lines: Vec<Line> = serde_json::from_str(text).map_err(|error| damaged(Damage::Text(error)))?;
        let objects = lines.into_iter().map(Line::parts).filter(|(id, _)| !is_prerequisite(id));
        let last = stored.binary.iter().map(|(key, text)| {
            let changed = || damaged(Damage::Changed(key.clone()));
            let last = LastApplied::from_bytes(&STANDARD.decode(text).map_err(|_| changed())?);
            let driver = key.split('.').next().unwrap_or_default();
            if part(driver, &last) != *key {
                return Err(changed());
            }
            Ok((driver.to_owned(), last))
        });
        Ok(Self {
            objects: objects.collect(),
            cluster_id: stored.data.get(CLUSTER_ID).cloned(),
            approved: stored.data.get(APPROVED).cloned(),
            last: last.collect::<Result<_, _>>()?,
        })
    }
}

/// The key of what was applied last. It says what is in it, so that a change by another user is seen.
fn part(driver: &str, last: &LastApplied) -> String {
    format!("{driver}.{}.json.gz", last.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(data: &BTreeMap<String, String>) -> Result<Inventory, InventoryError> {
        let stored = Stored {
            data: data.clone(),
            binary: BTreeMap::new(),
        };
        Inventory::parse("i", &stored)
    }

    fn config_map(name: &str, data: &str) -> Object {
        let value = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": data}});
        Object::new(value).expect("an object")
    }

    #[test]
    fn inventory_written_then_parsed_is_equal() {
        let entry = |uid: Option<&str>| Entry {
            api_version: "apps/v1".into(),
            driver: "d".into(),
            wave: 3,
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
            last: BTreeMap::from([("d".into(), LastApplied::of([config_map("a", "x")].iter()))]),
        };
        assert_eq!(Inventory::parse("i", &inventory.stored()).expect("readable"), inventory);
        let empty = Inventory::default();
        assert_eq!(Inventory::parse("i", &empty.stored()).expect("empty"), empty);
    }

    #[test]
    fn inventory_changed_part_is_error() {
        let inventory = Inventory {
            last: BTreeMap::from([("d".into(), LastApplied::of([config_map("a", "x")].iter()))]),
            ..Inventory::default()
        };
        let other = LastApplied::of([config_map("a", "y")].iter());
        for text in [STANDARD.encode(other.bytes()), "no base64".into(), String::new()] {
            let mut stored = inventory.stored();
            stored.binary.values_mut().for_each(|value| *value = text.clone());
            let error = Inventory::parse("i", &stored).expect_err("changed");
            let said = crate::api::chain(&error);
            assert!(
                said.contains("ConfigMap i cannot be read") && said.contains("another user changed it"),
                "{said}"
            );
        }
    }

    #[test]
    fn inventory_larger_than_configmap_is_refused() {
        let entry = |driver: &str| Entry {
            api_version: "v1".into(),
            driver: driver.into(),
            wave: 2,
            uid: Some("4201f8cd-1b9d-0f4c-8a3e-000000000000".into()),
            applied: Some("0123456789abcdef".into()),
        };
        let of = |count: usize| Inventory {
            objects: (0..count)
                .map(|n| {
                    (
                        ObjectId::new("", "ConfigMap", "ns", format!("object-{n}")),
                        entry(if n < 3 { "few" } else { "many" }),
                    )
                })
                .collect(),
            ..Inventory::default()
        };
        assert_eq!(of(2_000).fits("i"), Ok(()));
        let error = of(10_000).fits("i").expect_err("too large");
        assert_eq!((error.name.as_str(), error.driver.as_str()), ("i", "many"));
        assert!(error.size > Inventory::MOST);
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
