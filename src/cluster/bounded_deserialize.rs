// SPDX-License-Identifier: Apache-2.0
//! Deserializes objects from the API server: only the fields of `watched_fields.rs`, and within a limit of memory for each object.
//!
//! Anyone who may create pods may create pods of several megabytes. Of an object above the limit, only the identity is read.

mod watched_fields;

pub(super) use watched_fields::{APPLIED, CLASS, MANAGED, METADATA, SMALL, TABLE, WHOLE, for_kind, place};

use super::Watch;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;
use watched_fields::Fields;

/// What identifies an object and its state; read always, and all that is left of one that is too large.
const IDENTITY: [&str; 7] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
];

/// About what a value takes in memory: serde_json keeps 72 bytes of each, and tables of maps and lists have room for more than is in them.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => LEAF,
        Value::String(text) => LEAF + text.len(),
        Value::Array(items) => BRANCH + items.iter().map(weight).sum::<usize>(),
        Value::Object(fields) => BRANCH + fields.iter().map(|(key, value)| LEAF + key.len() + weight(value)).sum::<usize>(),
    }
}

const LEAF: usize = 80;
const BRANCH: usize = 300;

/// An object as it arrives, with the fields of this place in [`TABLE`].
#[derive(Clone)]
pub(super) struct Arrived<const FIELDS: usize> {
    /// Its name, namespace and version; the rest is in the value.
    meta: ObjectMeta,
    value: Value,
    /// Whether it was too large, so that only its identity is left.
    pub(super) is_cut: bool,
}

impl<const FIELDS: usize> fmt::Debug for Arrived<FIELDS> {
    /// Its content may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.meta.namespace, self.meta.name)
    }
}

impl<const FIELDS: usize> Arrived<FIELDS> {
    /// The object; items of a list do not say what they are.
    pub(super) fn object(self, watch: &Watch) -> Option<Object> {
        let types = watch.types();
        self.typed(&types.api_version, &types.kind)
    }

    /// Which object it is.
    pub(super) fn id(&self, watch: &Watch) -> ObjectId {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let group = watch.id().group().to_owned();
        ObjectId::new(group, &watch.kind, text(&self.meta.namespace), text(&self.meta.name))
    }

    /// The object, of this kind unless it says another.
    pub(super) fn typed(mut self, api_version: &str, kind: &str) -> Option<Object> {
        let fields = self.value.as_object_mut()?;
        for (key, text) in [("apiVersion", api_version), ("kind", kind)] {
            fields.entry(key).or_insert_with(|| text.into());
        }
        Object::new(self.value).ok()
    }

    /// Forgets what it says it is, which of metadata alone is nothing else.
    pub(super) fn untyped(&mut self) {
        if let Some(fields) = self.value.as_object_mut() {
            fields.retain(|key, _| key == "metadata");
        }
    }

    /// The object as a value.
    pub(super) fn into_value(self) -> Value {
        self.value
    }
}

impl<const FIELDS: usize> Resource for Arrived<FIELDS> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

impl<'de, const FIELDS: usize> Deserialize<'de> for Arrived<FIELDS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields { fields, most, .. } = &TABLE[FIELDS];
        let (value, is_cut) = read_within(deserializer, fields, FIELDS == MANAGED, *most)?;
        let text = |key: &str| value.get("metadata")?.get(key)?.as_str().map(str::to_owned);
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, value, is_cut })
    }
}

/// Reads these fields of an object, all where none is named, within so many bytes of memory; and whether they were too few, so that only its
/// identity is left.
pub(super) fn read_within<'de, D: Deserializer<'de>>(
    deserializer: D,
    fields: &[&'static str],
    managers: bool,
    most: usize,
) -> Result<(Value, bool), D::Error> {
    let mut room = Room { left: most, full: false };
    let part = Part {
        depth: Depth::Top,
        wanted: Wanted::of(fields),
        managers,
        room: &mut room,
    };
    let mut value = part.deserialize(deserializer)?;
    if room.full {
        identity_only(&mut value);
    }
    Ok((value, room.full))
}

/// Takes everything away that does not say which object this is, in which state.
pub(super) fn identity_only(value: &mut Value) {
    let Some(fields) = value.as_object_mut() else { return };
    fields.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| IDENTITY.contains(&key.as_str()));
    }
}

