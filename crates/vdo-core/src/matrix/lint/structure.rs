// SPDX-License-Identifier: Apache-2.0
//! Checks an index against its JSON schema: unknown fields, missing fields and wrong types.

use super::{IndexPath, Report};
use crate::manifest::pointer::steps;
use crate::matrix::schema::{self, Unknown};
use jsonschema::JsonType;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

pub(super) fn check(index: &Value, report: &mut Report) {
    let Ok(validator) = jsonschema::validator_for(schema::published()) else {
        report.add(
            &IndexPath::default(),
            "",
            "the index schema that is built into this vdoctl is not valid, so the index was not checked; report this error",
        );
        return;
    };
    for unknown in schema::unknown(index) {
        let (place, field) = place(index, &unknown.path);
        report.add(&place, &field, message(&unknown));
    }
    for error in validator.iter_errors(index) {
        let path: Vec<String> = steps(error.instance_path().as_str()).collect();
        let (place, field) = place(index, &path);
        let within = |name: &str| {
            if field.is_empty() {
                name.to_owned()
            } else {
                format!("{field}.{name}")
            }
        };
        match error.kind() {
            Kind::AdditionalProperties { .. } => {}
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                report.add(&place, &within(name), "this field is missing; docs/matrix.md describes it");
            }
            _ => report.add(&place, &field, problem(&error, &field)),
        }
    }
}

fn message(unknown: &Unknown) -> String {
    match &unknown.nearest {
        Some(near) => format!("this field is not known; did you mean {near}?"),
        None => "this field is not known; docs/matrix.md lists the known fields".to_owned(),
    }
}

fn problem(error: &jsonschema::ValidationError<'_>, field: &str) -> String {
    let found = error.instance();
    match error.kind() {
        Kind::Pattern { .. } if field.ends_with("sha256") => {
            format!("{found} is not a SHA-256; write the 64 lower-case hex digits that sha256sum prints for the package")
        }
        Kind::Pattern { .. } => format!("{found} is not a version; write for example \"3.7.3\""),
        Kind::MinItems { .. } => "it is empty; write at least one entry".to_owned(),
        Kind::Constant { expected_value } => format!("it is {found}; this vdoctl reads {expected_value}"),
        Kind::Type { kind } if found.is_number() && allows_text(kind) => {
            format!("{found} is a number; put versions in quotes, because 1.30 without quotes is read as 1.3")
        }
        _ => error.to_string(),
    }
}

fn allows_text(kind: &TypeKind) -> bool {
    match kind {
        TypeKind::Single(one) => *one == JsonType::String,
        TypeKind::Multiple(several) => several.contains(JsonType::String),
    }
}

/// The entry, the driver or the top that a path leads into, and the rest of the path.
fn place(index: &Value, path: &[String]) -> (IndexPath, String) {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["drivers", driver, "versions", i, rest @ ..] => {
            let number = i.parse::<usize>().unwrap_or(0);
            let entry = &index["drivers"][*driver]["versions"][number];
            (IndexPath::entry(driver, number, entry), rest.join("."))
        }
        ["drivers", driver, rest @ ..] => (IndexPath::driver(driver), rest.join(".")),
        all => (IndexPath::default(), all.join(".")),
    }
}
