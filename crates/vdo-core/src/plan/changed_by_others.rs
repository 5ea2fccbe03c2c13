// SPDX-License-Identifier: Apache-2.0
//! The drift of an object as data: each field that another manager changed, with the manager, the time and both values.

use super::managed_fields::writer;
use crate::manifest::{Difference, Object};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::fmt;
use vdo_api::types::ObjectId;

/// One field that another manager changed, or an object that another manager deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The object.
    pub id: ObjectId,
    /// The field, for example `spec.replicas`; empty when the object was deleted.
    pub path: String,
    /// What is wanted there, shortened; masked in a Secret.
    pub wanted: String,
    /// What was found there.
    pub found: String,
    /// The field manager that wrote it, as the object says; empty when it does not say.
    pub manager: String,
    /// When, as the object says.
    pub at: Option<Timestamp>,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(f, "{} was deleted and is recreated", self.id);
        }
        write!(f, "{}: {} is {} instead of {}", self.id, self.path, self.found, self.wanted)?;
        match (self.manager.as_str(), self.at) {
            ("", _) => f.write_str(" (the manager is not known)"),
            (manager, Some(at)) => write!(f, ", changed by {manager} at {at}"),
            (manager, None) => write!(f, ", changed by {manager}"),
        }
    }
}

impl Drift {
    /// An object that another manager deleted. Who it was, only the audit log of the API server knows.
    #[must_use]
    pub fn deleted(id: ObjectId) -> Self {
        Self {
            id,
            path: String::new(),
            wanted: String::new(),
            found: String::new(),
            manager: String::new(),
            at: None,
        }
    }
}

/// How much of a value is shown.
const SHOWN: usize = 80;

/// The drift that these differences are, where `live` is the object with its record of field managers.
#[must_use]
pub fn attribute(id: &ObjectId, differences: &[Difference], live: &Object) -> Vec<Drift> {
    differences
        .iter()
        .map(|difference| {
            let (manager, at) = writer(live, &difference.path).unwrap_or_default();
            let show = |value: &Value| shown(value, live.is_secret() && !difference.path.starts_with("metadata"));
            Drift {
                id: id.clone(),
                path: difference.path.clone(),
                wanted: show(&difference.wanted),
                found: show(&difference.found),
                manager,
                at,
            }
        })
        .collect()
}

fn shown(value: &Value, secret: bool) -> String {
    if value.is_null() {
        return "absent".into();
    }
    if secret {
        return "******".into();
    }
    let text = value.to_string();
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::differences;
    use serde_json::json;

    fn time(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).expect("a time")
    }

    fn entry(manager: &str, minute: i64, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time(minute).to_string(), "fieldsV1": fields})
    }

    #[test]
    fn drift_changed_field_names_its_manager_and_time() {
        let container = |image: &str| json!({"name": "a", "image": image});
        let wanted = json!({"kind": "Deployment", "spec": {"replicas": 1, "containers": [container("wanted")]}, "data": {"a.b/c": "x", "gone": "y"}});
        let mut live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 3, "containers": [container("found")]}, "data": {"a.b/c": "z"}});
        live["metadata"]["managedFields"] = json!([
            {"manager": "vdo", "operation": "Apply", "time": time(50).to_string(), "fieldsV1": {"f:spec": {"f:replicas": {}}, "f:data": {"f:a.b/c": {}}}},
            // As kubectl scale writes it.
            {"manager": "kubectl", "operation": "Update", "subresource": "scale", "time": time(2).to_string(), "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            entry("kubectl-edit", 3, &json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}, "k:{\"name\":\"b\"}": {}}}})),
            entry("older", 1, &json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}}})),
            entry("k9s", 9, &json!({"f:data": {"f:a.b/c": {}}})),
            {"manager": "kubelet", "operation": "Update", "subresource": "status", "time": time(99).to_string(), "fieldsV1": {"f:status": {}}},
        ]);
        let live = Object::new(live).expect("an object");
        let found = differences(&wanted, live.value());
        let said: Vec<String> = attribute(&live.id(), &found, &live)
            .iter()
            .map(|d| {
                format!(
                    "{} {}->{} {} {:?}",
                    d.path,
                    d.wanted,
                    d.found,
                    d.manager,
                    d.at.map(|at| at.as_second() / 60)
                )
            })
            .collect();
        assert_eq!(
            said,
            [
                "spec.replicas 1->3 kubectl Some(2)",
                "spec.containers[0].image \"wanted\"->\"found\" kubectl-edit Some(3)",
                "data[a.b/c] \"x\"->\"z\" k9s Some(9)",
                // Removed: no one owns it, so it was the last one that wrote next to it.
                "data.gone \"y\"->absent k9s Some(9)",
            ]
        );
        assert!(
            attribute(&live.id(), &found, &live)[0]
                .to_string()
                .ends_with("spec.replicas is 3 instead of 1, changed by kubectl at 1970-01-01T00:02:00Z")
        );
    }

    #[test]
    fn drift_without_managed_fields_names_no_manager() {
        let found = differences(&json!({"spec": {"replicas": 1}}), &json!({"spec": {"replicas": 3}}));
        // An object without a record names no one.
        let bare = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})).expect("an object");
        assert_eq!(attribute(&bare.id(), &found, &bare)[0].manager, "");
    }

    #[test]
    fn drift_in_secret_is_masked() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "found"}}, "data": {"password": "aHVudGVyMg=="}});
        let wanted = json!({"metadata": {"labels": {"a": "wanted"}}, "data": {"password": "b3RoZXI="}});
        let secret = Object::new(secret).expect("an object");
        let found = attribute(&secret.id(), &differences(&wanted, secret.value()), &secret);
        assert_eq!((found[0].found.as_str(), found[1].found.as_str()), ("\"found\"", "******"));
        assert!(!format!("{found:?}").contains("aHVudGVyMg") && !format!("{found:?}").contains("b3RoZXI"));
    }

    #[test]
    fn drift_long_value_is_truncated() {
        assert_eq!(shown(&"x".repeat(200).into(), false).chars().count(), SHOWN);
    }
}
