// SPDX-License-Identifier: Apache-2.0
//! A page for each kind with every field: type, default and meaning, as the definitions have them.

use super::docs::{Failure, cell};
use kube::{CustomResourceExt, Resource};
use serde_json::Value;
use std::fmt::Write as _;
use vdo_api::api::{CompatibilityConfig, VDOConfig, VsphereCloudConfig};

/// A configuration that uses many fields of a VDOConfig.
const VDOCONFIG: &str = "\
apiVersion: vdo.vmware.com/v1alpha1
kind: VDOConfig
metadata: {name: vdo, namespace: vmware-system-vdo}
spec:
  updatePolicy: Compatible          # upgrade only versions that no longer fit
  approval: Manual                  # every plan waits for vdoctl approve
  images:
    registry: registry.example.com/vsphere
    pullSecrets: [registry-login]
  cloudProvider:
    vsphereCloudConfigs: [vc1]
    values: {logLevel: 4}
  storageProvider:
    version: 3.7.3                  # the operator never changes a pinned version
    vsphereCloudConfigs: [vc1]
    snapshots: {maxPerVolume: 5}
    storageClasses:
      - {name: vsphere, default: true, storagePolicy: gold}
";

const CONNECTION: &str = "\
apiVersion: vdo.vmware.com/v1alpha1
kind: VsphereCloudConfig
metadata: {name: vc1, namespace: vmware-system-vdo}
spec:
  vcIp: vcenter.example.com
  credentials: vc1-credentials      # a Secret with username and password
  datacenters: [dc-1]
  caBundle: {configMap: vcenter-ca}
";

const COMPATIBILITY: &str = "\
apiVersion: vdo.vmware.com/v1alpha1
kind: CompatibilityConfig
metadata: {name: matrix, namespace: vmware-system-vdo}
spec: {matrixURL: https://matrix.example.com/index.yaml}
";

/// The path of every page, with its content.
pub(crate) fn files() -> Result<Vec<(String, String)>, Failure> {
    Ok(vec![
        file::<VDOConfig>(VDOCONFIG)?,
        file::<VsphereCloudConfig>(CONNECTION)?,
        file::<CompatibilityConfig>(COMPATIBILITY)?,
    ])
}

fn file<K: CustomResourceExt + Resource<DynamicType = ()>>(example: &str) -> Result<(String, String), Failure> {
    let definition = serde_json::to_value(K::crd())?;
    let kind = K::kind(&());
    let version = &definition["spec"]["versions"][0];
    let whole = &version["schema"]["openAPIV3Schema"];
    let mut text = format!(
        "# {kind}\n\n\
         Generated from crates/vdo-api/src/api by `make generate`. Do not edit.\n\n\
         {} The API version is `{}/{}`, and the kind is namespaced. The API server removes fields that are not listed here. \
         `kubectl explain {}.spec` shows the same descriptions.\n",
        one_line(whole["description"].as_str().unwrap_or_default()),
        K::group(&()),
        K::version(&()),
        K::crd().spec.names.singular.unwrap_or_default(),
    );
    let short: Vec<String> = strings(&definition["spec"]["names"]["shortNames"]);
    if !short.is_empty() {
        write!(text, "\nShort names: {}.\n", short.join(", "))?;
    }
    write!(text, "\n```yaml\n{example}```\n")?;
    for part in ["spec", "status"] {
        let schema = &whole["properties"][part];
        if schema.is_null() {
            continue;
        }
        let mut rows = String::new();
        fields("", schema, &mut rows)?;
        write!(text, "\n## {part}\n\n")?;
        // What holds for several fields together.
        for message in rules(whole).filter(|_| part == "spec").chain(rules(schema)) {
            write!(text, "Rule: {message}.\n\n")?;
        }
        if part == "status" {
            text.push_str("The operator writes the status.\n\n");
        }
        write!(text, "| field | type | default | meaning |\n|---|---|---|---|\n{rows}")?;
    }
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    text.push_str("\n## Columns of kubectl get\n\n| column | from | shown |\n|---|---|---|\n");
    for column in columns {
        let shown = if column["priority"].as_i64().unwrap_or(0) > 0 {
            "with `-o wide`"
        } else {
            "always"
        };
        let word = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
        writeln!(text, "| {} | `{}` | {shown} |", word("name"), word("jsonPath"))?;
    }
    Ok((format!("docs/reference/{}.md", kind.to_lowercase()), text))
}

/// The rows of all fields below an object, each with its path from there.
fn fields(path: &str, schema: &Value, rows: &mut String) -> Result<(), Failure> {
    let required = strings(&schema["required"]);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let default = match field.get("default").filter(|default| !empty(default)) {
            Some(default) => format!("`{}`", default.as_str().map_or_else(|| default.to_string(), str::to_owned)),
            None if required.contains(name) => "required".to_owned(),
            None => String::new(),
        };
        writeln!(rows, "| `{path}` | {} | {default} | {} |", kind(field), meaning(field))?;
        fields(&path, field, rows)?;
        fields(&format!("{path}[]"), &field["items"], rows)?;
    }
    Ok(())
}

/// A default that says that nothing is given.
fn empty(default: &Value) -> bool {
    default.as_array().is_some_and(Vec::is_empty) || default.as_object().is_some_and(serde_json::Map::is_empty)
}

fn kind(field: &Value) -> String {
    if field["enum"].is_array() {
        let words: Vec<String> = strings(&field["enum"]).iter().map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    match field["type"].as_str().unwrap_or_default() {
        "array" => format!("list of {}", kind(&field["items"])),
        "object" if field["additionalProperties"].is_object() => format!("map of {}", kind(&field["additionalProperties"])),
        "integer" => match (field["minimum"].as_f64(), field["maximum"].as_f64()) {
            (Some(least), Some(most)) => format!("integer, {least} to {most}"),
            _ => "integer".to_owned(),
        },
        "string" if field["format"] == "date-time" => "time".to_owned(),
        other => other.to_owned(),
    }
}

/// What a field is for, and what the API server refuses.
fn meaning(field: &Value) -> String {
    let mut text = one_line(field["description"].as_str().unwrap_or_default());
    for message in rules(field) {
        text.push_str(&format!(" Rule: {message}."));
    }
    cell(text.trim())
}

/// What the API server says when a rule is broken.
fn rules(field: &Value) -> impl Iterator<Item = &str> {
    let all = field["x-kubernetes-validations"].as_array().into_iter().flatten();
    all.filter_map(|rule| rule["message"].as_str())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn strings(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}
