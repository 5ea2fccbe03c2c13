// SPDX-License-Identifier: Apache-2.0
//! Merges the drivers' rights into roles and bindings that other workloads share by name, and takes them out on removal.
//! No other account loses a right.

use super::missing_rules::subjects;
use super::rules::Rules;
use crate::manifest::Object;
use serde_json::{Value, json};
use vdo_api::api::ADDED_RULES_ANNOTATION;
use vdo_api::types::from_json;

/// A role or a binding for a driver with what others have in it: lists of rules and of subjects are applied as a whole, and the others would lose
/// their rights. Those of the operator itself are for it alone.
///
/// The rules of a role are ours, and are replaced, where `manager` alone wrote them, by the field managers of the live object. A live object
/// without field managers keeps its rules.
#[must_use]
pub fn beside_others(wanted: Object, live: Option<&Object>, manager: &str) -> Object {
    let Some(live) = live.filter(|_| !wanted.name().starts_with("vdo-")) else {
        return wanted;
    };
    let changed = match wanted.kind() {
        "ClusterRoleBinding" | "RoleBinding" => with_subjects(&wanted, live),
        "ClusterRole" | "Role" => with_rules(&wanted, live, manager),
        _ => None,
    };
    changed.and_then(|value| Object::new(value).ok()).unwrap_or(wanted)
}

fn with_subjects(wanted: &Object, live: &Object) -> Option<Value> {
    if live.value()["roleRef"] != wanted.value()["roleRef"] {
        return None;
    }
    let own = subjects(wanted.value());
    let others = live.value()["subjects"].as_array().into_iter().flatten();
    let others = others.filter(|subject| subjects(&json!({"subjects": [subject]})).is_disjoint(&own));
    let mut value = wanted.value().clone();
    value["subjects"].as_array_mut()?.extend(others.cloned());
    Some(value)
}

/// The rules of others, and what they lack. What is added is recorded on the role, so that it can be taken out again.
fn with_rules(wanted: &Object, live: &Object, manager: &str) -> Option<Value> {
    let of_others = match live.annotation(ADDED_RULES_ANNOTATION) {
        Some(added) => without(live, added),
        None if is_written_by(live, manager) => return None,
        None => rules(live).clone(),
    };
    let mut value = wanted.value().clone();
    let added = Rules::of(&value).beyond(&Rules::of(&json!({"rules": of_others}))).json();
    if !added.is_empty() {
        value["metadata"]["annotations"][ADDED_RULES_ANNOTATION] = json!(json!(added).to_string());
    }
    value["rules"] = json!([of_others, added].concat());
    Some(value)
}

/// Whether this field manager alone wrote the rules of a role.
fn is_written_by(role: &Object, manager: &str) -> bool {
    let managers = role.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut of_rules = managers
        .into_iter()
        .flatten()
        .filter(|entry| entry["fieldsV1"].get("f:rules").is_some())
        .peekable();
    of_rules.peek().is_some() && of_rules.all(|entry| entry["manager"] == manager)
}

/// The rules of a role without those that were added to it.
fn without(role: &Object, added: &str) -> Vec<Value> {
    let added: Vec<Value> = from_json(added).unwrap_or_default();
    let all = rules(role).iter();
    all.filter(|rule| !added.contains(rule)).cloned().collect()
}

fn rules(role: &Object) -> &Vec<Value> {
    const NONE: &Vec<Value> = &Vec::new();
    role.value()["rules"].as_array().unwrap_or(NONE)
}

/// A role in the cluster without what was added for our drivers, as a merge patch; `None` where nothing was added.
#[must_use]
pub fn role_handed_back(live: &Object) -> Option<Value> {
    let added = live.annotation(ADDED_RULES_ANNOTATION)?;
    Some(json!({"metadata": {"annotations": {ADDED_RULES_ANNOTATION: null}}, "rules": without(live, added)}))
}

/// A binding in the cluster without those of our service accounts that do not exist any more, as a merge patch; `None` where there is none of
/// them.
#[must_use]
pub fn binding_handed_back(live: &Object, ours: &Object, exists: impl Fn(&str, &str) -> bool) -> Option<Value> {
    let own = subjects(ours.value());
    let is_left = |subject: &Value| {
        let left = subjects(&json!({"subjects": [subject]}));
        left.iter()
            .any(|(kind, namespace, name)| kind == "ServiceAccount" && own.is_superset(&left) && !exists(namespace, name))
    };
    let all = live.value()["subjects"].as_array()?;
    let kept: Vec<&Value> = all.iter().filter(|subject| !is_left(subject)).collect();
    (kept.len() < all.len()).then(|| json!({"subjects": kept}))
}

