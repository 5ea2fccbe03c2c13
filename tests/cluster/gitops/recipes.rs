// SPDX-License-Identifier: Apache-2.0
//! The YAML of docs/gitops.md: its documents, and the objects for our cluster inside of them.

use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// The page.
pub fn page() -> Result<String> {
    Ok(std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gitops.md"),
    )?)
}

/// Every document of every YAML block.
pub fn documents() -> Result<Vec<Value>> {
    let page = page()?;
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut all = Vec::new();
    for block in blocks {
        all.extend(vdo_api::yaml::load_all(block).with_context(|| block.to_owned())?);
    }
    Ok(all)
}

/// The one document of a kind with this name.
pub fn document(kind: &str, name: &str) -> Result<Value> {
    let mut all = documents()?;
    all.retain(|value| value["kind"] == kind && value["metadata"]["name"] == name);
    all.pop().with_context(|| format!("the page has no {kind} {name}"))
}

/// The objects that texts inside of these documents are: what a tool applies to our cluster. A template gets the vCenter of its variable.
pub fn payload(documents: &[Value]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for document in documents {
        collect(document, &mut all)?;
    }
    Ok(all)
}

fn collect(value: &Value, all: &mut Vec<Value>) -> Result<()> {
    match value {
        Value::String(text) if text.starts_with("apiVersion: ") => {
            all.extend(vdo_api::yaml::load_all(&filled(text)).with_context(|| text.clone())?);
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, all))?,
        Value::Object(fields) => fields.values().try_for_each(|field| collect(field, all))?,
        _ => {}
    }
    Ok(())
}

/// Each expression of a template in its line becomes the value that the Cluster of the page has.
fn filled(text: &str) -> String {
    let lines = text.lines().map(|line| match (line.find("{{"), line.rfind("}}")) {
        (Some(from), Some(to)) => format!("{}vcenter.example.com{}", &line[..from], &line[to + 2..]),
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}
