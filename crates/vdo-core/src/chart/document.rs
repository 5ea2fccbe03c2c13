// SPDX-License-Identifier: Apache-2.0
//! Reads the object id of a rendered YAML document, and lists or changes the container images in a list of objects.

use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use vdo_api::types::{ObjectId, Remedy};

/// A YAML document is not a Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is a list or a scalar.
    #[error("it is not a map")]
    NotAMap,
    /// A field every object has is not there.
    #[error("it has no {0}")]
    Missing(&'static str),
}

impl Remedy for DocumentError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Write an object with apiVersion, kind and metadata.name.".into())
    }
}

/// What an object is called in the cluster.
///
/// # Errors
/// When it is not a map with `apiVersion`, `kind` and `metadata.name`.
pub fn object_id(object: &Value) -> Result<ObjectId, DocumentError> {
    if !object.is_object() {
        return Err(DocumentError::NotAMap);
    }
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let api_version = text("/apiVersion").ok_or(DocumentError::Missing("apiVersion"))?;
    let kind = text("/kind").ok_or(DocumentError::Missing("kind"))?;
    let name = text("/metadata/name").ok_or(DocumentError::Missing("metadata.name"))?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Ok(ObjectId::new(group, kind, text("/metadata/namespace").unwrap_or_default(), name))
}

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Every container image the objects name, sorted, each once.
#[must_use]
pub fn images(objects: &[Value]) -> Vec<String> {
    let mut found = BTreeSet::new();
    objects.iter().for_each(|object| collect(object, &mut found));
    found.into_iter().collect()
}

/// Changes container images of the objects in place.
pub fn for_each_image(objects: &mut [Value], change: &mut impl FnMut(&mut String)) {
    objects.iter_mut().for_each(|object| each(object, change));
}

fn each(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::Object(fields) => {
            for key in CONTAINERS {
                let containers = fields.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
                for image in containers.filter_map(|container| container.get_mut("image")) {
                    if let Value::String(image) = image {
                        change(image);
                    }
                }
            }
            fields.values_mut().for_each(|value| each(value, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| each(value, change)),
        _ => {}
    }
}

fn collect(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for key in CONTAINERS {
                let containers = fields.get(key).and_then(Value::as_array).into_iter().flatten();
                found.extend(containers.filter_map(|c| c.get("image")?.as_str()).map(str::to_owned));
            }
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}
