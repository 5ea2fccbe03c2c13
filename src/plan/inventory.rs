use super::stored_history::{first_revisions, history, history_text, part};
use super::{PackedObjects, Revision};
use crate::manifest::Object;
use crate::rbac::is_prerequisite;
use crate::types::{ById, DriverName, ObjectId, Remedy};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
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
    /// What was applied of each driver, the oldest first.
    pub history: BTreeMap<DriverName, Vec<Revision>>,
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
#[error("the inventory in ConfigMap {name} cannot be read, and nothing is changed")]
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
    #[error("its history cannot be read")]
    History(#[source] serde_json::Error),
    #[error("its schema is {0:?}, and this operator knows the schemas up to {FORM}")]
    Schema(String),
}

/// An inventory that the API server would not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the inventory in ConfigMap {name} would have {size} bytes, and the API server takes {most}; the largest part is what is kept of driver {driver}; nothing was changed",
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

impl InventoryError {
    /// Whether a newer operator stored it.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self.source, Damage::Schema(_))
    }
}

impl Remedy for InventoryError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        if self.is_newer() {
            return Some(
                "Run the operator that stored it, or a newer one: its annotation applyset.kubernetes.io/tooling names the version.".into(),
            );
        }
        Some("Restore it from a backup, or delete it: it is then rebuilt from the labels of the objects before anything is removed.".into())
    }
}

impl Remedy for InventoryTooLarge {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Use a chart with fewer or smaller objects.".into())
    }
}

/// The content of the ConfigMap with an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it lists, as text.
    pub data: BTreeMap<String, String>,
    /// The objects of each revision, under a key with the driver and their digest, base64.
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

