//! The fields that an index may have, by its published schema; and those that this build does not know.

use crate::types::nearest;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../docs/schema/matrix-v1.json")).unwrap_or_default());

/// The published schema.
pub(super) fn published() -> &'static Value {
    &SCHEMA
}

/// A field that this build does not know: a newer index may have it, and a misspelt one too.
pub(super) struct Unknown {
    /// Keys, and numbers in lists.
    pub path: Vec<String>,
    /// What was probably meant.
    pub nearest: Option<String>,
}

/// A newer index may have some fields that this build does not know; more than these are no index.
pub(super) const MAX_UNKNOWN: usize = 100;

/// Every field of an index that is not known, in the order of the index. It ends when there are more than [`MAX_UNKNOWN`].
pub(super) fn unknown(index: &Value) -> Vec<Unknown> {
    let mut found = Vec::new();
    look(index, &SCHEMA, &mut Vec::new(), &mut found);
    found
}

fn look(value: &Value, schema: &Value, path: &mut Vec<String>, found: &mut Vec<Unknown>) {
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    let others = &schema["additionalProperties"];
    let inside: Vec<(String, &Value, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), value, known.get(name).unwrap_or(others)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| (i.to_string(), item, &schema["items"]))
            .collect(),
        _ => Vec::new(),
    };
    for (name, value, schema) in inside {
        if found.len() > MAX_UNKNOWN {
            return;
        }
        if *schema == Value::Bool(false) {
            found.push(Unknown {
                nearest: nearest(&name, known.keys().map(String::as_str)).map(str::to_owned),
                path: path.iter().cloned().chain([name]).collect(),
            });
            continue;
        }
        path.push(name);
        look(value, schema, path, found);
        path.pop();
    }
}

/// Takes a field out.
pub(super) fn remove(index: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = index;
    for name in parents {
        let inner = match at {
            Value::Object(fields) => fields.get_mut(name),
            Value::Array(items) => name.parse::<usize>().ok().and_then(|i| items.get_mut(i)),
            _ => None,
        };
        let Some(inner) = inner else { return };
        at = inner;
    }
    if let Some(fields) = at.as_object_mut() {
        fields.shift_remove(last);
    }
}
