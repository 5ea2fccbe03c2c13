// SPDX-License-Identifier: Apache-2.0
//! Reads the driver's own manifests, which the command line of `chart compare`, `add-release` or `import` names, as Kubernetes objects.

use super::super::{CliError, Exit};
use super::file;
use serde_json::Value;
use std::path::PathBuf;
use vdo_api::yaml;
use vdo_core::chart::add_release::Manifest;
use vdo_core::chart::object_id;

/// The objects of all files. Something in a file that is not an object is refused with its place.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Manifest>, CliError> {
    let mut all = Vec::new();
    for path in files {
        let remedy = "Name the unchanged manifest files that the driver's project publishes.";
        let wrong = |problem: String| CliError::new(Exit::Refused, format!("the manifest {}: {problem}", path.display()), remedy);
        let text = file::text("the manifest", path)?;
        let documents = yaml::load_all(&text).map_err(|error| wrong(error.to_string()))?;
        let objects: Vec<Value> = documents.into_iter().flat_map(items).collect();
        for (index, document) in objects.iter().enumerate() {
            let id = object_id(document);
            id.map_err(|error| wrong(format!("document {} is not a Kubernetes object: {error}", index + 1)))?;
        }
        all.push(Manifest {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes: text.into_bytes(),
            objects,
        });
    }
    Ok(all)
}

/// The objects of a List, as kubectl writes several; any other document is one.
fn items(document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && document["metadata"].get("name").is_none();
    match document.get("items").and_then(Value::as_array).filter(|_| is_list) {
        Some(all) => all.iter().cloned().flat_map(items).collect(),
        None => vec![document],
    }
}
