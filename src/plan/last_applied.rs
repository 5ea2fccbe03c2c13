//! What was applied of a driver last, compressed: it is repaired to that while nothing else is known of it.

use super::{Desired, Entry, Inventory, applied};
use crate::manifest::Object;
use crate::types::{Digest, DriverName};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// More than this is no record of ours: the API server takes 1 MiB in all.
const MOST: u64 = 64 << 20;

/// The objects of one driver as they were applied, but for the content of Secrets, of which only the digest is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct LastApplied(Arc<[u8]>);

impl std::fmt::Debug for LastApplied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LastApplied({} bytes, {})", self.0.len(), self.digest())
    }
}

impl LastApplied {
    /// Of these objects.
    #[must_use]
    pub fn of<'a>(objects: impl Iterator<Item = &'a Object>) -> Self {
        Self::pack(objects.map(|object| (key(object), without_content(object))).collect())
    }

    /// Of what is in the old one and these objects; `None` when it has all of them.
    pub(super) fn with<'a>(old: Option<&Self>, objects: impl Iterator<Item = &'a Object>) -> Option<Self> {
        let mut all: BTreeMap<String, Value> = old.and_then(|old| old.values().ok()).unwrap_or_default();
        let before = all.len();
        for object in objects {
            all.entry(key(object)).or_insert_with(|| without_content(object));
        }
        (all.len() > before || old.is_none()).then(|| Self::pack(all))
    }

    fn pack(all: BTreeMap<String, Value>) -> Self {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        let values: Vec<Value> = all.into_values().collect();
        let text = Value::Array(values).to_string();
        // Writing into memory does not fail.
        let bytes = packed.write_all(text.as_bytes()).and_then(|()| packed.finish()).unwrap_or_default();
        Self(bytes.into())
    }

    /// As it was read. What is in it is looked at only when it is needed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// As it is stored.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What it is called by: the digest of its content.
    #[must_use]
    pub fn digest(&self) -> String {
        Digest::of(&self.0).hex()[..16].to_owned()
    }

    fn values(&self) -> io::Result<BTreeMap<String, Value>> {
        let mut text = String::new();
        GzDecoder::new(&*self.0).take(MOST).read_to_string(&mut text)?;
        let all: Vec<Value> = serde_json::from_str(&text)?;
        let objects = all.into_iter().filter_map(|value| Object::new(value).ok());
        Ok(objects.map(|object| (key(&object), object.into_value())).collect())
    }
}

/// Two states of one object are two.
fn key(object: &Object) -> String {
    format!("{} {}", object.id(), object.applied().unwrap_or_default())
}

fn without_content(object: &Object) -> Value {
    let mut value = object.look().into_owned();
    if object.is_secret()
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("data");
        fields.remove("stringData");
    }
    value
}

impl Inventory {
    /// What was applied last of a driver: of each object the state that the live one says it was given or, where there is none, the one
    /// of the last commit. A Secret is among them when one of `secrets` is that very state. `None` when it is not known.
    #[must_use]
    pub fn last_applied<'a>(
        &self,
        driver: &str,
        live: impl Fn(&crate::types::ObjectId) -> Option<&'a Object>,
        secrets: &[Object],
    ) -> Option<Vec<Desired>> {
        let all = self.last.get(driver)?.values().ok()?;
        let mut by_id: BTreeMap<crate::types::ObjectId, Vec<Object>> = BTreeMap::new();
        for object in all.into_values().filter_map(|value| Object::new(value).ok()) {
            by_id.entry(object.id()).or_default().push(object);
        }
        let name: Arc<str> = driver.into();
        let mut desired = Vec::new();
        for (id, states) in by_id {
            let Some(entry) = self.objects.get(&id).filter(|entry| entry.driver == driver) else {
                continue;
            };
            let of_live = states
                .iter()
                .find(|state| live(&id).is_some_and(|live| live.applied() == state.applied()));
            let Some(state) = of_live.or_else(|| states.iter().find(|state| entry.was(state))) else {
                continue;
            };
            let object = match state.is_secret() {
                false => Some(state),
                true => secrets
                    .iter()
                    .find(|secret| secret.id() == id && secret.applied() == state.applied()),
            };
            desired.extend(object.map(|object| Desired {
                object: object.at_rest(),
                driver: name.clone(),
                wave: entry.wave,
            }));
        }
        Some(desired)
    }

    /// The drivers of which anything may exist.
    #[must_use]
    pub fn drivers(&self) -> std::collections::BTreeSet<DriverName> {
        self.objects.values().map(|entry| entry.driver.clone()).collect()
    }
}

impl Entry {
    /// Whether this is the state that was applied when the driver was in sync last.
    fn was(&self, state: &Object) -> bool {
        self.applied.is_some() && self.applied.as_deref() == applied(state)
    }
}
