// SPDX-License-Identifier: Apache-2.0
//! The type `Object`: a Kubernetes object with accessors for metadata, pod template and digest; Secret content is masked in logs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use vdo_api::api::{APPLIED_ANNOTATION, MANAGED_BY, MANAGED_BY_LABEL, PART_OF_LABEL};
use vdo_api::types::{Digest, ObjectId, Remedy};

/// The fields of a ConfigMap or Secret that pods see.
pub const CONTENT: [&str; 2] = ["data", "binaryData"];

/// A Kubernetes object: a JSON object that has `apiVersion`, `kind` and `metadata.name`.
///
/// It is namespaced exactly when `metadata.namespace` is set; charts always write it. `Debug` and `Display` show the
/// identity only, so that the content of a Secret cannot reach a log. A clone shares the content until one of the two is changed.
#[derive(Clone, PartialEq)]
pub struct Object(Arc<Content>);

#[derive(Clone, PartialEq)]
struct Content {
    id: ObjectId,
    value: Value,
}

/// The value is not a Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an object lacks {missing}")]
pub struct ManifestError {
    missing: &'static str,
}

impl Remedy for ManifestError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Add the missing field to the object: every Kubernetes object needs apiVersion, kind and metadata.name.".into())
    }
}

impl Object {
    /// Checks and wraps a value.
    ///
    /// # Errors
    /// When `apiVersion`, `kind` or `metadata.name` is missing or not a string.
    pub fn new(value: Value) -> Result<Self, ManifestError> {
        for (pointer, missing) in [
            ("/apiVersion", "apiVersion"),
            ("/kind", "kind"),
            ("/metadata/name", "metadata.name"),
        ] {
            if value.pointer(pointer).and_then(Value::as_str).is_none_or(str::is_empty) {
                return Err(ManifestError { missing });
            }
        }
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        let id = ObjectId::new(group, text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        Ok(Self(Arc::new(Content { id, value })))
    }

    /// The JSON value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// What pods see of a ConfigMap or Secret: its fields of [`CONTENT`], each if it has a value.
    #[must_use]
    pub fn content(&self) -> [Option<&Value>; CONTENT.len()] {
        CONTENT.map(|field| self.value().get(field).filter(|value| !value.is_null()))
    }

    /// The JSON value, owned.
    #[must_use]
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0).value
    }

    /// Changes the content, without touching its identity.
    fn change(&mut self, what: impl FnOnce(&mut Value)) {
        what(&mut Arc::make_mut(&mut self.0).value);
    }

    /// A field by JSON pointer, as text; empty when absent.
    #[must_use]
    pub fn text(&self, pointer: &str) -> &str {
        self.value().pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field by JSON pointer, as a whole number; `None` when absent.
    #[must_use]
    pub fn number(&self, pointer: &str) -> Option<i64> {
        self.value().pointer(pointer).and_then(Value::as_i64)
    }

    /// `apiVersion`, for example `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    /// `kind`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.id.kind()
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.id.name
    }

    /// `metadata.namespace`; empty for objects that have none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.0.id.namespace
    }

    /// `metadata.uid`; empty for objects that have not been stored.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// `metadata.resourceVersion`; empty for objects that have not been stored.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.text("/metadata/resourceVersion")
    }

    /// Group, kind, namespace and name.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.0.id.clone()
    }

    /// The same, for one use.
    #[must_use]
    pub fn identity(&self) -> &ObjectId {
        &self.0.id
    }

    /// The apply set that it belongs to, of an object that bears the mark of this operator.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.label(PART_OF_LABEL)
            .filter(|_| self.label(MANAGED_BY_LABEL) == Some(MANAGED_BY))
    }

    /// The digest of the content that was applied last: of an object that is wanted, of its own.
    #[must_use]
    pub fn applied(&self) -> Option<&str> {
        self.annotation(APPLIED_ANNOTATION)
    }

    /// Whether its deletion was asked for.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        !self.text("/metadata/deletionTimestamp").is_empty()
    }

    /// Whether its status is reported.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.value().get("status").is_some()
    }

    /// A label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.value().get("metadata")?.get("labels")?.get(key)?.as_str()
    }

    /// An annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.value().get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: &str, text: &str) {
        self.change(|value| set(value, &["metadata", "labels"], key, text.into()));
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, text: &str) {
        self.change(|value| set(value, &["metadata", "annotations"], key, text.into()));
    }

    /// Takes an annotation away.
    pub fn remove_annotation(&mut self, key: &str) {
        self.change(|value| {
            if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
                annotations.shift_remove(key);
            }
        });
    }

    /// Sets an annotation on the pod template of a workload.
    pub fn set_pod_annotation(&mut self, key: &str, text: &str) {
        self.change(|value| set(value, &["spec", "template", "metadata", "annotations"], key, text.into()));
    }

    /// Adds a toleration to the pods of a workload.
    pub fn add_toleration(&mut self, toleration: Value) {
        self.change(|value| {
            let pod = &mut value["spec"]["template"]["spec"];
            match pod["tolerations"].as_array_mut() {
                Some(tolerations) => tolerations.push(toleration),
                None => pod["tolerations"] = [toleration].into(),
            }
        });
    }

    /// An annotation of the pod template of a workload.
    #[must_use]
    pub fn pod_annotation(&self, key: &str) -> Option<&str> {
        self.value().pointer("/spec/template/metadata/annotations")?.get(key)?.as_str()
    }

    /// The pod specification of a workload.
    #[must_use]
    pub fn pod_spec(&self) -> Option<&Value> {
        self.value().pointer("/spec/template/spec")
    }

    /// An object of the same name that says nothing else.
    #[must_use]
    pub fn nameplate(&self) -> Self {
        let mut metadata = Map::new();
        for key in ["name", "namespace"] {
            metadata.extend(self.value()["metadata"].get(key).map(|value| (key.to_owned(), value.clone())));
        }
        let value = json!({"apiVersion": self.api_version(), "kind": self.kind(), "metadata": metadata});
        Self(Arc::new(Content {
            id: self.0.id.clone(),
            value,
        }))
    }

    /// The statuses of a pod's containers, those of its init containers first.
    pub fn container_statuses(&self) -> impl Iterator<Item = &Value> {
        let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
        lists.into_iter().filter_map(|at| self.value().pointer(at)?.as_array()).flatten()
    }

    /// Whether this is a Secret: its content is never shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.kind() == "Secret" && self.api_version() == "v1"
    }

    /// Writes `stringData` of a Secret as `data`, which is what the API server keeps of it.
    pub fn encode_strings(&mut self) {
        if !self.is_secret() {
            return;
        }
        if self.value().get("stringData").is_none() {
            return;
        }
        self.change(|value| {
            let texts = value.as_object_mut().and_then(|map| map.shift_remove("stringData"));
            for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
                let text = text.as_str().unwrap_or_default();
                set(value, &["data"], key, STANDARD.encode(text).into());
            }
        });
    }

    /// A digest of the whole object, independent of the order of keys. The salt keeps the digest of a Secret from being
    /// looked up in a prepared table.
    #[must_use]
    pub fn digest(&self, salt: &str) -> Digest {
        let mut text = String::from(salt);
        canonical(self.value(), &mut text);
        Digest::of(text.as_bytes())
    }

    /// The object with every value of a Secret replaced by `******`.
    #[must_use]
    pub fn masked(&self) -> Value {
        let mut value = self.value().clone();
        if self.is_secret() {
            for field in ["data", "stringData"] {
                if let Some(Value::Object(entries)) = value.get_mut(field) {
                    entries.values_mut().for_each(|entry| *entry = "******".into());
                }
            }
        }
        value
    }
}

