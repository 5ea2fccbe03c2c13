// SPDX-License-Identifier: Apache-2.0
//! Looks up fields of the VDOConfig in its CRD schema: types the values of `--set`, finds unknown fields, lists fields for completion.

use super::manifests::{Settings, objects};
use crate::manifest::Object;
use serde_json::Value;
use vdo_api::types::nearest;

/// Why a field of a specification cannot be set as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldError {
    /// There is no such field.
    Unknown {
        /// The field as a path.
        path: String,
        /// The field of the same place whose name is nearest.
        meant: Option<String>,
        /// The fields of that place.
        known: Vec<String>,
    },
    /// Its value is of another type.
    Type {
        /// The field as a path.
        path: String,
        /// The type of its definition.
        wanted: String,
    },
}

/// The specification of a VDOConfig as it was typed, where a number or a switch means a text: as its definition says. `3.10` is a version
/// and no number, so it is taken as it was typed.
///
/// # Errors
/// For the first field that the definition does not know, and for a value of another type.
pub fn typed_spec(path: &[String], typed: &str, value: Value) -> Result<Value, FieldError> {
    let Some(mut schema) = spec_schema() else { return Ok(value) };
    for (at, step) in path.iter().enumerate() {
        if free(&schema) {
            return Ok(value);
        }
        let known = schema["properties"].as_object().cloned().unwrap_or_default();
        let any = schema.get("additionalProperties").filter(|any| any.is_object()).cloned();
        schema = known.get(step).cloned().or(any).ok_or_else(|| {
            let place = path[..at].iter().fold("spec".to_owned(), |place, step| format!("{place}.{step}"));
            FieldError::Unknown {
                path: format!("{place}.{step}"),
                meant: nearest(step, known.keys().map(String::as_str)).map(str::to_owned),
                known: known.keys().cloned().collect(),
            }
        })?;
    }
    let wanted = schema["type"].as_str().unwrap_or_default().to_owned();
    let value = match &value {
        Value::Number(_) | Value::Bool(_) if wanted == "string" => typed.to_owned().into(),
        _ => value,
    };
    let place = path.iter().fold("spec".to_owned(), |place, step| format!("{place}.{step}"));
    let fits = match (&value, wanted.as_str()) {
        (Value::Null, _) | (_, "") => true,
        (Value::Object(_), wanted) => wanted == "object",
        (Value::Array(_), wanted) => wanted == "array",
        (Value::Bool(_), wanted) => wanted == "boolean",
        (Value::Number(_), wanted) => matches!(wanted, "integer" | "number"),
        (Value::String(_), wanted) => wanted == "string",
    };
    if !fits {
        return Err(FieldError::Type { path: place, wanted });
    }
    match unknown(&schema, &value, place) {
        None => Ok(value),
        Some(path) => Err(FieldError::Unknown {
            path,
            meant: None,
            known: Vec::new(),
        }),
    }
}

fn spec_schema() -> Option<Value> {
    let all = objects(&Settings::default()).unwrap_or_default();
    let definition = all.iter().find(|definition| definition.text("/spec/names/kind") == "VDOConfig")?;
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    definition.value().pointer(spec).cloned()
}

/// The first field of one of our objects that its definition does not know, as a path. The API server reports it only once the definition
/// is there.
#[must_use]
pub fn unknown_field(object: &Object) -> Option<String> {
    let all = objects(&Settings::default()).unwrap_or_default();
    let definition = all.iter().find(|definition| definition.text("/spec/names/kind") == object.kind())?;
    let schema = definition.value().pointer("/spec/versions/0/schema/openAPIV3Schema")?;
    let fields = object.value().as_object()?;
    let own = fields
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    own.into_iter()
        .find_map(|(key, value)| match schema.get("properties").and_then(|known| known.get(key)) {
            Some(schema) => unknown(schema, value, key.clone()),
            None => Some(key.clone()),
        })
}

/// A field of a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it is for, in a sentence.
    pub about: String,
    /// Whether it has fields itself.
    pub has_fields: bool,
}

/// What is at a place of a specification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Its fields.
    pub fields: Vec<Field>,
    /// Its values, where there are only some.
    pub values: Vec<String>,
}

