// SPDX-License-Identifier: Apache-2.0
//! Compares two versions of a CRD: removed versions and fields, changed types, new required fields, which break stored objects.

use serde_json::{Map, Value};

pub(super) const KIND: &str = "CustomResourceDefinition";

/// Versions, fields and freedoms that the new definition does not have any more, as sentences.
pub(super) fn lost(old: &Value, new: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    let versions = |definition: &Value| {
        definition
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let new_versions = versions(new);
    for version in versions(old).iter().filter(|version| version["served"] == Value::Bool(true)) {
        let name = version["name"].as_str().unwrap_or_default();
        match new_versions.iter().find(|other| other["name"] == version["name"]) {
            None => lost.push(format!("version {name} was removed")),
            Some(other) if other["served"] != Value::Bool(true) => lost.push(format!("version {name} is no longer served")),
            Some(other) => {
                let schema = |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
                fields(name, &schema(version), &schema(other), &mut lost);
            }
        }
    }
    lost
}

/// Walks two schemas of one place.
fn fields(path: &str, old: &Value, new: &Value, lost: &mut Vec<String>) {
    if new["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true) {
        return;
    }
    let kind = |schema: &Value| schema["type"].as_str().map(str::to_owned);
    if let (Some(before), Some(after)) = (kind(old), kind(new))
        && before != after
    {
        lost.push(format!("the type of {path} changed from {before} to {after}"));
        return;
    }
    let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
    let before = required(old);
    for field in required(new).iter().filter(|field| !before.contains(*field)) {
        lost.push(format!("{path}.{} is now required", field.as_str().unwrap_or_default()));
    }
    let none = Map::new();
    let properties = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_else(|| none.clone());
    let after = properties(new);
    for (name, schema) in properties(old) {
        let path = format!("{path}.{name}");
        match after.get(&name) {
            None => lost.push(format!("{path} was removed")),
            Some(other) => fields(&path, &schema, other, lost),
        }
    }
    for inner in ["items", "additionalProperties"] {
        if old[inner].is_object() && new[inner].is_object() {
            fields(&format!("{path}[]"), &old[inner], &new[inner], lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(version: &str, served: bool, schema: Value) -> Value {
        json!({"spec": {"versions": [{"name": version, "served": served, "schema": {"openAPIV3Schema": schema}}]}})
    }

    #[test]
    fn publish_definition_that_loses_something_is_named_by_its_field() {
        let of = |schema: Value| definition("v1", true, schema);
        let spec = |fields: Value| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
        let text = json!({"type": "string"});
        for (old, new, expected) in [
            (of(spec(json!({"a": text}))), of(spec(json!({"a": text, "b": text}))), vec![]),
            (
                of(spec(json!({"a": text, "b": text}))),
                of(spec(json!({"a": text}))),
                vec!["v1.spec.b was removed"],
            ),
            (
                of(spec(json!({"a": text}))),
                of(spec(json!({"a": {"type": "integer"}}))),
                vec!["the type of v1.spec.a changed from string to integer"],
            ),
            (
                of(spec(json!({"a": {"type": "array", "items": spec(json!({"x": text}))}}))),
                of(spec(json!({"a": {"type": "array", "items": spec(json!({}))}}))),
                vec!["v1.spec.a[].spec.x was removed"],
            ),
            (
                of(json!({"type": "object"})),
                of(json!({"type": "object", "required": ["spec"]})),
                vec!["v1.spec is now required"],
            ),
            (
                of(spec(json!({"a": text}))),
                of(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
                vec![],
            ),
            (of(json!({})), definition("v2", true, json!({})), vec!["version v1 was removed"]),
            (
                of(json!({})),
                definition("v1", false, json!({})),
                vec!["version v1 is no longer served"],
            ),
            (definition("v1", false, json!({})), definition("v2", true, json!({})), vec![]),
        ] {
            assert_eq!(lost(&old, &new), expected, "{old} {new}");
        }
    }
}
