// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart lint`: finds mistakes in a chart: unused switches, values without schema, wrong kinds, references to absent objects.

use super::opened_chart::Chart;
use super::render::render;
use super::schema_errors::resolved;
use super::{Context, document, suggest};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Kinds that a driver's chart may hold, and whether their objects live in a namespace.
const KINDS: [(&str, &str, bool); 40] = [
    ("", "Namespace", false),
    ("", "ServiceAccount", true),
    ("", "ConfigMap", true),
    ("", "Secret", true),
    ("", "Service", true),
    ("apps", "Deployment", true),
    ("apps", "DaemonSet", true),
    ("apps", "StatefulSet", true),
    ("rbac.authorization.k8s.io", "Role", true),
    ("rbac.authorization.k8s.io", "RoleBinding", true),
    ("rbac.authorization.k8s.io", "ClusterRole", false),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", false),
    ("storage.k8s.io", "CSIDriver", false),
    ("storage.k8s.io", "StorageClass", false),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass", false),
    ("scheduling.k8s.io", "PriorityClass", false),
    ("policy", "PodDisruptionBudget", true),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", false),
    ("apiextensions.k8s.io", "CustomResourceDefinition", false),
    ("", "Pod", true),
    ("", "LimitRange", true),
    ("", "ResourceQuota", true),
    ("", "PersistentVolumeClaim", true),
    ("apps", "ReplicaSet", true),
    ("batch", "Job", true),
    ("batch", "CronJob", true),
    ("networking.k8s.io", "NetworkPolicy", true),
    ("networking.k8s.io", "Ingress", true),
    ("networking.k8s.io", "IngressClass", false),
    ("autoscaling", "HorizontalPodAutoscaler", true),
    ("coordination.k8s.io", "Lease", true),
    ("node.k8s.io", "RuntimeClass", false),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", false),
    ("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshotClass", false),
    ("storage.k8s.io", "VolumeAttributesClass", false),
    ("apiregistration.k8s.io", "APIService", false),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", false),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", false),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", false),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", false),
];

/// Objects that a chart may name without holding them: the operator writes the configuration of a driver and the certificate of its
/// webhook, Kubernetes itself the others.
const GIVEN: [(&str, &str); 8] = [
    ("ConfigMap", "vsphere-cloud-config"),
    ("Secret", "vsphere-cloud-secret"),
    ("Secret", "vsphere-config-secret"),
    ("Secret", "vsphere-webhook-certs"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("ServiceAccount", "default"),
    ("Role", "extension-apiserver-authentication-reader"),
    ("ClusterRole", "system:auth-delegator"),
];

/// Everything that is wrong with a chart, as sentences; nothing when it may be published. The rule of whole values and the language
/// of templates were checked when it was opened.
#[must_use]
pub fn lint(chart: &Chart) -> Vec<String> {
    let mut findings = Vec::new();
    undescribed("values", &chart.values, &chart.schema, &chart.schema, &mut findings);
    switches_of(chart, &mut findings);
    match render(chart, &Value::Null, &Context::default()) {
        Ok(objects) => objects_of(&objects, &given(chart), &mut findings),
        Err(error) => {
            let whole = with_sources(&error);
            let label = format!("{}: ", chart.label());
            findings.push(whole.strip_prefix(&label).unwrap_or(&whole).to_owned());
        }
    }
    findings
}

/// Switches of the release that nothing describes, or that no template reads.
fn switches_of(chart: &Chart, findings: &mut Vec<String>) {
    /// What the engine itself reads.
    const OWN: [&str; 4] = ["version", "date", "upstream", "images"];
    let schema = chart.release_schema.as_ref().unwrap_or(&Value::Null);
    let read: BTreeSet<Vec<&str>> = chart
        .templates
        .values()
        .flat_map(|text| text.lines())
        .flat_map(suggest::paths)
        .filter(|path| path.len() > 1 && path[0] == "release")
        .map(|path| path[1..].to_vec())
        .collect();
    let mut switches = Vec::new();
    paths_of(&chart.release_data, schema, &mut Vec::new(), &mut switches);
    for path in switches.iter().filter(|path| !OWN.contains(&path[0].as_str())) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if schema.is_null() {
            findings.push(format!(
                "release.{}: no schema describes this field; describe it in release.schema.json",
                path.join(".")
            ));
        }
        if !read.iter().any(|read| read.starts_with(&path) || path.starts_with(read)) {
            findings.push(format!("release.{}: no template reads it", path.join(".")));
        }
    }
}

/// The paths of the switches in a release. What is below a map with names of its own, such as feature states, is not one.
fn paths_of(release: &Value, schema: &Value, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (key, value) in release.as_object().into_iter().flatten() {
        at.push(key.clone());
        let inner = schema.pointer("/properties").and_then(|all| all.get(key)).unwrap_or(&Value::Null);
        let named = inner.get("properties").is_some();
        if value.is_object() && named {
            paths_of(value, inner, at, found);
        } else {
            found.push(at.clone());
        }
        at.pop();
    }
}

/// Objects that others bring, as the annotation `vdo.vmware.com/given` lists them: `Secret/name ConfigMap/name`.
fn given(chart: &Chart) -> BTreeSet<(&str, &str)> {
    let listed = chart.metadata.annotations.get("vdo.vmware.com/given").into_iter();
    listed
        .flat_map(|all| all.split_whitespace())
        .filter_map(|one| one.split_once('/'))
        .collect()
}