/// The form in which an inventory is stored, under the key [`SCHEMA`]. One without it is of form 1. A change that an
/// older operator would lose when it stores the inventory takes the next number: the older operator then changes nothing.
const FORM: u32 = 1;
const SCHEMA: &str = "schema";
const OBJECTS: &str = "objects";
const HISTORY: &str = "history";
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
        let mut data = BTreeMap::from([
            (SCHEMA.to_owned(), FORM.to_string()),
            (OBJECTS.to_owned(), format!("[\n{}\n]", lines.join(",\n"))),
        ]);
        for (key, value) in [(CLUSTER_ID, &self.cluster_id), (APPROVED, &self.approved)] {
            data.extend(value.clone().map(|value| (key.to_owned(), value)));
        }
        if !self.history.is_empty() {
            data.insert(HISTORY.to_owned(), history_text(&self.history));
        }
        let all = self
            .history
            .iter()
            .flat_map(|(driver, revisions)| revisions.iter().map(move |revision| (driver, &revision.objects)));
        let binary = all.map(|(driver, objects)| (part(driver, objects), STANDARD.encode(objects.bytes())));
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
        let kept = |driver: &str| {
            self.history
                .get(driver)
                .into_iter()
                .flatten()
                .map(|revision| revision.objects.bytes().len())
        };
        let weight = |driver: &String| entries(driver) * 250 + kept(driver).sum::<usize>();
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
        if let Some(schema) = stored.data.get(SCHEMA)
            && schema.parse().ok().is_none_or(|schema: u32| schema > FORM)
        {
            return Err(damaged(Damage::Schema(schema.clone())));
        }
        let text = stored.data.get(OBJECTS).map_or("", String::as_str);
        let lines: Vec<Line> = serde_json::from_str(text).map_err(|error| damaged(Damage::Text(error)))?;
        let objects = lines.into_iter().map(Line::parts).filter(|(id, _)| !is_prerequisite(id));
        let parts = stored.binary.iter().map(|(key, text)| {
            let changed = || damaged(Damage::Changed(key.clone()));
            let objects = PackedObjects::from_bytes(&STANDARD.decode(text).map_err(|_| changed())?);
            let driver = key.split('.').next().unwrap_or_default();
            if part(driver, &objects) != *key {
                return Err(changed());
            }
            Ok((key.as_str(), objects))
        });
        let parts: BTreeMap<&str, PackedObjects> = parts.collect::<Result<_, _>>()?;
        let history = match stored.data.get(HISTORY) {
            Some(text) => history(text, &parts).map_err(damaged)?,
            None => first_revisions(parts),
        };
        Ok(Self {
            objects: objects.collect(),
            cluster_id: stored.data.get(CLUSTER_ID).cloned(),
            approved: stored.data.get(APPROVED).cloned(),
            history,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Outcome;

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
            history: BTreeMap::from([("d".into(), vec![Revision::of(3, PackedObjects::of([config_map("a", "x")].iter()))])]),
        };
        assert_eq!(Inventory::parse("i", &inventory.stored()).expect("readable"), inventory);
        let empty = Inventory::default();
        assert_eq!(Inventory::parse("i", &empty.stored()).expect("empty"), empty);
    }

    #[test]
    fn inventory_changed_part_is_error() {
        let inventory = Inventory {
            history: BTreeMap::from([("d".into(), vec![Revision::of(3, PackedObjects::of([config_map("a", "x")].iter()))])]),
            ..Inventory::default()
        };
        let other = PackedObjects::of([config_map("a", "y")].iter());
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

    /// Objects that are missing are stored again when the driver is healthy; an old revision without any is no use.
    #[test]
    fn inventory_without_a_part_keeps_the_newest_revision_only() {
        let revision = |number: u64, text: &str| Revision {
            outcome: Outcome::Deployed,
            ..Revision::of(number, PackedObjects::of([config_map("a", text)].iter()))
        };
        let inventory = Inventory {
            history: [("d".into(), vec![revision(1, "x"), revision(2, "y"), revision(3, "z")])].into(),
            ..Inventory::default()
        };
        let without = |keeps: &dyn Fn(&str) -> bool| {
            let mut stored = inventory.stored();
            stored.binary.retain(|key, _| keeps(key));
            let read = Inventory::parse("i", &stored).expect("readable");
            let told = read.history["d"].iter().map(|r| (r.number, r.outcome, r.is_known()));
            told.collect::<Vec<_>>()
        };
        let newest = part("d", &revision(3, "z").objects);
        let (good, open) = (Outcome::Deployed, Outcome::Progressing);
        assert_eq!(without(&|_| true), [(1, good, true), (2, good, true), (3, good, true)]);
        assert_eq!(without(&|key| key == newest), [(3, good, true)]);
        assert_eq!(without(&|key| key != newest), [(1, good, true), (2, good, true), (3, open, false)]);
        assert_eq!(without(&|_| false), [(3, open, false)]);
        let mut stored = inventory.stored();
        stored.data.insert(HISTORY.into(), "{".into());
        let error = Inventory::parse("i", &stored).expect_err("damaged");
        assert!(crate::api::chain(&error).contains("its history cannot be read"), "{error:?}");
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
    fn inventory_of_newer_schema_is_refused_and_says_what_to_run() {
        let data = |schema: &str| BTreeMap::from([("schema".to_owned(), schema.to_owned()), ("objects".to_owned(), "[]".to_owned())]);
        assert_eq!(Inventory::default().stored().data["schema"], FORM.to_string());
        assert!(parse(&data("1")).is_ok());
        for schema in [
            (FORM + 1).to_string(),
            "99".into(),
            "v2".into(),
            String::new(),
            "99999999999".into(),
        ] {
            let error = parse(&data(&schema)).expect_err("newer");
            let said = crate::api::chain(&error);
            assert!(said.contains(&format!("its schema is {schema:?}")), "{said}");
            assert!(error.is_newer() && said.contains("applyset.kubernetes.io/tooling"), "{said}");
        }
        let damaged = parse(&BTreeMap::from([("objects".into(), "[{".into())])).expect_err("damaged");
        assert!(!damaged.is_newer());
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

    #[test]
    fn inventory_of_the_largest_size_fits() {
        let of = |size: usize| Inventory {
            cluster_id: Some("x".repeat(size)),
            ..Inventory::default()
        };
        let rest = Inventory::MOST - of(0).stored().data.values().map(String::len).sum::<usize>();
        assert_eq!(of(rest).fits("i"), Ok(()));
        assert_eq!(of(rest + 1).fits("i").map_err(|error| error.size), Err(Inventory::MOST + 1));
    }

    /// The driver of which most is kept is named: its lines in the list, and what was applied of it last.
    #[test]
    fn inventory_too_large_names_driver_with_largest_part() {
        let text: String = (0..20).map(|n: u8| crate::types::Digest::of(&[n]).hex()).collect();
        let last = PackedObjects::of([config_map("a", &text)].iter());
        let lines = last.bytes().len() / 250;
        let of = |listed: usize| {
            let entry = |driver: &str| Entry {
                api_version: "v1".into(),
                driver: driver.into(),
                wave: 2,
                uid: None,
                applied: None,
            };
            let drivers = std::iter::repeat_n("listed", listed).chain(["kept"]);
            let inventory = Inventory {
                objects: drivers
                    .enumerate()
                    .map(|(n, driver)| (ObjectId::new("", "ConfigMap", "ns", format!("o{n}")), entry(driver)))
                    .collect(),
                cluster_id: Some("x".repeat(Inventory::MOST)),
                history: BTreeMap::from([("kept".into(), vec![Revision::of(1, last.clone())])]),
                ..Inventory::default()
            };
            inventory.fits("i").expect_err("too large").driver
        };
        assert!(lines > 1, "{}", last.bytes().len());
        assert_eq!(of(lines + 1), "kept", "one line of its own, and what is kept");
        assert_eq!(of(lines + 2), "listed");
    }

    #[test]
    fn applied_is_the_first_sixteen_digits_of_the_digest() {
        let of = |text: &str| {
            let metadata = serde_json::json!({"name": "c", "annotations": {crate::api::APPLIED_ANNOTATION: text}});
            let value = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            applied(&Object::new(value).expect("an object")).map(str::to_owned)
        };
        assert_eq!(of("sha256:0123456789abcdef0123").as_deref(), Some("0123456789abcdef"));
        assert_eq!(of("0123456789abcdef0123").as_deref(), Some("0123456789abcdef"));
        assert_eq!(of("sha256:0123"), None);
        assert_eq!(applied(&config_map("a", "x")), None);
    }
}