fn set(value: &mut Value, path: &[&str], key: &str, new: Value) {
    let mut at = value;
    for step in path {
        if !at.get(*step).is_some_and(Value::is_object) {
            at[*step] = Value::Object(Map::new());
        }
        at = &mut at[*step];
    }
    at[key] = new;
}

/// JSON with sorted keys.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            out.push('{');
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                quoted(key, out);
                out.push(':');
                canonical(&map[key], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::String(text) => quoted(text, out),
        other => out.push_str(&other.to_string()),
    }
}

/// A text as JSON. Most hold nothing that has to be escaped.
fn quoted(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::String(text.to_owned()).to_string());
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_without_kind_or_name_is_rejected() {
        for value in [
            json!(null),
            json!({}),
            json!({"apiVersion": "v1", "kind": "Pod"}),
            json!({"apiVersion": "v1", "kind": "", "metadata": {"name": "x"}}),
        ] {
            assert!(Object::new(value.clone()).is_err(), "{value} was accepted");
        }
    }

    #[test]
    fn object_answers_from_its_content_and_a_changed_clone_leaves_it() {
        let value = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a", "namespace": "n", "uid": "u",
            "labels": {MANAGED_BY_LABEL: MANAGED_BY, PART_OF_LABEL: "set"}, "annotations": {APPLIED_ANNOTATION: "d"}, "deletionTimestamp": "now"},
            "spec": {"template": {"spec": {"b": 1}}}, "status": {}});
        let object = Object::new(value.clone()).expect("an object");
        assert_eq!(object.id(), ObjectId::new("apps", "DaemonSet", "n", "a"));
        assert_eq!(
            (object.api_version(), object.uid(), object.resource_version()),
            ("apps/v1", "u", "")
        );
        assert_eq!((object.owner(), object.applied()), (Some("set"), Some("d")));
        assert!(object.is_terminating() && object.has_status() && object.pod_spec() == Some(&json!({"b": 1})));
        let mut changed = object.clone();
        changed.set_label(PART_OF_LABEL, "another");
        assert_eq!((changed.owner(), object.owner()), (Some("another"), Some("set")));
        changed.set_label(MANAGED_BY_LABEL, "another");
        assert_eq!(changed.owner(), None);
        assert_eq!(object.into_value(), value);
    }

    #[test]
    fn object_digest_ignores_key_order_only() {
        let digest = |text: &str| {
            Object::new(serde_json::from_str(text).expect("json"))
                .expect("an object")
                .digest("salt")
        };
        let one = digest(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"2"}}"#);
        assert_eq!(
            one,
            digest(r#"{"data":{"y":"2","x":"1"},"metadata":{"name":"a"},"kind":"ConfigMap","apiVersion":"v1"}"#)
        );
        assert_ne!(
            one,
            digest(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"3"}}"#)
        );
    }

    #[test]
    fn object_secret_printed_masks_data() {
        let secret = Object::new(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {"password": "aHVudGVyMg=="}}))
            .expect("an object");
        let prints = format!("{secret} {secret:?} {}", secret.masked());
        assert!(!prints.contains("aHVudGVyMg"), "{prints}");
        assert!(prints.contains("password"), "keys are not secret: {prints}");
    }
}
