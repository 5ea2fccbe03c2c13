use super::manifests::{Settings, objects};
use crate::manifest::Object;
use serde_json::Value;

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
    let all = objects(&Settings::default()).unwrap_or_default();
    let definition = all.iter().find(|definition| definition.text("/spec/names/kind") == "VDOConfig");
    let schema = definition.and_then(|definition| {
        definition
            .value()
            .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
    });
    let below = |schema: &'_ Value, step: &&str| schema.get("properties")?.get(step).cloned();
    let Some(place) = schema
        .cloned()
        .and_then(|schema| path.iter().try_fold(schema, |schema, step| below(&schema, step)))
    else {
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
