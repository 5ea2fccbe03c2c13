// SPDX-License-Identifier: Apache-2.0
//! Lists the fields in which a live object differs from the desired one, or that an apply changes; `patch.rs` makes merge patches.

use super::Object;
use serde_json::Value;
use std::fmt;
use vdo_api::api::APPLIED_ANNOTATION;

/// One place where a live object is not as it is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where, for example `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What is wanted there.
    pub wanted: Value,
    /// What was found there; null when nothing was.
    pub found: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: wanted {}, found {}", self.path, self.wanted, self.found)
    }
}

/// Where `found` differs from `wanted`. Fields that only `found` has belong to the server or to another manager and do not count.
///
/// Lists must have the same length, because every list in a chart is written whole. An absent field equals null, an empty
/// map, list and text, as the API server drops these; `kind` and `apiVersion` are identity and not compared.
#[must_use]
pub fn differences(wanted: &Value, found: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    if let Some(map) = wanted.as_object() {
        for (key, value) in map.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind")) {
            walk(value, found.get(key).unwrap_or(&Value::Null), FieldPath::of(key), &mut all);
        }
    }
    all
}

/// The same of two objects.
#[must_use]
pub fn object_differences(wanted: &Object, found: &Object) -> Vec<Difference> {
    differences(wanted.value(), found.value())
}

/// A place in an object. It is written out only where something differs: nearly all places of nearly all objects are in sync.
#[derive(Clone, Copy)]
struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> FieldPath<'a> {
    fn of(key: &'a str) -> Self {
        let step = Step::Key(key);
        Self { parent: None, step }
    }

    fn then(&'a self, step: Step<'a>) -> Self {
        let parent = Some(self);
        Self { parent, step }
    }

    /// Whether it is a field of this name, and not the whole object's.
    fn is(&self, field: &str) -> bool {
        self.parent.is_some() && matches!(self.step, Step::Key(key) if key == field)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.parent, self.step) {
            (None, Step::Key(key)) => f.write_str(key),
            (None, Step::Item(i)) => write!(f, "[{i}]"),
            (Some(parent), Step::Key(key)) if key.contains(['.', '/']) => write!(f, "{parent}[{key}]"),
            (Some(parent), Step::Key(key)) => write!(f, "{parent}.{key}"),
            (Some(parent), Step::Item(i)) => write!(f, "{parent}[{i}]"),
        }
    }
}

fn walk(wanted: &Value, found: &Value, place: FieldPath<'_>, all: &mut Vec<Difference>) {
    match (wanted, found) {
        (Value::Object(map), Value::Object(_) | Value::Null) => {
            for (key, value) in map {
                walk(value, found.get(key).unwrap_or(&Value::Null), place.then(Step::Key(key)), all);
            }
        }
        (Value::Array(items), Value::Array(there)) if items.len() == there.len() && same_names(items, there) => {
            for (i, (item, there)) in items.iter().zip(there).enumerate() {
                walk(item, there, place.then(Step::Item(i)), all);
            }
        }
        // Null has no opinion: server-side apply writes nothing for it.
        (Value::Null, _) => {}
        (Value::Array(items), Value::Null) if items.is_empty() => {}
        (Value::String(text), Value::Null) if text.is_empty() => {}
        // The server fills in the group of the subjects of a binding by their kind.
        (Value::String(text), _) if text.is_empty() && place.is("apiGroup") => {}
        _ if wanted == found || same_number(wanted, found) => {}
        _ => all.push(Difference {
            path: place.to_string(),
            wanted: wanted.clone(),
            found: found.clone(),
        }),
    }
}

/// What an apply would change, from the result that the API server reports: fields that get another value, and fields that
/// go. What the server counts for itself, and our own record of what was applied last, say nothing to people.
#[must_use]
pub fn changes(result: &Object, live: &Object) -> Vec<Difference> {
    const COUNTED: [&str; 5] = [
        "metadata.generation",
        "metadata.resourceVersion",
        "metadata.managedFields",
        "metadata.annotations[deprecated.daemonset.template.generation]",
        "status",
    ];
    let (result, found) = (result.value(), live.value());
    let mut all = differences(result, found);
    let going = differences(found, result).into_iter().filter(|d| d.found.is_null());
    all.extend(going.map(|d| Difference {
        path: d.path,
        wanted: Value::Null,
        found: d.wanted,
    }));
    all.retain(|d| !COUNTED.iter().any(|field| d.path.starts_with(field)));
    if live.applied().is_some() {
        all.retain(|d| !d.path.ends_with(&format!("[{APPLIED_ANNOTATION}]")));
    }
    all
}

