// SPDX-License-Identifier: Apache-2.0
//! Makes a chart value of the namespace in which most imported objects live; other namespaces stay.

use super::super::lint::is_namespaced;
use super::template::Templates;
use super::{called, some, texts};
use serde_json::Value;
use vdo_api::types::count;

/// The namespaces of some manifests.
pub(super) struct Namespace {
    /// The one that becomes a value.
    main: Option<String>,
    /// Others in which objects live.
    others: Vec<String>,
    /// Kinds that the manifests define themselves, and whether their objects live in a namespace.
    own: Vec<(String, bool)>,
}

/// A binding to this Role of Kubernetes has to be where the Role is.
const READER: &str = "extension-apiserver-authentication-reader";

impl Namespace {
    pub(super) fn of(objects: &[Value]) -> Self {
        let own = objects
            .iter()
            .filter(|object| object["kind"] == "CustomResourceDefinition")
            .filter_map(|definition| {
                let kind = definition.pointer("/spec/names/kind")?.as_str()?.to_owned();
                Some((kind, definition.pointer("/spec/scope")? == "Namespaced"))
            });
        let own: Vec<(String, bool)> = own.collect();
        let mut counted: Vec<(String, usize)> = Vec::new();
        for name in objects.iter().filter_map(|object| object.pointer("/metadata/namespace")?.as_str()) {
            match counted.iter_mut().find(|(known, _)| known == name) {
                Some((_, number)) => *number += 1,
                None => counted.push((name.to_owned(), 1)),
            }
        }
        counted.sort_by_key(|(_, number)| std::cmp::Reverse(*number)); // stable: of equals the first of the manifests
        let mut names = counted.into_iter().map(|(name, _)| name);
        let found = Self {
            main: names.next(),
            others: names.collect(),
            own,
        };
        let left_open = objects.iter().any(|object| found.is_left_open(object));
        let main = found.main.clone().or_else(|| left_open.then(|| "default".to_owned()));
        Self { main, ..found }
    }

    /// The default of the value, where there is one.
    pub(super) fn main(&self) -> Option<&str> {
        self.main.as_deref()
    }

    /// Whether an object lives in a namespace that its manifest does not name.
    fn is_left_open(&self, object: &Value) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default();
        let named = object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
            .is_some_and(|name| !name.is_empty());
        let own = || {
            self.own
                .iter()
                .find(|(known, _)| known == kind)
                .is_some_and(|(_, namespaced)| *namespaced)
        };
        !named && is_namespaced(object).unwrap_or_else(own)
    }

    /// Puts the value where the name of the namespace stands as a field.
    pub(super) fn replace(&self, object: &mut Value, templates: &mut Templates) {
        let Some(main) = &self.main else { return };
        let left_open = self.is_left_open(object);
        let stays = object.pointer("/roleRef/name") == Some(&READER.into()) && object["kind"] == "RoleBinding";
        let mut put = |at: Option<&mut Value>| {
            if let Some(at) = at.filter(|at| at.as_str() == Some(main)) {
                *at = templates.expression("values.namespace".to_owned()).into();
            }
        };
        if object["kind"] == "Namespace" {
            put(object.pointer_mut("/metadata/name"));
        }
        if !stays {
            put(object.pointer_mut("/metadata/namespace"));
        }
        for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
            put(subject.get_mut("namespace"));
        }
        for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            put(webhook.pointer_mut("/clientConfig/service/namespace"));
        }
        put(object.pointer_mut("/spec/conversion/webhook/clientConfig/service/namespace"));
        if object["kind"] == "APIService" {
            put(object.pointer_mut("/spec/service/namespace"));
        }
        if left_open {
            object["metadata"]["namespace"] = templates.expression("values.namespace".to_owned()).into();
        }
    }

    pub(super) fn notes(&self, objects: &[Value]) -> Vec<String> {
        let Some(main) = &self.main else { return Vec::new() };
        let mut notes = vec![format!("the value namespace is {main}, the namespace of most objects")];
        if !self.others.is_empty() {
            notes.push(format!("other namespaces are not changed: {}", self.others.join(", ")));
        }
        let open = objects.iter().filter(|object| self.is_left_open(object)).count();
        if open > 0 {
            notes.push(format!(
                "{} had no namespace in the manifests; the chart sets it from the value namespace",
                count(open, "object")
            ));
        }
        let fields = ["/namespace", "/metadata/name", "/image"];
        let mut places = Vec::new();
        for object in objects.iter().filter(|object| object["kind"] != "CustomResourceDefinition") {
            texts(object, &mut String::new(), &mut |path, text| {
                let is_field = fields.iter().any(|field| path.ends_with(field));
                let word = |at: usize| {
                    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
                    !text[..at].ends_with(inner) && !text[at + main.len()..].starts_with(inner)
                };
                if !is_field && text.match_indices(main.as_str()).any(|(at, _)| word(at)) {
                    places.push(format!("{} {path}", called(object)));
                }
            });
        }
        if !places.is_empty() && main != "default" {
            notes.push(format!(
                "the value namespace does not change the namespace in these texts: {}",
                some(&places)
            ));
        }
        notes
    }
}
