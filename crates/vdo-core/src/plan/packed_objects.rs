// SPDX-License-Identifier: Apache-2.0
//! Compresses the applied objects of a driver for the history, without the content of Secrets.

use crate::manifest::Object;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use vdo_api::types::{Digest, from_json};

/// More than this is not a record of ours: the API server takes 1 MiB of it, and 2,000 objects have 4.
const MOST: u64 = 16 << 20;

/// The objects of one driver as they were applied, but for the content of Secrets, of which only the digest is kept.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PackedObjects(Arc<[u8]>);

impl fmt::Debug for PackedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedObjects({} bytes, {})", self.0.len(), self.digest())
    }
}

impl PackedObjects {
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

    /// The objects. What cannot be read is none.
    #[must_use]
    pub fn objects(&self) -> Vec<Object> {
        let values = self.values().unwrap_or_default().into_values();
        values.filter_map(|value| Object::new(value).ok()).collect()
    }

    /// What it is called by: the digest of its content.
    #[must_use]
    pub fn digest(&self) -> String {
        Digest::of(&self.0).hex()[..16].to_owned()
    }

    pub(super) fn values(&self) -> io::Result<BTreeMap<String, Value>> {
        let mut text = String::new();
        GzDecoder::new(&*self.0).take(MOST).read_to_string(&mut text)?;
        let all: Vec<Value> = from_json(&text)?;
        let objects = all.into_iter().filter_map(|value| Object::new(value).ok());
        Ok(objects.map(|object| (key(&object), object.into_value())).collect())
    }
}

/// Two states of one object are two.
fn key(object: &Object) -> String {
    format!("{} {}", object.id(), object.applied().unwrap_or_default())
}

fn without_content(object: &Object) -> Value {
    let mut value = object.value().clone();
    if object.is_secret()
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("data");
        fields.remove("stringData");
    }
    value
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::manifest::{Owner, stamp};
    use serde_json::json;
    use vdo_api::types::ELEMENTS;

    /// An object as it is applied.
    pub(in crate::plan) fn object(kind: &str, name: &str, content: &str) -> Object {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}, "data": {"content": content}});
        let mut all = [Object::new(value).expect("an object")];
        let owner = Owner {
            apply_set: "set".into(),
            driver: "d".into(),
            version: "1.0.0".into(),
            salt: String::new(),
        };
        stamp(&mut all, &owner);
        let [object] = all;
        object
    }

    #[test]
    fn packed_objects_grow_only_by_states_that_it_has_not() {
        let (old, new) = (object("ConfigMap", "a", "old"), object("ConfigMap", "a", "new"));
        let kept = PackedObjects::of([&old].into_iter());
        let states = |kept: &PackedObjects| kept.values().map(|all| all.len()).ok();
        assert_eq!(PackedObjects::with(Some(&kept), [&old].into_iter()), None);
        let both = PackedObjects::with(Some(&kept), [&new].into_iter()).expect("one more");
        assert_eq!(states(&both), Some(2));
        let first = PackedObjects::with(None, [&old].into_iter()).expect("the first");
        assert_eq!((states(&first), first == kept), (Some(1), true));
        assert!(
            PackedObjects::with(None, std::iter::empty()).is_some(),
            "nothing was there, and that is reported"
        );
    }

    /// A megabyte of a ConfigMap can hold a gigabyte of these.
    #[test]
    fn packed_objects_with_too_many_values_are_none() {
        let packed = |text: String| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(text.as_bytes()).expect("written");
            PackedObjects::from_bytes(&packed.finish().expect("packed"))
        };
        let object = object("ConfigMap", "a", "x").into_value().to_string();
        assert_eq!(packed(format!("[{object}]")).objects().len(), 1);
        let many = packed(format!("[{object}{}]", ",{}".repeat(ELEMENTS)));
        assert!(many.bytes().len() < 1 << 12, "{}", many.bytes().len());
        assert_eq!(many.objects(), []);
    }

    #[test]
    fn packed_objects_secret_is_kept_without_its_content() {
        let text = |object: &Object| {
            let mut text = String::new();
            let kept = PackedObjects::of([object].into_iter());
            GzDecoder::new(kept.bytes()).read_to_string(&mut text).expect("readable");
            text
        };
        assert!(text(&object("ConfigMap", "a", "in the open")).contains("in the open"));
        let secret = text(&object("Secret", "a", "in the dark"));
        assert!(!secret.contains("in the dark") && !secret.contains("\"data\""), "{secret}");
    }
}
