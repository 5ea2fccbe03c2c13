// SPDX-License-Identifier: Apache-2.0
//! Reads and writes YAML with the same meaning as `kubectl`, within limits of depth, nodes, aliases and documents.
//!
//! Only this module uses the YAML crate. It refuses duplicate keys, and plain scalars have the meaning of Go's `sigs.k8s.io/yaml`: `0440`
//! is 288, `yes` is true, `1e3` is the integer 1000. docs/decisions/001-yaml.md gives the reasons, tests/pure/yaml.rs has the table.

mod positions;

pub use positions::{line_of, lines};

use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::Value;
use std::borrow::Cow;

/// The text is not YAML we accept, or not of the shape asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The text could not be read.
    #[error("line {line}, column {column}: {message}")]
    Read {
        /// Line, counted from 1; 0 when the parser does not say.
        line: u64,
        /// Column, counted from 1; 0 when the parser does not say.
        column: u64,
        /// What is wrong there.
        message: String,
    },
    /// A value has no YAML form, for example a map whose keys are not text.
    #[error("the value cannot be written as YAML: {0}")]
    Write(String),
}

impl From<serde_saphyr::Error> for YamlError {
    fn from(error: serde_saphyr::Error) -> Self {
        let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default();
        // The parser repeats the place at the end of its sentence; it is already at the front of ours.
        let message = message.split(" at line ").next().unwrap_or(message).trim();
        // advice for the programmer of the parser, not for the author of the text
        let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(message);
        let message = match error.without_snippet() {
            serde_saphyr::Error::MultipleDocuments { .. } => "a second document begins here, but only one document is expected",
            _ => message,
        };
        Self::Read {
            line,
            column,
            message: message.to_owned(),
        }
    }
}

/// Reads every document of a YAML (or JSON) text. Empty documents are skipped.
///
/// # Errors
/// When the text is not YAML, repeats a key, or is larger than the limits allow. The error names line and column.
pub fn load_all(text: &str) -> Result<Vec<Value>, YamlError> {
    load_all_within(text, NODES)
}

/// Reads every document as [`load_all`] does, with so many nodes in all of them.
///
/// # Errors
/// As [`load_all`].
pub fn load_all_within(text: &str, nodes: usize) -> Result<Vec<Value>, YamlError> {
    let mut documents: Vec<Value> = repaired(text, |text| serde_saphyr::from_multiple_with_options(text, within(nodes)))?;
    documents.iter_mut().for_each(integers_as_go);
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Reads one document into a type.
///
/// # Errors
/// As [`load_all`], and when the document does not have the shape of `T`.
pub fn load<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    repaired(text, |text| serde_saphyr::from_str_with_options(text, options()))
}

/// Reads one document as a value, with numbers normalised as [`load_all`] does.
///
/// # Errors
/// As [`load_all`].
pub fn load_value(text: &str) -> Result<Value, YamlError> {
    let mut value: Value = load(text)?;
    integers_as_go(&mut value);
    Ok(value)
}

/// Reads one document as [`load_value`] does, with fewer nodes.
///
/// # Errors
/// As [`load_all`].
pub fn load_value_within(text: &str, nodes: usize) -> Result<Value, YamlError> {
    let mut value: Value = repaired(text, |text| serde_saphyr::from_str_with_options(text, within(nodes)))?;
    integers_as_go(&mut value);
    Ok(value)
}

/// Reads one document as [`load_value`] does, with more nodes: for the author of a matrix index.
///
/// # Errors
/// As [`load_all`].
pub fn load_long(text: &str) -> Result<Value, YamlError> {
    let mut value: Value = repaired(text, |text| serde_saphyr::from_str_with_options(text, long()))?;
    integers_as_go(&mut value);
    Ok(value)
}

/// Reads one document as it comes, with as many nodes as [`load_long`]: `seed` decides what of it is kept, and what is skipped is not built.
///
/// # Errors
/// As [`load_all`], and those of the seed.
pub fn load_seed<T>(text: &str, seed: impl for<'de> DeserializeSeed<'de, Value = T>) -> Result<T, YamlError> {
    Ok(serde_saphyr::with_deserializer_from_str_with_options(text, long(), |reader| {
        seed.deserialize(reader)
    })?)
}

