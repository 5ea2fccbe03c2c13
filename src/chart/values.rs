//! Values: the chart's defaults, the user's on top, checked against the chart's schema.

use super::model::Chart;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use std::fmt;

/// The values are not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// The user's values are not a map.
    #[error("the values are not a map; write key: value")]
    NotAMap,
    /// The chart's own schema is broken.
    #[error("values.schema.json of the chart is not a JSON schema: {0}")]
    Schema(String),
    /// Values the schema does not allow.
    #[error("{}", list(.0))]
    Invalid(Vec<Problem>),
}

/// One value that is not allowed. Never holds the value itself: it may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, as `controller.replicas`; empty for the whole.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

fn list(problems: &[Problem]) -> String {
    let all: Vec<String> = problems.iter().map(Problem::to_string).collect();
    all.join("; ")
}

/// The values a render uses: the chart's defaults with the user's on top, checked.
///
/// # Errors
/// When the user's values are not a map or the result does not fit the schema. Each problem names its path and what is allowed.
pub fn effective(chart: &Chart, user: &Value) -> Result<Value, ValuesError> {
    let mut values = chart.values.clone();
    match user {
        Value::Null => {}
        Value::Object(_) => merge(&mut values, user),
        _ => return Err(ValuesError::NotAMap),
    }
    validate(chart, &values)?;
    Ok(values)
}

/// Puts `over` on top of `base` as Helm does: maps merge key by key, `null` removes a key, everything else replaces.
pub fn merge(base: &mut Value, over: &Value) {
    let (Value::Object(target), Value::Object(source)) = (&mut *base, over) else {
        *base = over.clone();
        return;
    };
    for (key, value) in source {
        match (target.get_mut(key), value) {
            (_, Value::Null) => drop(target.shift_remove(key)),
            (Some(old), Value::Object(_)) if old.is_object() => merge(old, value),
            _ => drop(target.insert(key.clone(), without_nulls(value))),
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect();
            kept.into()
        }
        other => other.clone(),
    }
}

fn validate(chart: &Chart, values: &Value) -> Result<(), ValuesError> {
    const SHOWN: usize = 10;
    let schema = &chart.schema;
    let validator = chart.prepared.validator(schema).map_err(ValuesError::Schema)?;
    let mut problems: Vec<Problem> = validator
        .iter_errors(values)
        .take(SHOWN)
        .map(|error| problem(schema, &error))
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort_by(|left, right| left.path.cmp(&right.path));
    Err(ValuesError::Invalid(problems))
}

fn problem(schema: &Value, error: &jsonschema::ValidationError<'_>) -> Problem {
    let path = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let path = path.replace("~1", "/").replace("~0", "~");
    let message = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_keys(schema, error.schema_path().as_str());
            format!("there is no {}; known here: {}", quoted(unexpected), known.join(", "))
        }
        ValidationErrorKind::Required { property } => format!("{property} must not be removed; leave it out to get its default"),
        _ => {
            let description = parent(schema, error.schema_path().as_str())
                .and_then(|at| at.get("description"))
                .and_then(Value::as_str);
            let wrong = error.masked().to_string();
            match description {
                Some(description) => format!("{wrong} ({})", description.trim_end_matches('.')),
                None => wrong,
            }
        }
    };
    Problem { path, message }
}

fn quoted(keys: &[String]) -> String {
    let all: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
    all.join(", ")
}

fn known_keys(schema: &Value, path: &str) -> Vec<String> {
    let mut keys: Vec<String> = parent(schema, path)
        .and_then(|at| at.get("properties"))
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    keys.sort();
    keys
}

/// The schema object that holds the keyword the path ends with.
fn parent<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    schema.pointer(path.rsplit_once('/')?.0)
}
