// SPDX-License-Identifier: Apache-2.0
//! Reads from an object's `managedFields` which field manager wrote a field, and when; `manifest/field_handover.rs` changes them.

use crate::manifest::{Difference, Object};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use vdo_api::types::FIELD_MANAGER;
use vdo_api::types::from_json;

/// Who wrote a field last: the newest of those who own it, or something in it or around it. A manager that removed a field owns
/// nothing of it any more, so then it is the newest of all others. A subresource such as `scale` is another way to write the same fields;
/// what is in the status concerns no one here.
pub(super) fn writer(live: &Object, path: &str) -> Option<(String, Option<Timestamp>)> {
    let entries = live.value().pointer("/metadata/managedFields")?.as_array()?;
    let others = entries.iter().filter(|entry| {
        let own = entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply";
        !own && entry["subresource"] != "status"
    });
    let steps = steps(path);
    let when = |entry: &Value| entry["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    // How far down the path the entry owns anything: the deepest knows most, and of equals the newest.
    let best = others.max_by_key(|entry| (depth(&entry["fieldsV1"], &steps, live), when(entry)))?;
    Some((best["manager"].as_str().unwrap_or_default().to_owned(), when(best)))
}

/// Whether all that differs are values that are still ours, by the record of field managers: the API server writes some in its own way,
/// `1000m` as `1`, and no one has changed them.
#[must_use]
pub fn is_own_spelling(differences: &[Difference], live: &Object) -> bool {
    let entries = live.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    let own = entries.into_iter().flatten().filter(|entry| {
        let subresource = entry["subresource"].as_str().unwrap_or_default();
        entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply" && subresource.is_empty()
    });
    let own: Vec<&Value> = own.map(|entry| &entry["fieldsV1"]).collect();
    let is_own = |path: &str| own.iter().any(|fields| covers(fields, &steps(path), live));
    !differences.is_empty() && differences.iter().all(|difference| is_own(&difference.path))
}

/// A path in its parts: `spec.list[0].a[b/c]` is `spec`, `list`, `[0]`, `a`, `b/c`.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Field(&'a str),
    Item(usize),
}

fn steps(path: &str) -> Vec<Part<'_>> {
    let mut all = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some((inside, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            all.push(inside.parse().map_or(Part::Field(inside), Part::Item));
            rest = after;
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            all.push(Part::Field(&rest[..end]));
            rest = &rest[end..];
        }
    }
    all
}