/// Writes one document, without a leading `---`.
///
/// # Errors
/// Only when the value has no YAML form, such as a map whose keys are not text.
pub fn dump(value: &impl Serialize) -> Result<String, YamlError> {
    let value = serde_json::to_value(value).map_err(|error| YamlError::Write(error.to_string()))?;
    Ok(dump_value(&value))
}

/// Writes documents one after another, each introduced by `---`.
#[must_use]
pub fn dump_all(documents: &[Value]) -> String {
    documents.iter().map(|document| format!("---\n{}", dump_value(document))).collect()
}

fn dump_value(value: &Value) -> String {
    let mut text = serde_saphyr::to_string_with_options(value, serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX })
        .unwrap_or_else(|_| value.to_string()); // JSON is YAML
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Nodes of a text. A node takes up to 300 bytes in memory, however few it has as text, so these are 60 MiB at most.
const NODES: usize = 200_000;

/// Nodes of a text that is as long as a matrix index may be: one with 5,000 versions has 640,000.
const LONG: usize = 5 * NODES;

fn options() -> serde_saphyr::Options {
    within(NODES)
}

fn long() -> serde_saphyr::Options {
    within(LONG)
}

fn within(nodes: usize) -> serde_saphyr::Options {
    let mut options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        emit_comments: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: 128, max_documents: 4096 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 200_000, max_replay_stack_depth: 32 },
    };
    if let Some(budget) = &mut options.budget {
        budget.max_nodes = nodes;
        budget.max_events = nodes.saturating_mul(5);
    }
    options
}

/// Old controller-gen wrote quoted scalars whose continuation lines are not indented more than their key. libyaml and Go accept
/// that, our parser does not; blanks before such a line change nothing in its meaning, so they are added and the text read again.
fn repaired<T>(text: &str, read: impl Fn(&str) -> Result<T, serde_saphyr::Error>) -> Result<T, YamlError> {
    const MOST_REPAIRS: usize = 256; // two CRDs of the vSphere CSI driver need four; each repair reads the text again
    const MOST_BYTES: usize = 32 << 20; // of all readings together
    let repairs = MOST_REPAIRS.min(MOST_BYTES / text.len().max(1));
    let mut text = Cow::Borrowed(text);
    for _ in 0..repairs {
        match read(&text) {
            Ok(value) => return Ok(value),
            Err(error) => match bad_continuation(&error) {
                Some(line) => text = Cow::Owned(indented(&text, line)),
                None => return Err(error.into()),
            },
        }
    }
    read(&text).map_err(Into::into)
}

fn bad_continuation(error: &serde_saphyr::Error) -> Option<usize> {
    let same = error
        .without_snippet()
        .to_string()
        .contains("invalid indentation in multiline quoted scalar");
    let line = usize::try_from(error.location()?.line()).ok()?;
    same.then(|| line.checked_sub(1)).flatten()
}

fn indented(text: &str, line: usize) -> String {
    let pad = |(i, text): (usize, &str)| if i == line { format!("{:64}{text}", "") } else { text.to_owned() };
    text.split_inclusive('\n').enumerate().map(pad).collect()
}

/// Go turns YAML into JSON and prints an integral float without a fraction; the API server refuses `1000.0` for an integer field.
fn integers_as_go(value: &mut Value) {
    match value {
        Value::Number(float) if float.is_f64() => *value = number(float.as_f64().unwrap_or_default()),
        Value::Array(items) => items.iter_mut().for_each(integers_as_go),
        Value::Object(fields) => fields.values_mut().for_each(integers_as_go),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A number that was written with a fraction or an exponent: an integer where it is one.
#[must_use]
pub fn number(float: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: up to it an f64 holds every integer
    if float.fract() == 0.0 && float.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "integral and at most 2^53")]
        let integer = float as i64;
        return integer.into();
    }
    float.into()
}