/// What is at a place of the specification of a VDOConfig.
#[must_use]
pub fn spec_fields(path: &[&str]) -> Place {
    let schema = spec_schema();
    let below = |schema: &'_ Value, step: &&str| schema.get("properties")?.get(step).cloned();
    let Some(place) = schema.and_then(|schema| path.iter().try_fold(schema, |schema, step| below(&schema, step))) else {
        return Place::default();
    };
    let field = |(name, schema): (&String, &Value)| Field {
        name: name.clone(),
        about: schema["description"]
            .as_str()
            .unwrap_or_default()
            .split(". ")
            .next()
            .unwrap_or_default()
            .to_owned(),
        has_fields: schema["type"] == "object",
    };
    let texts = place["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|value| value.as_str().map(str::to_owned));
    let switch = if place["type"] == "boolean" { &["true", "false"][..] } else { &[] };
    Place {
        fields: place["properties"].as_object().into_iter().flatten().map(field).collect(),
        values: texts.chain(switch.iter().map(|word| (*word).to_owned())).collect(),
    }
}

fn unknown(schema: &Value, value: &Value, path: String) -> Option<String> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let inner = format!("{path}.{key}");
            let named = schema.get("properties").and_then(|known| known.get(key));
            let any = schema.get("additionalProperties").filter(|any| any.is_object());
            match named.or(any) {
                Some(schema) => unknown(schema, value, inner),
                None => (!free(schema)).then_some(inner),
            }
        }),
        Value::Array(items) => {
            let schema = schema.get("items")?;
            let mut all = items.iter().enumerate();
            all.find_map(|(i, item)| unknown(schema, item, format!("{path}[{i}]")))
        }
        _ => None,
    }
}

/// Whether an object may have any field.
fn free(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        || schema.get("additionalProperties") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn typed(path: &str, text: &str) -> Result<Value, FieldError> {
        let steps: Vec<String> = path.split('.').map(str::to_owned).collect();
        typed_spec(&steps, text, vdo_api::yaml::load_value(text).expect("YAML"))
    }

    #[test]
    fn spec_field_typed_is_read_as_its_definition_says() {
        for (path, text, expected) in [
            ("storageProvider.version", "3.7", json!("3.7")),
            ("storageProvider.version", "3.10", json!("3.10")),
            ("storageProvider.version", "3.7.3", json!("3.7.3")),
            ("storageProvider.version", "null", json!(null)),
            ("storageProvider.clusterId", "0123", json!("0123")),
            ("storageProvider.clusterId", "true", json!("true")),
            ("storageProvider.webhook", "true", json!(true)),
            ("revisionHistoryLimit", "7", json!(7)),
            ("storageProvider.values.controller.replicas", "2", json!(2)),
            ("storageProvider.features.a", "true", json!(true)),
            ("storageProvider.snapshots", "{}", json!({})),
        ] {
            assert_eq!(typed(path, text), Ok(expected), "{path}={text}");
        }
    }

    #[test]
    fn spec_field_unknown_names_the_nearest() {
        for (path, text, expected, meant) in [
            ("storageProvider.versoin", "3.6.3", "spec.storageProvider.versoin", Some("version")),
            ("storageProvidr.version", "3.6.3", "spec.storageProvidr", Some("storageProvider")),
            ("zzz", "1", "spec.zzz", None),
            ("storageProvider", "{versoin: 1}", "spec.storageProvider.versoin", None),
        ] {
            match typed(path, text) {
                Err(FieldError::Unknown {
                    path: found, meant: near, ..
                }) => {
                    assert_eq!((found.as_str(), near.as_deref()), (expected, meant), "{path}");
                }
                other => panic!("{path}: {other:?}"),
            }
        }
    }

    #[test]
    fn spec_field_of_another_type_is_refused_with_the_right_one() {
        for (path, text, wanted) in [
            ("storageProvider.snapshots", "true", "object"),
            ("storageProvider.webhook", "{}", "boolean"),
            ("storageProvider.topologyCategories", "a", "array"),
            ("revisionHistoryLimit", "many", "integer"),
        ] {
            let expected = FieldError::Type {
                path: format!("spec.{path}"),
                wanted: wanted.into(),
            };
            assert_eq!(typed(path, text), Err(expected), "{path}");
        }
    }
}