/// How many steps down a path a set of fields (`fieldsV1`) reaches. Items of lists are named there by their keys or values,
/// which the live object tells.
fn depth(fields: &Value, steps: &[Part<'_>], live: &Object) -> usize {
    descend(fields, steps, live).0
}

/// Whether a set of fields has all that is at the end of a path: the field itself, or something around it that is owned as a whole.
/// Of a list or a map whose entries have owners of their own it says nothing.
fn covers(fields: &Value, steps: &[Part<'_>], live: &Object) -> bool {
    let (reached, rest) = descend(fields, steps, live);
    reached > 0 && rest.as_object().is_some_and(serde_json::Map::is_empty)
}

/// How many steps down a path a set of fields reaches, and what it says of the place where it ends.
fn descend<'a>(fields: &'a Value, steps: &[Part<'_>], live: &Object) -> (usize, &'a Value) {
    let (mut fields, mut at) = (fields, live.value());
    for (reached, step) in steps.iter().enumerate() {
        let next = match step {
            Part::Field(name) => {
                at = at.get(*name).unwrap_or(&Value::Null);
                fields.get(format!("f:{name}"))
            }
            Part::Item(index) => {
                at = at.get(*index).unwrap_or(&Value::Null);
                fields
                    .as_object()
                    .and_then(|map| map.iter().find(|(key, _)| names(key, at)))
                    .map(|(_, inside)| inside)
            }
        };
        match next {
            Some(inside) => fields = inside,
            None => return (reached, fields),
        }
    }
    (steps.len(), fields)
}

/// Whether a key of `fieldsV1` names this item: `k:{"name":"a"}` by keys, `v:"a"` by value.
fn names(key: &str, item: &Value) -> bool {
    let parsed = |text: &str| from_json::<Value>(text).ok();
    match key.split_at_checked(2) {
        Some(("k:", keys)) => parsed(keys)
            .as_ref()
            .and_then(Value::as_object)
            .is_some_and(|keys| keys.iter().all(|(key, value)| item.get(key) == Some(value))),
        Some(("v:", value)) => parsed(value).as_ref() == Some(item),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn own_field_respelled_by_server_is_no_drift() {
        let own = json!({"f:spec": {"f:replicas": {}, "f:tolerations": {},
            "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}}}});
        let live = |manager: &str, operation: &str| {
            let entry = json!({"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": own});
            Object::new(
                json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "managedFields": [entry]}, "spec": {
                "replicas": 1, "tolerations": [{"key": "k"}], "containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]}}),
            )
            .expect("an object")
        };
        let differs = |paths: &[&str]| -> Vec<Difference> {
            let of = |path: &&str| Difference {
                path: (*path).to_owned(),
                wanted: "1000m".into(),
                found: "1".into(),
            };
            paths.iter().map(of).collect()
        };
        let cpu = "spec.containers[0].resources.limits.cpu";
        for (paths, expected) in [
            (&[cpu][..], true),
            (&["spec.replicas", cpu], true),
            // Part of what is owned as a whole.
            (&["spec.tolerations[0].key"], true),
            // Another manager may have added an entry, or taken one away.
            (&["spec.containers"], false),
            (&["spec.containers[0]"], false),
            (&["spec.containers[0].image"], false),
            (&[cpu, "spec.paused"], false),
            (&["metadata.labels.a"], false),
            (&[], false),
        ] {
            assert_eq!(
                is_own_spelling(&differs(paths), &live(FIELD_MANAGER, "Apply")),
                expected,
                "{paths:?}"
            );
        }
        assert!(!is_own_spelling(&differs(&[cpu]), &live(FIELD_MANAGER, "Update")));
        assert!(!is_own_spelling(&differs(&[cpu]), &live("kubectl-edit", "Apply")));
    }

    /// What we applied ourselves is not an answer to who changed a field; another manager that applies, and another way of ours, are.
    #[test]
    fn writer_is_the_newest_manager_but_for_own_apply_and_status() {
        for (entries, expected) in [
            (&[(FIELD_MANAGER, "Apply", "", 9)][..], None),
            (&[("kubelet", "Update", "status", 9)], None),
            (&[("flux", "Apply", "", 1)], Some("flux")),
            (&[(FIELD_MANAGER, "Update", "", 1)], Some(FIELD_MANAGER)),
            (
                &[("kubectl-edit", "Update", "", 1), ("kubectl", "Update", "scale", 2)],
                Some("kubectl"),
            ),
            (
                &[("kubectl-edit", "Update", "", 3), ("kubectl", "Update", "scale", 2)],
                Some("kubectl-edit"),
            ),
            (&[("flux", "Apply", "", 1), (FIELD_MANAGER, "Apply", "", 9)], Some("flux")),
        ] {
            let managed: Vec<Value> = entries
                .iter()
                .map(|(manager, operation, subresource, minute)| {
                    json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsType": "FieldsV1",
                        "time": format!("2026-01-01T00:0{minute}:00Z"), "fieldsV1": {"f:spec": {"f:replicas": {}}}})
                })
                .collect();
            let live =
                json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "managedFields": managed}, "spec": {"replicas": 1}});
            let found = writer(&Object::new(live).expect("an object"), "spec.replicas").map(|(manager, _)| manager);
            assert_eq!(found.as_deref(), expected, "{entries:?}");
        }
    }

    #[test]
    fn own_record_without_fields_owns_nothing() {
        let entry = json!({"manager": FIELD_MANAGER, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {}});
        let live = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "managedFields": [entry]}, "spec": {"replicas": 1}});
        let difference = Difference {
            path: "spec.replicas".into(),
            wanted: "1000m".into(),
            found: 1.into(),
        };
        assert!(!is_own_spelling(&[difference], &Object::new(live).expect("an object")));
    }

    #[test]
    fn field_key_names_item_by_keys_or_value() {
        let item = json!({"name": "a", "port": 1});
        for (key, item, expected) in [
            (r#"k:{"name":"a"}"#, &item, true),
            (r#"k:{"name":"a","port":1}"#, &item, true),
            (r#"k:{"name":"b"}"#, &item, false),
            (r#"k:{"name":"a","port":2}"#, &item, false),
            ("k:broken", &item, false),
            (r#"v:"a""#, &json!("a"), true),
            (r#"v:"b""#, &json!("a"), false),
            ("v:broken", &Value::Null, false),
            ("f:name", &item, false),
            (".", &item, false),
        ] {
            assert_eq!(names(key, item), expected, "{key} {item}");
        }
    }
}
