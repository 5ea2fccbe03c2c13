// SPDX-License-Identifier: Apache-2.0
//! The `customresourcedefinitions.owned` entries of the ClusterServiceVersion, with a descriptor for each field of the CRDs' schemas.

use super::text;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

const UI: &str = "urn:alm:descriptor:com.tectonic.ui";
/// The deepest field with a form of its own: `storageProvider.fileVolumes.vsanDataStoreUrl`.
const DEPTH: usize = 3;
/// Words that are not written as they are spelled.
const SPELLED: [(&str, &str); 9] = [
    ("Vc", "vCenter"),
    ("Ip", "IP"),
    ("Url", "URL"),
    ("URL", "URL"),
    ("Ca", "CA"),
    ("Csi", "CSI"),
    ("Cpi", "CPI"),
    ("Id", "ID"),
    ("Vsphere", "vSphere"),
];

/// How the console names a kind, and the objects that it shows beside one.
fn shown(kind: &str) -> Result<(&'static str, &'static [(&'static str, &'static str)])> {
    Ok(match kind {
        "VDOConfig" => (
            "vSphere drivers",
            &[
                ("DaemonSet", "apps/v1"),
                ("Deployment", "apps/v1"),
                ("Pod", "v1"),
                ("ConfigMap", "v1"),
                ("Secret", "v1"),
                ("Service", "v1"),
                ("ServiceAccount", "v1"),
                ("CSIDriver", "storage.k8s.io/v1"),
                ("StorageClass", "storage.k8s.io/v1"),
            ],
        ),
        "VsphereCloudConfig" => ("vSphere connection", &[("Secret", "v1")]),
        "CompatibilityConfig" => ("Compatibility matrix", &[("ConfigMap", "v1")]),
        other => bail!("the kind {other} has no name for the console: add it to crates/release/src/bundle/descriptors.rs"),
    })
}

/// The entry of a definition among `customresourcedefinitions.owned`.
pub(super) fn owned(definition: &Value) -> Result<Value> {
    let kind = text(definition, "/spec/names/kind");
    let versions = definition["spec"]["versions"]
        .as_array()
        .context("a CustomResourceDefinition has no versions")?;
    let stored = versions
        .iter()
        .find(|version| version["storage"] == true)
        .context("a CustomResourceDefinition has no stored version")?;
    let schema = &stored["schema"]["openAPIV3Schema"];
    let (name, resources) = shown(kind)?;
    let resources: Vec<Value> = resources
        .iter()
        .map(|(kind, version)| json!({"kind": kind, "name": "", "version": version}))
        .collect();
    Ok(json!({
        "name": definition["metadata"]["name"],
        "kind": kind,
        "version": stored["name"],
        "displayName": name,
        "description": one_line(text(schema, "/description")),
        "resources": resources,
        "specDescriptors": fields(&schema["properties"]["spec"], DEPTH),
        "statusDescriptors": fields(&schema["properties"]["status"], 1),
    }))
}

/// Every field of an object with its description, those inside it after it.
fn fields(schema: &Value, depth: usize) -> Vec<Value> {
    let mut all = Vec::new();
    collect("", schema, depth, &mut all);
    all
}

fn collect(path: &str, schema: &Value, depth: usize, all: &mut Vec<Value>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let mut one = json!({
            "path": path,
            "displayName": words(name),
            "description": one_line(text(field, "/description")),
        });
        let forms = forms(name, field);
        if !forms.is_empty() {
            one["x-descriptors"] = forms.into();
        }
        all.push(one);
        if depth > 1 {
            collect(&path, field, depth - 1, all);
        }
    }
}

/// How the console lets a field be edited or shows it.
fn forms(name: &str, field: &Value) -> Vec<String> {
    let choices = field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let choices: Vec<String> = choices.map(|choice| format!("{UI}:select:{choice}")).collect();
    match (name, text(field, "/type")) {
        ("conditions", _) => vec!["urn:alm:descriptor:io.kubernetes.conditions".to_owned()],
        ("credentials", _) => vec!["urn:alm:descriptor:io.kubernetes:Secret".to_owned()],
        (_, "boolean") => vec![format!("{UI}:booleanSwitch")],
        (_, "integer") => vec![format!("{UI}:number")],
        (_, "string") if choices.is_empty() => vec![format!("{UI}:text")],
        (_, "string") => choices,
        _ => Vec::new(),
    }
}

/// `vcIp` as `vCenter IP`.
fn words(name: &str) -> String {
    let mut split: Vec<String> = Vec::new();
    let mut was_upper = true;
    for letter in name.chars() {
        match split.last_mut() {
            Some(word) if !letter.is_uppercase() || was_upper => word.push(letter),
            _ => split.push(letter.to_uppercase().to_string()),
        }
        was_upper = letter.is_uppercase();
    }
    let spelled = |word: String| {
        let known = SPELLED.iter().find(|(from, _)| *from == word);
        known.map_or(word, |(_, to)| (*to).to_owned())
    };
    split.into_iter().map(spelled).collect::<Vec<_>>().join(" ")
}

/// Text without line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
