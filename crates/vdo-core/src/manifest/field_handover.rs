// SPDX-License-Identifier: Apache-2.0
//! Rewrites `managedFields`: the operator gets the fields of Helm and kubectl on adoption, and another manager gets them on release.
//! `plan/managed_fields.rs` reads which manager wrote a field.

use serde_json::{Map, Value, json};

/// The names under which tools that install and leave own fields: who adopts an object from them takes over their fields too, so
/// that what is no longer wanted really goes. A controller that is alive is not among them.
const INSTALLERS: [&str; 9] = [
    "before-first-apply",
    "helm",
    "kubectl",
    "kubectl-client-side-apply",
    "kubectl-create",
    "kubectl-edit",
    "kubectl-patch",
    "kubectl-replace",
    // The original operator (vmware-tanzu), named after its binary. Whose an object is has been decided before this is looked at.
    "manager",
];

/// Whether a field manager is a tool that installs and goes.
#[must_use]
pub fn is_installer(manager: &str) -> bool {
    INSTALLERS.contains(&manager)
}

/// The record of field managers in which everything that installers own belongs to server-side apply by `heir`; `None` when
/// they own nothing. Fields of others, and of subresources, stay theirs.
#[must_use]
pub fn handed_over(managed_fields: &[Value], heir: &str) -> Option<Vec<Value>> {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let theirs = |entry: &Value| is_installer(&text(entry, "manager")) && text(entry, "subresource").is_empty();
    let ours =
        |entry: &Value| text(entry, "manager") == heir && text(entry, "operation") == "Apply" && text(entry, "subresource").is_empty();
    let newest = managed_fields.iter().rev().find(|entry| theirs(entry))?;
    let mut all = managed_fields
        .iter()
        .find(|entry| ours(entry))
        .and_then(|entry| entry.get("fieldsV1"))
        .cloned()
        .unwrap_or_else(|| json!({}));
    for entry in managed_fields.iter().filter(|entry| theirs(entry)) {
        if let Some(fields) = entry.get("fieldsV1") {
            unite(&mut all, fields);
        }
    }
    let mut rest: Vec<Value> = managed_fields
        .iter()
        .filter(|entry| !theirs(entry) && !ours(entry))
        .cloned()
        .collect();
    rest.push(json!({
        "manager": heir,
        "operation": "Apply",
        "apiVersion": text(newest, "apiVersion"),
        "fieldsType": "FieldsV1",
        "fieldsV1": all,
    }));
    Some(rest)
}

/// The record of field managers in which everything that server-side apply by `own` owns belongs to server-side apply by `heir`; `None` when
/// it owns nothing.
#[must_use]
pub fn handed_back(managed_fields: &[Value], own: &str, heir: &str) -> Option<Vec<Value>> {
    let applies = |entry: &&Value, manager: &str| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none_or(|of| of == "")
    };
    let mut entry = managed_fields.iter().find(|entry| applies(entry, own))?.clone();
    entry["manager"] = heir.into();
    if let Some(known) = managed_fields.iter().find(|entry| applies(entry, heir)) {
        unite(&mut entry["fieldsV1"], &known["fieldsV1"]);
    }
    let rest = managed_fields.iter().filter(|entry| !applies(entry, own) && !applies(entry, heir));
    Some(rest.cloned().chain([entry]).collect())
}

/// The union of two sets of fields (FieldsV1): every path of both.
fn unite(all: &mut Value, more: &Value) {
    let Value::Object(more) = more else { return };
    if !all.is_object() {
        *all = Value::Object(Map::new());
    }
    for (key, value) in more {
        match all.get_mut(key) {
            Some(known) => unite(known, value),
            None => all[key] = value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_fields_of_ours_go_to_the_next_manager() {
        let ours = entry("vdo", "Apply", "", json!({"f:data": {"f:a": {}}}));
        let status = entry("vdo", "Apply", "status", json!({"f:status": {}}));
        let theirs = entry("helm", "Apply", "", json!({"f:data": {"f:b": {}}}));
        let found = handed_back(&[ours, status.clone(), theirs], "vdo", "helm").expect("a record");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], status);
        assert_eq!((&found[1]["manager"], &found[1]["operation"]), (&json!("helm"), &json!("Apply")));
        assert_eq!(found[1]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_eq!(handed_back(&[entry("vdo", "Update", "", json!({}))], "vdo", "helm"), None);
    }

    fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
        let mut entry = json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
        if !subresource.is_empty() {
            entry["subresource"] = subresource.into();
        }
        entry
    }

    #[test]
    fn managed_fields_of_installers_are_adopted() {
        let all = [
            entry("kubectl-client-side-apply", "Update", "", json!({"f:data": {"f:a": {}, "f:b": {}}})),
            entry(
                "helm",
                "Update",
                "",
                json!({"f:data": {"f:c": {}}, "f:metadata": {"f:labels": {".": {}, "f:x": {}}}}),
            ),
            entry("kube-controller-manager", "Update", "status", json!({"f:status": {}})),
            entry("helm", "Update", "status", json!({"f:status": {"f:y": {}}})),
            entry("autoscaler", "Apply", "", json!({"f:spec": {"f:replicas": {}}})),
            entry("vdo", "Apply", "", json!({"f:data": {"f:a": {}, "f:d": {}}})),
        ];
        let after = handed_over(&all, "vdo").expect("there is something to inherit");
        let managers: Vec<&str> = after.iter().filter_map(|entry| entry["manager"].as_str()).collect();
        assert_eq!(managers, ["kube-controller-manager", "helm", "autoscaler", "vdo"]);
        let own = after.last().expect("ours");
        assert_eq!(own["operation"], "Apply");
        assert_eq!(
            own["fieldsV1"],
            json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}, "f:d": {}}, "f:metadata": {"f:labels": {".": {}, "f:x": {}}}})
        );
        assert_eq!(handed_over(&after, "vdo"), None, "once is enough");
        assert_eq!(handed_over(&all[2..3], "vdo"), None);
    }
}
