// SPDX-License-Identifier: Apache-2.0
//! Formats the output of the commands of a scenario, and parses their arguments.

use crate::reconcile::planned::Planned;
use serde_json::{Value, json};
use std::fmt::Write as _;
use vdo_api::types::ObjectId;

/// The drivers that failed, and why.
pub(super) fn failures(planned: &Planned) -> String {
    let mut text = String::new();
    for failure in planned.runs.failures() {
        let drivers: Vec<&str> = failure.drivers.iter().map(String::as_str).collect();
        writeln!(text, "  failed: {}: {}", drivers.join(", "), cut(&failure.error.to_string(), 160)).expect("written");
    }
    text
}

/// What waits, and for what.
pub(super) fn waits(planned: &Planned) -> String {
    let mut text = String::new();
    for wait in planned.plan.waiting.iter().chain(&planned.plan.blocked).chain(&planned.held()) {
        writeln!(text, "  waits: {} {}: {}", wait.driver, wait.reason, wait.message).expect("written");
    }
    for skip in &planned.plan.skipped {
        writeln!(text, "  left: {}", skip.message).expect("written");
    }
    text
}

/// How a script calls an object.
pub(super) fn called(id: &ObjectId) -> String {
    format!("{}/{}", id.kind(), id.name)
}

pub(super) fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A JSON merge patch (RFC 7396).
pub(super) fn merge(value: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (key, field) in fields {
        match field {
            Value::Null => drop(value.as_object_mut().and_then(|map| map.shift_remove(key))),
            field => merge(&mut value[key], field),
        }
    }
}
