// SPDX-License-Identifier: Apache-2.0
//! Decides by the rules in `spec.conflicts` whether the operator or another manager keeps a field that both write.

use crate::manifest::{Difference, Object};
use serde_json::Value;
use vdo_api::api::{ConflictPolicy, ConflictRule};
use vdo_api::types::ObjectId;

/// What is left to be written of an object, by the rules of the specification.
pub(super) struct Settlement {
    /// The object without the fields that are left to others.
    pub object: Object,
    /// The differences that count.
    pub fields: Vec<Difference>,
    /// Whether fields are taken from their managers.
    pub take: bool,
}

impl Settlement {
    /// Everything is written, and nothing is taken: there is no one to take it from.
    pub(super) fn whole(object: &Object) -> Self {
        Self {
            object: object.clone(),
            fields: Vec::new(),
            take: false,
        }
    }
}

/// Applies the rules to the differences of a live object. Without a rule, fields of an object that is ours are taken back, and
/// those of an object that is taken over are not.
pub(super) fn settle(rules: &[ConflictRule], object: &Object, found: Vec<Difference>, ours: bool) -> Settlement {
    let id = object.id();
    let policy = |path: &str| rules.iter().rev().find(|rule| covers(rule, &id, path)).map(|rule| rule.policy);
    let (left, fields): (Vec<Difference>, Vec<Difference>) = found
        .into_iter()
        .partition(|field| policy(&field.path) == Some(ConflictPolicy::Yield));
    let mut rest = object.clone();
    if !left.is_empty() {
        let mut value = object.value().clone();
        for field in &left {
            take_away(&mut value, &segments(&field.path));
        }
        rest = Object::new(value).unwrap_or(rest);
    }
    let take = if ours {
        !fields.iter().any(|field| policy(&field.path) == Some(ConflictPolicy::Fail))
    } else {
        !fields.is_empty()
            && fields
                .iter()
                .all(|field| own_mark(&field.path) || policy(&field.path) == Some(ConflictPolicy::Own))
    };
    Settlement {
        object: rest,
        fields,
        take,
    }
}

/// Labels and annotations by which an object is marked as ours; no one else uses them.
fn own_mark(path: &str) -> bool {
    ["vdo.vmware.com/", "applyset.kubernetes.io/", "app.kubernetes.io/"]
        .iter()
        .any(|mark| path.contains(mark))
}

/// Whether a rule speaks of this field.
fn covers(rule: &ConflictRule, id: &ObjectId, path: &str) -> bool {
    let named = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
    let (of_rule, of_field) = (segments(&rule.path), segments(path));
    named(&rule.kind, id.kind())
        && named(&rule.name, &id.name)
        && of_rule.len() <= of_field.len()
        && of_rule.iter().zip(&of_field).all(|(rule, field)| *rule == "*" || rule == field)
}

/// The steps of a path such as `spec.containers[0].image` or `metadata.labels[a.b/c]`.
fn segments(path: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for (i, part) in path.split('[').enumerate() {
        let plain = match (i, part.split_once(']')) {
            (0, _) | (_, None) => part,
            (_, Some((key, rest))) => {
                all.push(key);
                rest
            }
        };
        all.extend(plain.split('.').filter(|step| !step.is_empty()));
    }
    all
}

fn take_away(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    match value {
        Value::Object(map) if rest.is_empty() => drop(map.shift_remove(*first)),
        Value::Object(map) => {
            if let Some(inner) = map.get_mut(*first) {
                take_away(inner, rest);
            }
        }
        Value::Array(items) => {
            if let Some(inner) = first.parse::<usize>().ok().and_then(|i| items.get_mut(i)) {
                take_away(inner, rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(kind: Option<&str>, path: &str, policy: ConflictPolicy) -> ConflictRule {
        ConflictRule {
            kind: kind.map(Into::into),
            name: None,
            path: path.into(),
            policy,
        }
    }

    #[test]
    fn conflict_path_is_split_into_segments() {
        assert_eq!(segments("spec.containers[0].image"), ["spec", "containers", "0", "image"]);
        assert_eq!(segments("metadata.labels[a.b/c]"), ["metadata", "labels", "a.b/c"]);
        assert_eq!(segments("a[0][1]"), ["a", "0", "1"]);
    }

    #[test]
    fn conflict_rules_match_by_path_and_last_wins() {
        let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 1, "containers": [{"image": "a", "tag": "t"}]}});
        let object = Object::new(value).expect("an object");
        let found = |paths: &[&str]| -> Vec<Difference> {
            let of = |path: &&str| Difference {
                path: (*path).to_owned(),
                wanted: Value::Null,
                found: Value::Null,
            };
            paths.iter().map(of).collect()
        };
        use ConflictPolicy::{Fail, Own, Yield};
        let (replicas, image) = ("spec.replicas", "spec.containers[0].image");
        let marks = [
            "metadata.labels[vdo.vmware.com/driver]",
            "metadata.labels[applyset.kubernetes.io/part-of]",
            "metadata.labels[app.kubernetes.io/managed-by]",
        ];
        for (rules, ours, paths, left, take) in [
            (vec![], true, vec![replicas], vec![replicas], true),
            (vec![], false, vec![replicas], vec![replicas], false),
            (vec![rule(None, replicas, Yield)], true, vec![replicas, image], vec![image], true),
            (
                vec![rule(Some("DaemonSet"), replicas, Yield)],
                true,
                vec![replicas],
                vec![replicas],
                true,
            ),
            (
                vec![rule(None, "spec.containers[*].image", Fail)],
                true,
                vec![replicas, image],
                vec![replicas, image],
                false,
            ),
            (
                vec![rule(None, "spec", Fail), rule(None, image, Own)],
                true,
                vec![image],
                vec![image],
                true,
            ),
            (vec![rule(None, "spec.rep", Fail)], true, vec![replicas], vec![replicas], true),
            (vec![rule(None, "spec", Own)], false, vec![replicas], vec![replicas], true),
            // the marks of our own are taken over with an object
            (
                vec![],
                false,
                vec![marks[0], marks[1], marks[2]],
                vec![marks[0], marks[1], marks[2]],
                true,
            ),
            (vec![], false, vec![marks[0], replicas], vec![marks[0], replicas], false),
            (
                vec![rule(None, image, Own)],
                false,
                vec![replicas, image],
                vec![replicas, image],
                false,
            ),
        ] {
            let settled = settle(&rules, &object, found(&paths), ours);
            let fields: Vec<&str> = settled.fields.iter().map(|field| field.path.as_str()).collect();
            assert_eq!((fields, settled.take), (left.clone(), take), "{rules:?} {paths:?}");
            assert_eq!(
                settled.object.value().pointer("/spec/replicas").is_some(),
                !paths.contains(&replicas) || left.contains(&replicas)
            );
        }
        let yielded = settle(&[rule(None, image, Yield)], &object, found(&[image]), true);
        assert_eq!(yielded.object.value()["spec"]["containers"], json!([{"tag": "t"}]));
    }
}
