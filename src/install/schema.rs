use super::manifests::{Settings, objects};
use crate::manifest::Object;
use serde_json::Value;

/// The first field of one of our objects that its definition does not know, as a path. The API server says so only once the definition
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