struct Room {
    left: usize,
    full: bool,
}

impl Room {
    /// Takes memory; whether there was enough. From the first time on that there is not, nothing more is built.
    fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) if !self.full => self.left = left,
            _ => self.full = true,
        }
        !self.full
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Top,
    Metadata,
    Below,
}

#[derive(Clone)]
enum Wanted {
    All,
    /// The rests of the pointers, each with its slash.
    Some(Vec<&'static str>),
}

impl Wanted {
    fn of(fields: &[&'static str]) -> Self {
        match fields.is_empty() {
            true => Self::All,
            false => Self::Some(fields.to_vec()),
        }
    }

    /// What is wanted below a field.
    fn below(&self, key: &str) -> Option<Self> {
        let Self::Some(all) = self else { return Some(Self::All) };
        let mut rests = Vec::new();
        for pointer in all {
            let pointer = pointer.trim_start_matches('/');
            let (first, rest) = pointer.find('/').map_or((pointer, ""), |at| pointer.split_at(at));
            if first == key || first.contains('~') && first.replace("~1", "/") == key {
                if rest.is_empty() {
                    return Some(Self::All);
                }
                rests.push(rest);
            }
        }
        (!rests.is_empty()).then_some(Self::Some(rests))
    }
}

/// A part of an object that is being read.
struct Part<'r> {
    depth: Depth,
    wanted: Wanted,
    managers: bool,
    room: &'r mut Room,
}

impl Part<'_> {
    fn leaf(&mut self, value: impl Into<Value>, bytes: usize) -> Value {
        match self.room.take(LEAF + bytes) {
            true => value.into(),
            false => Value::Null,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<Value, E> {
        Ok(self.leaf(value, 0))
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<Value, E> {
        Ok(self.leaf(value, 0))
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<Value, E> {
        Ok(self.leaf(value, 0))
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<Value, E> {
        Ok(self.leaf(value, 0))
    }

    fn visit_str<E>(mut self, value: &str) -> Result<Value, E> {
        Ok(self.leaf(value, value.len()))
    }

    fn visit_unit<E>(mut self) -> Result<Value, E> {
        Ok(self.leaf(Value::Null, 0))
    }

    fn visit_none<E>(mut self) -> Result<Value, E> {
        Ok(self.leaf(Value::Null, 0))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        if !self.room.take(BRANCH) {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        loop {
            let part = Part {
                depth: Depth::Below,
                wanted: self.wanted.clone(),
                managers: self.managers,
                room: &mut *self.room,
            };
            match list.next_element_seed(part)? {
                Some(_) if self.room.full => {}
                Some(item) => items.push(item),
                None => return Ok(items.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        self.room.take(BRANCH);
        while let Some(key) = fields.next_key::<Cow<'de, str>>()? {
            let is_identity = match self.depth {
                Depth::Top => matches!(&*key, "apiVersion" | "kind"),
                Depth::Metadata => IDENTITY.contains(&&*key),
                Depth::Below => false,
            };
            if is_identity {
                map.insert(key.into_owned(), fields.next_value()?);
                continue;
            }
            let (depth, wanted) = match (self.depth, &*key) {
                (Depth::Top, "metadata") => (Depth::Metadata, Some(self.wanted.below(&key).unwrap_or(Wanted::Some(Vec::new())))),
                (Depth::Metadata, "managedFields") if !self.managers => match &self.wanted {
                    Wanted::All => (Depth::Below, None),
                    wanted @ Wanted::Some(_) => (Depth::Below, wanted.below(&key)),
                },
                _ => (Depth::Below, self.wanted.below(&key)),
            };
            let Some(wanted) = wanted.filter(|_| depth == Depth::Metadata || self.room.take(LEAF + key.len())) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            let part = Part {
                depth,
                wanted,
                managers: self.managers,
                room: &mut *self.room,
            };
            let value = fields.next_value_seed(part)?;
            map.insert(key.into_owned(), value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests;
