// SPDX-License-Identifier: Apache-2.0
//! Finds what a live Namespace, role or binding lacks of the one that a chart needs, and unites those of several charts.

use super::rules::Rules;
use super::{GROUP, VERSION};
use crate::manifest::Object;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{ObjectId, Remedy};

/// Whether the administrator brings an object of this kind, and the operator only looks at it.
#[must_use]
pub fn is_prerequisite(id: &ObjectId) -> bool {
    match id.group() {
        "" => id.kind() == "Namespace",
        GROUP => matches!(id.kind(), "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding"),
        _ => false,
    }
}

/// What a live object lacks of what a chart asks for, as a sentence; `None` when it is enough. More than that is the administrator's
/// affair.
#[must_use]
pub fn lacking(wanted: &Object, live: Option<&Object>) -> Option<String> {
    let Some(live) = live else {
        return Some(format!("{wanted} is missing"));
    };
    if live.is_terminating() {
        return Some(format!("{wanted} is being deleted"));
    }
    let part = |object: &Object, key: &str| object.value().get(key).cloned().unwrap_or_default();
    if part(wanted, "roleRef") != part(live, "roleRef") {
        let role = |object: &Object| format!("{} {}", object.text("/roleRef/kind"), object.text("/roleRef/name"));
        return Some(format!(
            "{wanted} binds {} instead of {}, and the role of a binding cannot be changed; delete this binding first: {}",
            role(live),
            role(wanted),
            wanted.identity().deletion()
        ));
    }
    let held = subjects(live.value());
    if let Some((kind, namespace, name)) = subjects(wanted.value()).difference(&held).next() {
        return Some(format!("{wanted} does not bind {kind} {namespace}/{name}"));
    }
    if wanted.kind() == "ValidatingAdmissionPolicy" {
        let same = ["validations", "variables", "matchConditions"].iter().all(|part| {
            let of = |object: &Object| object.value().pointer(&format!("/spec/{part}")).cloned();
            of(wanted) == of(live)
        });
        return (!same).then(|| format!("{wanted} does not match the charts of the matrix in use"));
    }
    let beyond = Rules::of(wanted.value()).beyond(&Rules::of(live.value())).json();
    let Some(first) = beyond.first() else {
        let is_there = |(label, value): &(&str, &str)| live.label(label) == Some(*value);
        let missing = aggregations(wanted).find(|label| !is_there(label))?;
        return Some(format!(
            "{wanted} does not have the label {}, so its rules are not added to another role",
            missing.0
        ));
    };
    let words = |key: &str| {
        let list = first.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    };
    let about = match words("nonResourceURLs") {
        paths if !paths.is_empty() => paths,
        _ => match words("apiGroups") {
            group if group.is_empty() => words("resources"),
            group => format!("{} of {group}", words("resources")),
        },
    };
    let more = match beyond.len() {
        1 => String::new(),
        2 => ", and one more rule is missing".to_owned(),
        all => format!(", and {} more rules are missing", all - 1),
    };
    Some(format!("{wanted} does not grant {} on {about}{more}", words("verbs")))
}

/// The labels by which a role is added to others, as the API server does it: `admin`, `edit` and `view` for users.
fn aggregations(role: &Object) -> impl Iterator<Item = (&str, &str)> {
    let labels = role
        .value()
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    labels.filter_map(|(label, value)| label.starts_with(AGGREGATE_TO).then_some((label.as_str(), value.as_str()?)))
}

/// How the labels of a role begin that add it to other roles.
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

pub(super) type Subject = (String, String, String);

pub(super) fn subjects(binding: &Value) -> BTreeSet<Subject> {
    let all = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
    all.map(|subject| ["kind", "namespace", "name"].map(|key| subject[key].as_str().unwrap_or_default().to_owned()))
        .map(|[kind, namespace, name]| (kind, namespace, name))
        .collect()
}

