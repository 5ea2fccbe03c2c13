// SPDX-License-Identifier: Apache-2.0
//! The inventory in the Secret `vdo-state`: every object that may exist because of the operator; its format and its size limit.

use super::stored_history::{first_revisions, history, history_text, part};
use super::{Desired, PackedObjects, Revision};
use crate::manifest::Object;
use crate::matrix::{EMBEDDED, StoredMatrix};
use crate::rbac::is_prerequisite;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::types::{ById, DriverName, ObjectId, Remedy, from_json};

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
    /// The matrix that is used, or was before the operator's own, where it came from elsewhere than the binary: no older one takes its place.
    pub matrix: Option<Arc<StoredMatrix>>,
    /// The matrix in the binary of the operator, where that is used: commands of another build decide with it.
    pub embedded: Option<Arc<StoredMatrix>>,
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
    /// What was applied when everything was in sync last, see [`applied`].
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
#[error("the operator's inventory in {name} cannot be read, and nothing is changed")]
pub struct InventoryError {
    name: String,
    #[source]
    source: Damage,
}

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    #[error("its list of objects cannot be read")]
    Text(#[source] serde_json::Error),
    #[error("another user changed its part {0}")]
    Changed(String),
    #[error("its history cannot be read")]
    History(#[source] serde_json::Error),
    #[error("its schema is {0:?}, but this operator supports only schemas up to {FORM}")]
    Schema(String),
}

/// An inventory that the API server would not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the operator's inventory in Secret {name} would have {size} bytes, but the API server accepts at most {most}; \
     driver {driver} needs the largest part; nothing was changed",
    most = Inventory::MOST
)]
pub struct InventoryTooLarge {
    /// The Secret.
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
                "Run the version of the operator that stored the inventory, or a newer version: the annotation \
                 applyset.kubernetes.io/tooling names the version."
                    .into(),
            );
        }
        Some(
            "Restore the Secret from a backup, or delete the Secret: the operator then rebuilds the inventory from the labels of the objects \
             before it removes anything."
                .into(),
        )
    }
}

impl Remedy for InventoryTooLarge {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Use a chart with fewer or smaller objects.".into())
    }
}

/// What the inventory is as keys and values: the content of its Secret, and formerly of a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it lists, as text.
    pub data: BTreeMap<String, String>,
    /// The objects of each revision, under a key with the driver and their digest, base64.
    pub binary: BTreeMap<String, String>,
}

/// How the keys of packed objects end.
const PACKED: &str = ".json.gz";

impl Stored {
    /// As the data of a Secret: every value base64.
    #[must_use]
    pub fn secret(self) -> BTreeMap<String, String> {
        let texts = self.data.into_iter().map(|(key, text)| (key, STANDARD.encode(text)));
        texts.chain(self.binary).collect()
    }

    /// Of the data of a Secret. What is not text counts as empty, which no part of an inventory is.
    #[must_use]
    pub fn of_secret(data: BTreeMap<String, String>) -> Self {
        let (binary, texts): (BTreeMap<_, _>, BTreeMap<_, _>) = data.into_iter().partition(|(key, _)| key.ends_with(PACKED));
        let text = |value: String| STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        Self {
            data: texts
                .into_iter()
                .map(|(key, value)| (key, text(value).unwrap_or_default()))
                .collect(),
            binary,
        }
    }
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
/// An older operator leaves it out when it stores the inventory, and it is read again from its source.
const MATRIX: &str = "matrix";
/// The same of the operator's own.
const OWN_MATRIX: &str = "embeddedMatrix";

impl Entry {
    /// Whether a live object may be the instance that is meant: the one recorded, or any while none is.
    #[must_use]
    pub fn is(&self, live: &Object) -> bool {
        self.uid.as_deref().is_none_or(|uid| uid == live.uid())
    }
}

impl Inventory {
    /// How many bytes one Secret takes; the rest of 1 MiB is left to its metadata.
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
        for (key, kept) in [(MATRIX, &self.matrix), (OWN_MATRIX, &self.embedded)] {
            data.extend(kept.as_ref().map(|kept| (key.to_owned(), kept.stored())));
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

    /// What is kept of the matrix of a source.
    #[must_use]
    pub fn kept(&self, source: &str) -> Option<&Arc<StoredMatrix>> {
        let kept = if source == EMBEDDED { &self.embedded } else { &self.matrix };
        kept.as_ref().filter(|kept| kept.source == source)
    }

    /// Keeps a matrix that is used.
    pub fn keep(&mut self, matrix: Arc<StoredMatrix>) {
        let place = if matrix.source == EMBEDDED {
            &mut self.embedded
        } else {
            &mut self.matrix
        };
        *place = Some(matrix);
    }

    /// The objects that should exist and are not in the inventory.
    pub fn unlisted<'a>(&'a self, desired: &'a [Desired]) -> impl Iterator<Item = &'a Object> {
        let objects = desired.iter().map(|desired| &desired.object);
        objects.filter(|object| !self.objects.contains_key(object.identity()))
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
        let lines: Vec<Line> = from_json(text).map_err(|error| damaged(Damage::Text(error)))?;
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
        let matrix = |key: &str| stored.data.get(key).and_then(|text| StoredMatrix::parse(text)).map(Arc::new);
        Ok(Self {
            objects: objects.collect(),
            cluster_id: stored.data.get(CLUSTER_ID).cloned(),
            approved: stored.data.get(APPROVED).cloned(),
            history,
            matrix: matrix(MATRIX),
            embedded: matrix(OWN_MATRIX),
        })
    }
}

#[cfg(test)]
mod tests;