/// Whether objects of this kind live in a namespace, where the kind is one of Kubernetes.
pub(super) fn is_namespaced(object: &Value) -> Option<bool> {
    let kind = (group(object), text(object, "/kind"));
    KINDS.iter().find(|known| (known.0, known.1) == kind).map(|known| known.2)
}

/// Objects that objects name and that are neither among them nor given: what names it, the kind and the name.
pub(super) fn dangling(objects: &[Value]) -> Vec<(String, &'static str, String)> {
    let held: BTreeSet<(&str, &str)> = objects.iter().map(|o| (text(o, "/kind"), text(o, "/metadata/name"))).collect();
    let of = |object: &Value| {
        let mut named = Vec::new();
        references(object, &mut named);
        named.retain(|(kind, name)| !GIVEN.contains(&(kind, name.as_str())) && !held.contains(&(*kind, name.as_str())));
        let here = format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"));
        named
            .into_iter()
            .map(move |(kind, name)| (here.clone(), kind, name))
            .collect::<Vec<_>>()
    };
    objects.iter().flat_map(of).collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn group(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

/// What is wrong with rendered objects.
fn objects_of(objects: &[Value], given: &BTreeSet<(&str, &str)>, findings: &mut Vec<String>) {
    let own = objects
        .iter()
        .filter(|object| text(object, "/kind") == "CustomResourceDefinition")
        .map(|definition| {
            let kind = (text(definition, "/spec/group"), text(definition, "/spec/names/kind"));
            (kind, text(definition, "/spec/scope") == "Namespaced")
        });
    let own: Vec<((&str, &str), bool)> = own.collect();
    let defined = |object: &Value| {
        own.iter()
            .find(|(kind, _)| *kind == (group(object), text(object, "/kind")))
            .map(|(_, namespaced)| *namespaced)
    };
    for object in objects {
        let (api, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let here = format!("{kind} {}", text(object, "/metadata/name"));
        let namespace = text(object, "/metadata/namespace");
        match is_namespaced(object).or_else(|| defined(object)) {
            None => findings.push(format!("{here}: {api} {kind} is not a kind that a driver's chart may contain")),
            Some(true) if namespace.is_empty() => findings.push(format!("{here}: has no namespace; write one")),
            Some(false) if !namespace.is_empty() => {
                findings.push(format!("{here}: has a namespace, but its kind has none; remove the namespace"))
            }
            Some(_) => {}
        }
        for image in document::images(std::slice::from_ref(object)) {
            let (path, digest) = image
                .split_once('@')
                .map_or((image.as_str(), None), |(path, digest)| (path, Some(digest)));
            match path.rsplit('/').next().unwrap_or(path).split_once(':') {
                Some((_, "latest")) => findings.push(format!("{here}: the image {image} has the tag latest; name a version")),
                None if digest.is_none() => findings.push(format!("{here}: the image {image} has no tag; name a version")),
                _ => {}
            }
        }
    }
    for (here, kind, name) in dangling(objects) {
        if !given.contains(&(kind, name.as_str())) {
            findings.push(format!("{here}: refers to the {kind} {name}, which the chart does not contain"));
        }
    }
}

/// The objects that an object needs to be there, by kind and name.
fn references(value: &Value, found: &mut Vec<(&'static str, String)>) {
    let Value::Object(fields) = value else {
        if let Value::Array(items) = value {
            items.iter().for_each(|item| references(item, found));
        }
        return;
    };
    let optional = |of: &Map<String, Value>| of.get("optional") == Some(&Value::Bool(true));
    for (key, field, kind) in [
        ("configMap", "name", "ConfigMap"),
        ("configMapKeyRef", "name", "ConfigMap"),
        ("configMapRef", "name", "ConfigMap"),
        ("secret", "secretName", "Secret"),
        ("secretKeyRef", "name", "Secret"),
        ("secretRef", "name", "Secret"),
    ] {
        let of = fields.get(key).and_then(Value::as_object).filter(|of| !optional(of));
        found.extend(of.and_then(|of| of.get(field)?.as_str()).map(|name| (kind, name.to_owned())));
    }
    if let Some(name) = fields.get("serviceAccountName").and_then(Value::as_str) {
        found.push(("ServiceAccount", name.to_owned()));
    }
    let role = fields.get("roleRef").into_iter();
    let subjects = fields.get("subjects").and_then(Value::as_array).into_iter().flatten();
    for of in role.chain(subjects) {
        let kind = ["Role", "ClusterRole", "ServiceAccount"]
            .into_iter()
            .find(|kind| of["kind"] == *kind);
        found.extend(kind.zip(of["name"].as_str()).map(|(kind, name)| (kind, name.to_owned())));
    }
    fields.values().for_each(|value| references(value, found));
}

/// Values whose schema is missing or empty.
fn undescribed(path: &str, value: &Value, schema: &Value, whole: &Value, findings: &mut Vec<String>) {
    let schema = resolved(schema, whole);
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        match schema.pointer("/properties").and_then(|all| all.get(key)) {
            // the keys of an open map are the user's; what they may be is described once
            None if schema.get("additionalProperties").is_some_and(Value::is_object) => {}
            None => findings.push(format!("{path}: has no schema; add it to values.schema.json")),
            Some(at) => {
                if at.get("description").or_else(|| resolved(at, whole).get("description")).is_none() {
                    findings.push(format!("{path}: has no description in values.schema.json"));
                }
                undescribed(&path, value, at, whole, findings);
            }
        }
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    error
        .source()
        .map_or(error.to_string(), |source| format!("{error}: {}", with_sources(source)))
}