/// Whether a binding gives rights to an account that one of these bindings is for.
#[must_use]
pub fn shares_a_subject(binding: &Object, ours: &[Object]) -> bool {
    let bound = subjects(binding.value());
    ours.iter().any(|own| !bound.is_disjoint(&subjects(own.value())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rbac::missing_rules::tests::{binding, object};
    use crate::rbac::{VERSION, lacking};

    fn rule(resource: &str, verbs: &[&str]) -> Value {
        json!({"apiGroups": [""], "resources": [resource], "verbs": verbs})
    }

    /// A role whose rules these field managers wrote.
    fn role(name: &str, managers: &[&str], rules: &[Value]) -> Object {
        let entry = |manager: &&str| json!({"manager": manager, "operation": "Apply", "fieldsV1": {"f:rules": {}}});
        let managers: Vec<Value> = managers.iter().map(entry).collect();
        object(json!({"apiVersion": VERSION, "kind": "ClusterRole", "metadata": {"name": name, "managedFields": managers}, "rules": rules}))
    }

    #[test]
    fn role_keeps_the_rules_that_others_wrote_and_gets_what_they_lack() {
        let (read, change, pods) = (rule("nodes", &["get"]), rule("nodes", &["get", "patch"]), rule("pods", &["list"]));
        let patch = rule("nodes", &["patch"]);
        let wanted = || object(json!({"apiVersion": VERSION, "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [change]}));
        for (what, live, rules, added) in [
            (
                "rules of ours alone",
                role("r", &["vdoctl"], std::slice::from_ref(&pods)),
                vec![change.clone()],
                None,
            ),
            (
                "rules that suffice",
                role("r", &["helm"], &[pods.clone(), change.clone()]),
                vec![pods.clone(), change.clone()],
                None,
            ),
            (
                "rules that others applied too",
                role("r", &["vdoctl", "helm"], std::slice::from_ref(&pods)),
                vec![pods.clone(), change.clone()],
                Some(&change),
            ),
            (
                "rules that lack a verb",
                role("r", &["helm"], &[pods.clone(), read.clone()]),
                vec![pods.clone(), read.clone(), patch.clone()],
                Some(&patch),
            ),
            (
                "no manager known",
                role("r", &[], std::slice::from_ref(&pods)),
                vec![pods.clone(), change.clone()],
                Some(&change),
            ),
        ] {
            let written = beside_others(wanted(), Some(&live), "vdoctl");
            assert_eq!(written.value()["rules"], json!(rules), "{what}");
            let recorded = added.map(|rule| json!([rule]).to_string());
            assert_eq!(written.annotation(ADDED_RULES_ANNOTATION), recorded.as_deref(), "{what}");
            assert_eq!(lacking(&wanted(), Some(&written)), None, "{what}");
            // The second time nothing changes, and what is handed back are the rules that were there.
            if let Some(change) = role_handed_back(&written) {
                assert_eq!(beside_others(wanted(), Some(&written), "vdoctl"), written, "{what}");
                assert_eq!(change["rules"], live.value()["rules"], "{what}");
            }
        }
        let own = object(json!({"apiVersion": VERSION, "kind": "ClusterRole", "metadata": {"name": "vdo-operator"}, "rules": [change]}));
        assert_eq!(
            beside_others(own.clone(), Some(&role("vdo-operator", &["helm"], &[pods])), "vdoctl"),
            own
        );
    }

    /// A newer version asks for less than was added once: what others wrote stays, and the rest goes.
    #[test]
    fn rules_that_were_added_once_are_replaced() {
        let (pods, nodes, leases) = (rule("pods", &["list"]), rule("nodes", &["get"]), rule("leases", &["get"]));
        let wanted =
            |rule: &Value| object(json!({"apiVersion": VERSION, "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [rule]}));
        let first = beside_others(wanted(&nodes), Some(&role("r", &["helm"], std::slice::from_ref(&pods))), "vdoctl");
        let second = beside_others(wanted(&leases), Some(&first), "vdoctl");
        assert_eq!(second.value()["rules"], json!([pods, leases]));
    }

    /// Two installations may share a binding by its name, and each has an account in it.
    #[test]
    fn binding_keeps_accounts_of_others() {
        let account = |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "namespace": namespace, "name": name});
        let binding = |name: &str, role: &str, subjects: &[Value]| {
            Object::new(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name, "namespace": "kube-system"},
                "roleRef": {"kind": "Role", "name": role}, "subjects": subjects}))
            .expect("an object")
        };
        let (ours, theirs) = (account("kube-system", "ours"), account("kube-system", "theirs"));
        let both = [ours.clone(), theirs.clone()];
        for (name, role, live, expected) in [
            ("reader", "r", vec![theirs.clone()], both.to_vec()),
            ("reader", "r", both.to_vec(), both.to_vec()),
            ("reader", "other", vec![theirs.clone()], vec![ours.clone()]),
            ("vdo-operator", "r", vec![theirs.clone()], vec![ours.clone()]),
        ] {
            let found = beside_others(
                binding(name, "r", std::slice::from_ref(&ours)),
                Some(&binding(name, role, &live)),
                "vdoctl",
            );
            assert_eq!(found.value()["subjects"], json!(expected), "{name} {role}");
        }
        assert_eq!(
            beside_others(binding("reader", "r", std::slice::from_ref(&ours)), None, "vdoctl").value()["subjects"],
            json!([ours])
        );
    }

    #[test]
    fn binding_is_handed_back_without_accounts_that_are_gone() {
        let user = json!({"kind": "User", "name": "ours"});
        let bound = |accounts: &[&str]| {
            let mut value = binding("r", accounts).value().clone();
            value["subjects"].as_array_mut().expect("subjects").push(user.clone());
            object(value)
        };
        let ours = bound(&["ours", "same"]);
        let names = |change: &Value| -> Vec<String> {
            let all = change["subjects"].as_array().expect("subjects");
            all.iter()
                .map(|subject| subject["name"].as_str().expect("a name").to_owned())
                .collect()
        };
        for (live, existing, kept) in [
            (&["theirs", "ours"][..], &["theirs"][..], Some(&["theirs", "ours"][..])),
            (&["theirs", "ours", "same"], &["theirs", "same"], Some(&["theirs", "same", "ours"])),
            (&["theirs", "ours"], &["theirs", "ours"], None),
            // An account of others that does not exist yet is theirs.
            (&["theirs"], &[], None),
        ] {
            let exists = |namespace: &str, name: &str| namespace == "n" && existing.contains(&name);
            let change = binding_handed_back(&bound(live), &ours, exists);
            assert_eq!(
                change.as_ref().map(names),
                kept.map(|kept| kept.iter().map(|name| (*name).to_owned()).collect()),
                "{live:?}"
            );
        }
    }
}
