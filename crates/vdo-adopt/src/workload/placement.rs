// SPDX-License-Identifier: Apache-2.0
//! Compares the placement of pods with the chart's: additional tolerations and node labels, another affinity, missing anti-affinity.

use super::containers::fields;
use serde_json::{Map, Value};

/// Tolerations that the pods have and that others do not cover.
pub(super) fn further_tolerations(live: &Value, base: &Value) -> Vec<Value> {
    let list = |pod: &Value| pod["tolerations"].as_array().cloned().unwrap_or_default();
    let own = list(base);
    let mut further = list(live);
    further.retain(|one| !own.iter().any(|other| covers(other, one)));
    further
}

/// Whether whatever `one` tolerates is tolerated by `other`, too.
fn covers(other: &Value, one: &Value) -> bool {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let exists = text(other, "operator") == "Exists";
    let same = |key: &str| text(other, key) == text(one, key);
    let any = |key: &str| text(other, key).is_empty();
    let forever = other["tolerationSeconds"].is_null() || other["tolerationSeconds"] == one["tolerationSeconds"];
    let key = same("key") || any("key") && exists;
    let value = exists || (text(one, "operator") != "Exists" && same("value"));
    key && value && forever && (same("effect") || any("effect"))
}

/// Labels that a node needs for the pods, besides those of the chart's pods and of a control plane or an operating system.
pub(super) fn further_labels(live: &Value, base: &Value) -> Map<String, Value> {
    let own = fields(&base["nodeSelector"]);
    let mut further = fields(&live["nodeSelector"]);
    further.retain(|label, value| {
        let by_role = label.starts_with("node-role.kubernetes.io/") || label == "kubernetes.io/os";
        !by_role && own.get(label) != Some(value)
    });
    further
}

/// An affinity that is another than the chart's; none where the pods have none, or one for the operating system alone.
pub(super) fn other_affinity(live: &Value, base: &Value) -> Option<Value> {
    let (own, found) = (sorted(&base["affinity"]), sorted(&live["affinity"]));
    let is_set = found.as_object().is_some_and(|fields| !fields.is_empty());
    (is_set && found != own && !is_about_systems(&found)).then(|| live["affinity"].clone())
}

/// Whether the pods of a chart stay apart and these do not.
pub(super) fn is_not_spread(live: &Value, base: &Value) -> bool {
    base["affinity"]["podAntiAffinity"].is_object() && !live["affinity"].is_object()
}

/// Whether an affinity asks for nothing but an operating system.
fn is_about_systems(affinity: &Value) -> bool {
    let only = fields(affinity).keys().all(|key| key == "nodeAffinity");
    let terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].as_array();
    let about = |term: &Value| {
        let expressions = term["matchExpressions"].as_array();
        expressions.is_some_and(|all| all.iter().all(|one| one["key"] == "kubernetes.io/os"))
    };
    only && affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"].is_null()
        && terms.is_some_and(|terms| terms.iter().all(about))
}

/// The same with lists in one order: any of the terms of a selector is enough, and all expressions of a term hold.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        Value::Object(_) => {
            let mut all: Vec<(String, Value)> = fields(value).into_iter().map(|(key, value)| (key, sorted(&value))).collect();
            all.sort_by(|one, other| one.0.cmp(&other.0));
            all.into_iter().collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn toleration_that_the_chart_covers_is_no_setting() {
        let base =
            json!({"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}, {"key": "a", "value": "1", "effect": "NoExecute"}]});
        let cases = [
            (json!({"key": "x", "operator": "Exists", "effect": "NoSchedule"}), true),
            (json!({"key": "x", "value": "1", "effect": "NoSchedule"}), true),
            (json!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoExecute"}), true),
            (json!({"key": "a", "value": "2", "effect": "NoExecute"}), false),
            (json!({"key": "a", "operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"operator": "Exists"}), false),
        ];
        for (toleration, covered) in cases {
            let further = further_tolerations(&json!({"tolerations": [toleration.clone()]}), &base);
            assert_eq!(further.is_empty(), covered, "{toleration}");
        }
    }

    #[test]
    fn affinity_in_another_order_or_about_systems_is_no_setting() {
        let terms = |keys: &[&str]| {
            let terms: Vec<Value> = keys
                .iter()
                .map(|key| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}))
                .collect();
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        let base = terms(&["a", "b"]);
        assert_eq!(other_affinity(&terms(&["b", "a"]), &base), None);
        assert_eq!(other_affinity(&terms(&["kubernetes.io/os"]), &base), None);
        assert_eq!(other_affinity(&json!({}), &base), None);
        assert_eq!(other_affinity(&terms(&["a"]), &base), Some(terms(&["a"])["affinity"].clone()));
    }
}
