// SPDX-License-Identifier: Apache-2.0
//! Writes the value of `{{ … }}` as JSON that all YAML readers read as the same value, with limits on depth and length.

use super::engine::OUTPUT_LIMIT;
use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, Output};
use std::fmt::Write as _;

/// How deep a value may be nested. No object of Kubernetes is half as deep.
const DEPTH: usize = 64;

/// Writes a value, or what a macro or a set block of the templates has written, as it is.
pub(super) fn write(out: &mut Output, value: &Value) -> Result<(), Error> {
    if value.is_safe() {
        return out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from);
    }
    let room = OUTPUT_LIMIT;
    Writer { out, room }.value(value, DEPTH)
}

/// A list that holds itself twice, over and over, is small in memory and endless in writing; so it is counted what is written.
struct Writer<'a, 'b> {
    out: &'a mut Output<'b>,
    room: usize,
}

impl Writer<'_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::Undefined => Err(Error::new(ErrorKind::UndefinedError, "the value is undefined")),
            ValueKind::Seq | ValueKind::Iterable => {
                let depth = deeper(depth)?;
                self.put("[")?;
                for (index, item) in value.try_iter()?.enumerate() {
                    self.put(if index == 0 { "" } else { "," })?;
                    self.value(&item, depth)?;
                }
                self.put("]")
            }
            ValueKind::Map => {
                let depth = deeper(depth)?;
                self.put("{")?;
                for (index, key) in value.try_iter()?.enumerate() {
                    self.put(if index == 0 { "" } else { "," })?;
                    self.key(&key)?;
                    self.put(":")?;
                    self.value(&value.get_item(&key)?, depth)?;
                }
                self.put("}")
            }
            _ => self.text(&json(value)?),
        }
    }

    fn key(&mut self, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.text(&json(key)?),
            ValueKind::Number | ValueKind::Bool => self.text(&format!("\"{}\"", json(key)?)),
            kind => Err(Error::new(
                ErrorKind::BadSerialization,
                format!("a key must be text, and this key is a {kind}"),
            )),
        }
    }

    fn put(&mut self, text: &str) -> Result<(), Error> {
        self.room = self.room.checked_sub(text.len()).ok_or_else(|| {
            let message = format!("a value is larger than {} MiB when it is written", OUTPUT_LIMIT >> 20);
            Error::new(ErrorKind::InvalidOperation, message)
        })?;
        self.out.write_str(text).map_err(Error::from)
    }

    /// Writes JSON with what is not printable escaped.
    fn text(&mut self, json: &str) -> Result<(), Error> {
        if json.chars().all(printable) {
            return self.put(json);
        }
        let mut escaped = String::with_capacity(json.len());
        for c in json.chars() {
            if printable(c) {
                escaped.push(c);
            } else {
                write!(escaped, "\\u{:04x}", u32::from(c))?; // everything unprintable lies in the basic plane
            }
        }
        self.put(&escaped)
    }
}

fn deeper(depth: usize) -> Result<usize, Error> {
    let message = || format!("a value is nested more than {DEPTH} times");
    depth
        .checked_sub(1)
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, message()))
}

fn json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::new(ErrorKind::BadSerialization, "the value has no JSON form").with_source(error))
}

/// Whether a character may stand unescaped in a double-quoted YAML scalar and means itself there. Line separators do not: YAML 1.1
/// readers fold them.
fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}
