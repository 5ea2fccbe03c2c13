// SPDX-License-Identifier: Apache-2.0
//! What vdoctl prints for programs, against the published schema of its kind.

use serde_json::Value;
use std::path::Path;

/// What of a document its schema does not allow; Kubernetes objects have none.
pub fn faults(document: &Value) -> Vec<String> {
    let kind = document["kind"].as_str().unwrap_or_default();
    if document["apiVersion"] != "vdoctl/v1" {
        return Vec::new();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schema/vdoctl-v1/{kind}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        return vec![format!("{} is missing", path.display())];
    };
    let schema: Value = serde_json::from_str(&text).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors = validator.iter_errors(document);
    errors.map(|error| format!("{kind}{}: {error}", error.instance_path())).collect()
}

/// The faults of every document in the output of a command.
pub fn faults_of(output: &str) -> Vec<String> {
    let documents = serde_json::Deserializer::from_str(output).into_iter::<Value>();
    documents.filter_map(Result::ok).flat_map(|document| faults(&document)).collect()
}
