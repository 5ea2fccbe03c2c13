// SPDX-License-Identifier: Apache-2.0
//! Words a schema's constraint and a refused value for an error message: `a whole number from 0 to 9 or "auto"`.
//!
//! A subschema may carry a `title`: what it allows, in a few words, for people to whom a pattern says little.

use serde_json::Value;
use vdo_api::types::nearest;

/// A pattern longer than this says nothing that its title does not say better.
const PATTERN_SHOWN: usize = 48;

/// What a schema allows: `a whole number from 0 to 9 or "auto"`.
pub(super) fn allowed(schema: &Value) -> String {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    if let Some(title) = schema.get("title").and_then(Value::as_str) {
        // a rule among several has no type; its pattern is not the whole
        let whole = pattern.filter(|pattern| pattern.len() <= PATTERN_SHOWN && schema.get("type").is_some());
        return match whole {
            Some(pattern) => format!("{title}, like {pattern}"),
            None => title.to_owned(),
        };
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return either(options.iter().map(Value::to_string).collect());
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            return either(choices.iter().map(allowed).collect());
        }
    }
    let kinds = match schema.get("type") {
        Some(Value::String(kind)) => either(vec![kind_in_words(kind)]),
        Some(Value::Array(kinds)) => either(kinds.iter().filter_map(Value::as_str).map(kind_in_words).collect()),
        _ => "something else".to_owned(),
    };
    let bound = |key: &str| schema.get(key).map(Value::to_string);
    let range = |least: Option<String>, most: Option<String>, unit: &str| match (least, most) {
        (Some(least), Some(most)) => format!(" from {least} to {most}{unit}"),
        (Some(least), None) => format!(" of at least {least}{unit}"),
        (None, Some(most)) => format!(" of at most {most}{unit}"),
        (None, None) => String::new(),
    };
    let numbers = range(bound("minimum"), bound("maximum"), "");
    let letters = range(bound("minLength"), bound("maxLength"), " characters");
    let items = range(bound("minItems"), bound("maxItems"), " items");
    let form = pattern.map_or(String::new(), |pattern| format!(" like {pattern}"));
    format!("{kinds}{numbers}{letters}{items}{form}")
}

fn kind_in_words(kind: &str) -> String {
    match kind {
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a map",
        "null" => "null",
        other => other,
    }
    .to_owned()
}

/// What stands where something else is wanted. Text is not repeated: it may be a secret in a wrong place.
pub(super) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.is_empty() => "empty text".to_owned(),
        Value::String(text) if text == "true" || text == "false" || text.parse::<f64>().is_ok() => "text (it is in quotes)".to_owned(),
        Value::String(_) => "other text".to_owned(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "a map".to_owned(),
    }
}

/// The word that was probably meant, where words are listed.
pub(super) fn meant<'a>(schema: &'a Value, value: &Value) -> Option<&'a str> {
    fn collect<'a>(schema: &'a Value, words: &mut Vec<&'a str>) {
        let listed = ["enum", "anyOf", "oneOf"]
            .iter()
            .filter_map(|key| schema.get(*key)?.as_array())
            .flatten();
        for item in listed {
            match item {
                Value::String(word) => words.push(word),
                inner => collect(inner, words),
            }
        }
        words.extend(schema.get("const").and_then(Value::as_str));
    }
    let mut words = Vec::new();
    collect(schema, &mut words);
    let typed = value.as_str()?.to_lowercase();
    if let Some(same) = words.iter().copied().find(|word| word.to_lowercase() == typed) {
        return Some(same);
    }
    nearest(value.as_str()?, words)
}

/// `a`, `a or b`, `a, b or c`.
fn either(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() {
        return last;
    }
    format!("{} or {last}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schema_words_each_schema_describes_allowed_values() {
        for (schema, words) in [
            (json!({"type": "boolean"}), "true or false"),
            (json!({"type": "integer", "minimum": 0, "maximum": 9}), "a whole number from 0 to 9"),
            (json!({"type": "integer", "minimum": 1}), "a whole number of at least 1"),
            (json!({"type": "string", "minLength": 1}), "text of at least 1 characters"),
            (json!({"type": "string", "pattern": "^a$"}), "text like ^a$"),
            (json!({"title": "one a", "type": "string", "pattern": "^a$"}), "one a, like ^a$"),
            (json!({"title": "one a", "pattern": "^a$"}), "one a"),
            (json!({"title": "one a", "type": "string", "pattern": "^a$".repeat(20)}), "one a"),
            (json!({"type": "array", "maxItems": 64}), "a list of at most 64 items"),
            (json!({"type": ["string", "number"]}), "text or a number"),
            (json!({"enum": ["a", "b", 3]}), "\"a\", \"b\" or 3"),
            (
                json!({"anyOf": [{"type": "integer", "minimum": 0, "maximum": 9}, {"const": "auto"}]}),
                "a whole number from 0 to 9 or \"auto\"",
            ),
        ] {
            assert_eq!(allowed(&schema), words, "{schema}");
        }
    }

    #[test]
    fn value_words_found_value_hides_unknown_text() {
        for (value, words) in [
            (json!(null), "null"),
            (json!(12), "12"),
            (json!(true), "true"),
            (json!(""), "empty text"),
            (json!("3"), "text (it is in quotes)"),
            (json!("hunter2"), "other text"),
            (json!([1, 2]), "a list of 2"),
            (json!({}), "a map"),
        ] {
            assert_eq!(found(&value), words);
        }
    }

    #[test]
    fn value_words_misspelled_enum_suggests_allowed_value() {
        let schema = json!({"anyOf": [{"enum": ["PRODUCTION", "DEVELOPMENT"]}, {"const": "auto"}]});
        for (typed, word) in [
            (json!("PRODUCTOIN"), Some("PRODUCTION")),
            (json!("production"), Some("PRODUCTION")),
            (json!("Auto"), Some("auto")),
            (json!("hunter2"), None),
            (json!(3), None),
        ] {
            assert_eq!(meant(&schema, &typed), word, "{typed}");
        }
    }
}
