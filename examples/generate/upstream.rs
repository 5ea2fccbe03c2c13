//! Digests of the drivers' own manifests, object by object, as the release files have them: what a chart renders is held against them
//! where the manifests themselves are not available.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use vdo::types::{Digest, ObjectId};

/// The folder of a driver's manifests below `VDO_UPSTREAM_DIR`, by the name of its chart.
pub const FOLDERS: [(&str, &str); 2] = [("vsphere-cpi", "cloud-provider-vsphere"), ("vsphere-csi", "vsphere-csi-driver")];

/// Where the manifests are, when this machine has them.
#[allow(clippy::disallowed_methods, reason = "a tool for people, told by the environment")]
pub fn manifests() -> Option<PathBuf> {
    std::env::var_os("VDO_UPSTREAM_DIR").map(PathBuf::from)
}

/// The digest of an object, whatever the order of its keys: SHA-256 of its JSON with sorted keys.
pub fn digest(object: &Value) -> String {
    Digest::of(sorted(object).to_string().as_bytes()).hex()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> = fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The name of an object as digests are listed by it.
pub fn name(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    ObjectId::new(group, text("/kind"), text("/metadata/namespace"), text("/metadata/name")).to_string()
}
