// SPDX-License-Identifier: Apache-2.0
//! A digest of what every release of every chart renders with default values and the webhook, so that no change of a template goes unseen.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use vdo_api::types::Digest;
use vdo_core::chart::{self, Context};

type Failure = Box<dyn std::error::Error>;

/// `tests/fixtures/render-digests.yaml` as it should be: driver, version, object, digest.
pub(crate) fn digests(root: &Path) -> Result<String, Failure> {
    let mut all: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>> = BTreeMap::new();
    for entry in fs::read_dir(root.join("charts"))? {
        let folder = entry?.path();
        if !folder.is_dir() {
            continue;
        }
        let source = super::matrix::source(&folder)?;
        let driver = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for version in source.versions() {
            let chart = chart::open(&chart::package(&source, &version)?)?;
            let mut objects = BTreeMap::new();
            for object in chart::render(&chart, &chart::everything(&chart), &Context::default())? {
                let id = chart::object_id(&object)?.to_string();
                let canonical = serde_json::to_vec(&sorted(object))?;
                objects.insert(id, Digest::of(&canonical).short());
            }
            all.entry(driver.clone()).or_default().insert(version.to_string(), objects);
        }
    }
    let header =
        "# Digests of the rendered objects with default values and the webhook; written by `cargo run --example generate -- matrix`.\n";
    Ok(header.to_owned() + &vdo_api::yaml::dump(&all)?)
}

/// The same value with every map in the order of its keys.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let ordered: BTreeMap<String, Value> = fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            ordered.into_iter().collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect::<Vec<_>>().into(),
        scalar => scalar,
    }
}
