// SPDX-License-Identifier: Apache-2.0
//! Looks up the fields of an index in its published schema (`docs/schema/matrix-v1.json`), and finds fields that this build does not know.

use serde_json::{Map, Value};
use std::sync::LazyLock;
use vdo_api::types::{from_json, nearest};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| from_json(include_str!("../../../../docs/schema/matrix-v1.json")).unwrap_or_default());

/// The published schema.
pub(super) fn published() -> &'static Value {
    &SCHEMA
}

/// A newer index may have some fields that this build does not know; what has more is not an index.
pub(super) const MAX_UNKNOWN: usize = 100;

static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The fields that the schema of a map names.
pub(super) fn fields(schema: &'static Value) -> &'static Map<String, Value> {
    schema["properties"].as_object().unwrap_or(&NONE)
}

/// What the schema of a map says of a field: `false` of one that is not known.
pub(super) fn of_field(schema: &'static Value, name: &str) -> &'static Value {
    fields(schema).get(name).unwrap_or(&schema["additionalProperties"])
}

/// The field that was probably meant.
pub(super) fn nearest_known(name: &str, known: &Map<String, Value>) -> Option<String> {
    nearest(name, known.keys().map(String::as_str)).map(str::to_owned)
}

/// A field that this build does not know: a newer index may have it, and a misspelt one too.
pub(super) struct Unknown {
    /// Keys, and numbers in lists.
    pub path: Vec<String>,
    /// What was probably meant.
    pub nearest: Option<String>,
}
/// Every field of an index that is not known, in the order of the index. It ends when there are more than [`MAX_UNKNOWN`].
pub(super) fn unknown(index: &Value) -> Vec<Unknown> {
    let mut found = Vec::new();
    look(index, &SCHEMA, &mut Vec::new(), &mut found);
    found
}

fn look(value: &Value, schema: &'static Value, path: &mut Vec<String>, found: &mut Vec<Unknown>) {
    let inside: Vec<(String, &Value, &'static Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), value, of_field(schema, name)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| (i.to_string(), item, &schema["items"]))
            .collect(),
        _ => Vec::new(),
    };
    for (name, value, inner) in inside {
        if found.len() > MAX_UNKNOWN {
            return;
        }
        if *inner == Value::Bool(false) {
            found.push(Unknown {
                nearest: nearest_known(&name, fields(schema)),
                path: path.iter().cloned().chain([name]).collect(),
            });
            continue;
        }
        path.push(name);
        look(value, inner, path, found);
        path.pop();
    }
}