/// The same differences, with each container of a pod by its name: `spec.template.spec.containers[csi-attacher].image`. For people; what is
/// decided by a path is decided by its place.
#[must_use]
pub fn by_container(mut fields: Vec<Difference>, object: &Object) -> Vec<Difference> {
    for field in &mut fields {
        if let Some(path) = container_path(&field.path, object.value()) {
            field.path = path;
        }
    }
    fields
}

fn container_path(path: &str, object: &Value) -> Option<String> {
    let (list, rest) = path.split_once('[')?;
    let (place, rest) = rest.split_once(']')?;
    let is_of_containers = list.ends_with(".containers") || list.ends_with(".initContainers");
    let pointer = format!("/{}/{place}/name", list.replace('.', "/"));
    let name = object.pointer(&pointer).filter(|_| is_of_containers)?.as_str()?;
    Some(format!("{list}[{name}]{rest}"))
}

/// Whether the items of both lists have the same names, or have none: an item at a place is then compared with the one that was there.
fn same_names(items: &[Value], there: &[Value]) -> bool {
    let named = |item: &Value| item.get("name").is_some_and(Value::is_string);
    let all = items.iter().chain(there).all(named);
    !all || items.iter().zip(there).all(|(item, there)| item["name"] == there["name"])
}

fn same_number(wanted: &Value, found: &Value) -> bool {
    matches!((wanted.as_f64(), found.as_f64()), (Some(a), Some(b)) if (a - b).abs() < f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_name_containers_and_keep_other_places() {
        let pod = json!({"containers": [{"name": "driver"}, {"name": "csi-attacher"}], "initContainers": [{"name": "first"}], "tolerations": [{}]});
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}, "spec": {"template": {"spec": pod}}});
        let object = Object::new(object).expect("an object");
        let at = |path: &str| Difference {
            path: format!("spec.template.spec.{path}"),
            wanted: Value::Null,
            found: Value::Null,
        };
        for (path, expected) in [
            ("containers[1].image", "containers[csi-attacher].image"),
            ("containers[0].args[1]", "containers[driver].args[1]"),
            ("initContainers[0].image", "initContainers[first].image"),
            ("containers[7].image", "containers[7].image"),
            ("tolerations[0].key", "tolerations[0].key"),
            ("containers", "containers"),
        ] {
            assert_eq!(by_container(vec![at(path)], &object), [at(expected)], "{path}");
        }
    }

    #[test]
    fn differences_only_wanted_fields_are_compared() {
        for (wanted, found, paths) in [
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 1, "b": 2}, "status": {}}), vec![]),
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}), vec!["spec.a"]),
            (json!({"spec": {"a": 1}}), json!({}), vec!["spec.a"]),
            (
                json!({"spec": {"volume": {"emptyDir": {}}, "list": [], "nothing": null, "text": ""}}),
                json!({"spec": {"volume": {}}}),
                vec![],
            ),
            (json!({"list": [{"n": 1}]}), json!({"list": [{"n": 1, "default": true}]}), vec![]),
            (json!({"list": [1, 2]}), json!({"list": [1]}), vec!["list"]),
            (
                json!({"list": [{"n": 1}, {"n": 2}]}),
                json!({"list": [{"n": 1}, {"n": 3}]}),
                vec!["list[1].n"],
            ),
            (
                json!({"metadata": {"labels": {"a.b/c": "x"}}}),
                json!({"metadata": {"labels": {}}}),
                vec!["metadata.labels[a.b/c]"],
            ),
            (json!({"n": 1}), json!({"n": 1.0}), vec![]),
            (
                json!({"subjects": [{"apiGroup": ""}]}),
                json!({"subjects": [{"apiGroup": "rbac.authorization.k8s.io"}]}),
                vec![],
            ),
            (json!({"data": {"a": ""}}), json!({"data": {"a": "x"}}), vec!["data.a"]),
            (
                json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]}),
                json!({"env": [{"name": "A", "value": "2"}, {"name": "B", "value": "1"}]}),
                vec!["env[0].value"],
            ),
            (
                json!({"env": [{"name": "A", "value": "1"}, {"name": "C", "value": "1"}]}),
                json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]}),
                vec!["env"],
            ),
            (json!({"n": "1"}), json!({"n": 1}), vec!["n"]),
            (json!({"n": null}), json!({"n": 1}), vec![]),
        ] {
            let found_paths: Vec<String> = differences(&wanted, &found).into_iter().map(|d| d.path).collect();
            assert_eq!(found_paths, paths, "{wanted} against {found}");
        }
    }
}
