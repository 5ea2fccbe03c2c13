// SPDX-License-Identifier: Apache-2.0
//! Adds the differences that an author intends, with the reason, to the text of `deviations.yaml`.

use super::super::compare::{Deviation, Difference};
use super::scalar;
use serde_json::{Value, json};
use std::fmt::Write as _;
use vdo_api::types::DriverVersion;
use vdo_api::yaml;

/// The text of `deviations.yaml` with these differences of a version, for one reason, and the new entries. Nothing where the text takes
/// no entry.
#[must_use]
pub fn with_deviations<'a>(
    text: &str,
    differences: impl Iterator<Item = &'a Difference>,
    version: &DriverVersion,
    reason: &str,
) -> Option<(String, Vec<Deviation>)> {
    let mut after = match text.trim().is_empty() {
        true => "deviations:\n".to_owned(),
        false => text.trim_end().to_owned() + "\n",
    };
    let known = yaml::load_value(&after).ok()?;
    let mut listed = Vec::new();
    let mut expected = known["deviations"].as_array().cloned().unwrap_or_default();
    for difference in differences {
        let deviation = Deviation {
            object: difference.object.clone(),
            path: difference.path.clone(),
            kind: difference.kind,
            original: difference.original.clone().filter(|_| !difference.path.is_empty()),
            reason: reason.to_owned(),
            versions: vec![version.clone()],
            when: None,
        };
        let value = json!(deviation);
        let mut dash = "- ";
        for (field, value) in value.as_object().into_iter().flatten() {
            let _ = writeln!(after, "{dash}{field}: {}", written(value));
            dash = "  ";
        }
        expected.push(value);
        listed.push(deviation);
    }
    let read = yaml::load_value(&after).ok()?;
    (read["deviations"].as_array() == Some(&expected)).then_some((after, listed))
}

/// A value on one line, as JSON, which is YAML; text that needs no quotes has none.
fn written(value: &Value) -> String {
    match value {
        Value::String(_) => scalar(value),
        other => other.to_string(),
    }
}
