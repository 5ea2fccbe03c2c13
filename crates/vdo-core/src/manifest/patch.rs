// SPDX-License-Identifier: Apache-2.0
//! Computes the JSON merge patch (RFC 7386) between two objects; the module `patches` applies the patches of `spec.patches`.

use serde_json::{Map, Value};

/// The JSON merge patch (RFC 7386) that makes `to` out of `from`: what is gone is named with null, what is equal is left out.
#[must_use]
pub fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return to.clone();
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(same) if same == value => {}
            Some(other) => {
                patch.insert(key.clone(), merge_patch(other, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merge_patch_removed_field_is_null() {
        for (from, to, patch) in [
            (json!({}), json!({"a": 1}), json!({"a": 1})),
            (json!({"a": 1}), json!({}), json!({"a": null})),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1}}), json!({"a": {"c": null}})),
            (json!({"a": [1, 2]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), json!({"b": 3})),
            (json!({"a": null}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
        ] {
            assert_eq!(merge_patch(&from, &to), patch, "{from} to {to}");
        }
    }
}