/// Two versions bind different roles by one name, so that no binding serves both.
#[derive(Debug, thiserror::Error)]
#[error("{object} binds {one} in one version and {other} in another version, so one set of objects cannot serve both versions")]
pub struct Mismatch {
    object: ObjectId,
    one: String,
    other: String,
}

impl Remedy for Mismatch {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Name the driver versions for which you need the objects.".into())
    }
}

/// What is enough for all of these objects, of which several may have one name: namespaces first, then roles, then bindings.
///
/// # Errors
/// When two bindings of one name bind different roles.
pub fn union<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Result<Vec<Value>, Mismatch> {
    #[derive(Default)]
    struct Sum {
        rules: Rules,
        subjects: BTreeSet<Subject>,
        role: Option<Value>,
        labels: BTreeMap<String, String>,
    }
    let mut sums: BTreeMap<ObjectId, Sum> = BTreeMap::new();
    for object in objects.into_iter().filter(|object| is_prerequisite(object.identity())) {
        let sum = sums.entry(object.id()).or_default();
        sum.rules.merge(&Rules::of(object.value()));
        sum.subjects.append(&mut subjects(object.value()));
        let labels = aggregations(object).map(|(label, value)| (label.to_owned(), value.to_owned()));
        sum.labels.extend(labels);
        let role = object.value().get("roleRef").cloned();
        match &sum.role {
            Some(known) if Some(known) != role.as_ref() => {
                let name = |role: &Value| {
                    format!(
                        "{} {}",
                        role["kind"].as_str().unwrap_or_default(),
                        role["name"].as_str().unwrap_or_default()
                    )
                };
                return Err(Mismatch {
                    object: object.id(),
                    one: name(known),
                    other: name(&role.unwrap_or_default()),
                });
            }
            Some(_) => {}
            None => sum.role = role,
        }
    }
    let mut all: Vec<(u8, Value)> = Vec::new();
    for (id, sum) in sums {
        let mut metadata = json!({"name": id.name});
        if !id.namespace.is_empty() {
            metadata["namespace"] = json!(id.namespace);
        }
        if !sum.labels.is_empty() {
            metadata["labels"] = json!(sum.labels);
        }
        let kind = id.kind();
        all.push(if kind == "Namespace" {
            (0, json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}))
        } else if let Some(role) = sum.role {
            let subjects = sum.subjects.into_iter().map(|(kind, namespace, name)| match kind.as_str() {
                "ServiceAccount" => json!({"kind": kind, "name": name, "namespace": namespace}),
                _ => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
            });
            let subjects: Vec<Value> = subjects.collect();
            (
                2,
                json!({"apiVersion": VERSION, "kind": kind, "metadata": metadata, "roleRef": role, "subjects": subjects}),
            )
        } else {
            (
                1,
                json!({"apiVersion": VERSION, "kind": kind, "metadata": metadata, "rules": sum.rules.json()}),
            )
        });
    }
    all.sort_by_key(|(order, _)| *order);
    Ok(all.into_iter().map(|(_, object)| object).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn object(value: Value) -> Object {
        Object::new(value).expect("an object")
    }

    fn role(rules: Value) -> Object {
        object(json!({"apiVersion": VERSION, "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules}))
    }

    pub fn binding(role: &str, accounts: &[&str]) -> Object {
        let subjects: Vec<Value> = accounts
            .iter()
            .map(|name| json!({"kind": "ServiceAccount", "name": name, "namespace": "n"}))
            .collect();
        object(
            json!({"apiVersion": VERSION, "kind": "RoleBinding", "metadata": {"name": "b", "namespace": "n"},
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role}, "subjects": subjects}),
        )
    }

    #[test]
    fn rbac_lacking_names_what_the_administrator_has_to_add() {
        let nodes = |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["nodes"], "verbs": verbs});
        let leases = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]});
        let home = |metadata: Value| object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
        for (wanted, live, reported) in [
            (role(json!([nodes(&["get"])])), None, Some("ClusterRole r is missing")),
            (role(json!([nodes(&["get"])])), Some(role(json!([nodes(&["get", "list"])]))), None),
            (
                role(json!([nodes(&["get", "list", "watch"])])),
                Some(role(json!([nodes(&["get"])]))),
                Some("ClusterRole r does not grant list, watch on nodes"),
            ),
            (
                role(json!([leases, nodes(&["get"])])),
                Some(role(json!([]))),
                Some("ClusterRole r does not grant get on nodes, and one more rule is missing"),
            ),
            (
                role(json!([leases])),
                Some(role(json!(null))),
                Some("ClusterRole r does not grant get on leases of coordination.k8s.io"),
            ),
            (
                role(json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])),
                Some(role(json!([]))),
                Some("ClusterRole r does not grant get on /metrics"),
            ),
            (binding("r", &["a"]), Some(binding("r", &["b", "a"])), None),
            (
                binding("r", &["a"]),
                Some(binding("r", &["b"])),
                Some("RoleBinding n/b does not bind ServiceAccount n/a"),
            ),
            (
                binding("r", &["a"]),
                Some(binding("s", &["a"])),
                Some(
                    "RoleBinding n/b binds Role s instead of Role r, and the role of a binding cannot be changed; delete this binding first: kubectl delete rolebinding -n n b",
                ),
            ),
            (
                home(json!({"name": "n"})),
                Some(home(json!({"name": "n", "labels": {"a": "b"}}))),
                None,
            ),
            (
                home(json!({"name": "n"})),
                Some(home(json!({"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}))),
                Some("Namespace n is being deleted"),
            ),
        ] {
            assert_eq!(lacking(&wanted, live.as_ref()).as_deref(), reported);
        }
    }

    #[test]
    fn rbac_union_of_versions_is_enough_for_each() {
        let one = [
            binding("r", &["a"]),
            role(json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}])),
        ];
        let other = [
            binding("r", &["b"]),
            role(json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])),
            object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}})),
            object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}})),
        ];
        let all: Vec<Object> = union(one.iter().chain(&other))
            .expect("one role each")
            .into_iter()
            .map(object)
            .collect();
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["Namespace n", "ClusterRole r", "RoleBinding n/b"]);
        for wanted in one.iter().chain(&other[..3]) {
            let live = all.iter().find(|object| object.identity() == wanted.identity());
            assert_eq!(lacking(wanted, live), None);
        }
        let apart = [binding("r", &["a"]), binding("s", &["a"])];
        let error = union(&apart).expect_err("two roles").to_string();
        assert!(
            error.starts_with("RoleBinding n/b binds Role r in one version and Role s in another"),
            "{error}"
        );
    }

    #[test]
    fn union_keeps_the_labels_that_add_a_role_to_others_and_lacking_names_one() {
        let labels = json!({"app": "a", "rbac.authorization.k8s.io/aggregate-to-view": "true"});
        let rules = json!([{"apiGroups": ["g"], "resources": ["r"], "verbs": ["get"]}]);
        let wanted =
            object(json!({"apiVersion": VERSION, "kind": "ClusterRole", "metadata": {"name": "r", "labels": labels}, "rules": rules}));
        let all = union([&wanted]).expect("no contradiction");
        let expected = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
        assert_eq!(all[0]["metadata"], json!({"name": "r", "labels": expected}));
        let plain = role(rules.clone());
        assert_eq!(union([&plain]).expect("no contradiction")[0]["metadata"], json!({"name": "r"}));
        assert_eq!(lacking(&wanted, Some(&object(all[0].clone()))), None);
        assert_eq!(
            lacking(&wanted, Some(&plain)).as_deref(),
            Some(
                "ClusterRole r does not have the label rbac.authorization.k8s.io/aggregate-to-view, so its rules are not added to another role"
            )
        );
        assert_eq!(lacking(&plain, Some(&wanted)), None, "more than what is asked for");
    }
}
