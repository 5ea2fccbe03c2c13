// SPDX-License-Identifier: Apache-2.0
//! Merges the user's values over a chart's defaults as Helm does, and validates the result against `values.schema.json`.

use super::opened_chart::Chart;
use super::schema_errors::{self, Problem};
use serde_json::{Map, Value};
use std::borrow::Cow;
use vdo_api::types::Remedy;

/// The values are not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// The user's values are not a map.
    #[error("the values are not a map")]
    NotAMap,
    /// The chart's own schema is broken.
    #[error("values.schema.json of the chart is not a JSON schema: {0}")]
    Schema(String),
    /// Values the schema does not allow.
    #[error("{}", schema_errors::list(.0))]
    Invalid(Vec<Problem>),
}

impl Remedy for ValuesError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::NotAMap => Some("Write the values as a map, with lines such as key: value.".into()),
            Self::Schema(_) => Some("Correct the mistake in the source of the chart.".into()),
            // Each problem says what is allowed in its place.
            Self::Invalid(_) => None,
        }
    }
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
    let validator = chart.compiled.validator(&chart.schema).map_err(ValuesError::Schema)?;
    match schema_errors::all(validator, &chart.schema, values, &chart.values) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(ValuesError::Invalid(problems)),
    }
}
