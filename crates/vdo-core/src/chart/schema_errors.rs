// SPDX-License-Identifier: Apache-2.0
//! Lists the values that a chart's schema does not allow (`Problem`): the path, the kind of the value found, and what is allowed.
//! A message never repeats the value, which may be a secret.

mod wording;

use crate::manifest::pointer::steps;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use vdo_api::types::nearest;

/// One value that is not allowed. Never holds text of the value itself: it may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The keys and indexes that lead to it; empty for the whole.
    pub path: Vec<String>,
    /// What was found and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    /// As `controller.replicas: found …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        let keys: Vec<String> = self.path.iter().map(|key| key.replace('.', "\\.")).collect();
        write!(f, "{}: {}", keys.join("."), self.message)
    }
}

/// All of them on one line.
pub(super) fn list(problems: &[Problem]) -> String {
    let all: Vec<String> = problems.iter().map(Problem::to_string).collect();
    all.join("; ")
}

/// Everything that a schema does not allow, one problem for each place, in the order of their paths. `defaults` has the values that apply where
/// nothing else is given.
pub(super) fn all(validator: &Validator, schema: &Value, values: &Value, defaults: &Value) -> Vec<Problem> {
    const LOOKED_AT: usize = 1_000;
    const SHOWN: usize = 10;
    let mut found: Vec<Problem> = validator
        .iter_errors(values)
        .take(LOOKED_AT)
        .flat_map(|error| Mistake::new(schema, defaults, &error).problems())
        .collect();
    // the first of a place is the one that its schema lists first
    let mut seen = BTreeSet::new();
    found.retain(|problem| seen.insert(problem.path.clone()));
    found.sort_by(|left, right| left.path.cmp(&right.path));
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    if more > 0 {
        found.push(Problem {
            path: Vec::new(),
            message: format!("and {more} more"),
        });
    }
    found
}

/// An error of the validator, with the schema around it.
struct Mistake<'a, 'e> {
    error: &'a ValidationError<'e>,
    /// Where in the values.
    path: Vec<String>,
    /// The schema object that holds the keyword.
    holder: &'a Value,
    /// What the value is for, by the nearest schema around it.
    purpose: Option<&'a str>,
    defaults: &'a Value,
}

impl<'a, 'e> Mistake<'a, 'e> {
    fn new(schema: &'a Value, defaults: &'a Value, error: &'a ValidationError<'e>) -> Self {
        let at = error.schema_path().as_str();
        let around = || {
            std::iter::successors(at.rsplit_once('/').map(|(path, _)| path), |path| {
                path.rsplit_once('/').map(|(path, _)| path)
            })
        };
        let described = |path: &str| schema.pointer(path)?.get("description")?.as_str();
        Self {
            error,
            path: steps(error.instance_path().as_str()).collect(),
            holder: around().next().and_then(|path| schema.pointer(path)).unwrap_or(&Value::Null),
            // the outermost describes the whole chart, which tells nothing about one value
            purpose: around().filter(|path| !path.is_empty()).find_map(described),
            defaults,
        }
    }

    fn problems(&self) -> Vec<Problem> {
        match self.error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known: Vec<&str> = keys(self.holder.get("properties"));
                let one = |key: &String| self.below(key, unknown("value", key, &known));
                unexpected.iter().map(one).collect()
            }
            ValidationErrorKind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                vec![self.below(key, self.missing(key))]
            }
            ValidationErrorKind::PropertyNames { error } => {
                let key = error.instance().as_str().unwrap_or_default();
                vec![self.below(key, self.wrong_key(key))]
            }
            _ => vec![Problem {
                path: self.path.clone(),
                message: self.wrong_value(),
            }],
        }
    }

    fn below(&self, key: &str, message: String) -> Problem {
        Problem {
            path: self.path.iter().cloned().chain([key.to_owned()]).collect(),
            message,
        }
    }

    fn missing(&self, key: &str) -> String {
        let place: String = self.path.iter().map(|key| format!("/{key}")).collect();
        if self.defaults.pointer(&place).is_some_and(|at| at.get(key).is_some()) {
            return "must not be removed with null; leave out the key to get its default".to_owned();
        }
        let described = self
            .holder
            .pointer("/properties")
            .and_then(|all| all.get(key)?.get("description")?.as_str());
        format!("is missing{}", purpose(described))
    }

    fn wrong_key(&self, key: &str) -> String {
        let names = self.holder.get("propertyNames").unwrap_or(self.holder);
        match names.get("enum").and_then(Value::as_array) {
            Some(known) => {
                let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
                let hint = names.get("description").and_then(Value::as_str);
                format!("{}{}", unknown("name", key, &known), purpose(hint))
            }
            None => format!("found a name that is not allowed here, expected {}", wording::allowed(names)),
        }
    }

    fn wrong_value(&self) -> String {
        let value = self.error.instance();
        let meant = wording::meant(self.holder, value).map_or(String::new(), |word| format!("; did you mean {word:?}?"));
        format!(
            "found {}, expected {}{meant}{}",
            wording::found(value),
            wording::allowed(self.holder),
            purpose(self.purpose)
        )
    }
}

/// What a value is for, in brackets.
fn purpose(description: Option<&str>) -> String {
    description.map_or(String::new(), |text| format!(" ({})", text.trim_end_matches('.')))
}

fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let known_here = known.join(", ");
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("there is no such {what}; did you mean {near}? Known {what}s: {known_here}"),
        None => format!("there is no such {what}; known {what}s: {known_here}"),
    }
}

fn keys(properties: Option<&Value>) -> Vec<&str> {
    let mut keys: Vec<&str> = properties
        .and_then(Value::as_object)
        .map(|all| all.keys().map(String::as_str).collect())
        .unwrap_or_default();
    keys.sort_unstable();
    keys
}

/// A schema, where it stands or where its `$ref` leads.
pub(super) fn resolved<'a>(schema: &'a Value, whole: &'a Value) -> &'a Value {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| whole.pointer(pointer)).unwrap_or(schema)
}
