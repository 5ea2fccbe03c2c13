// SPDX-License-Identifier: Apache-2.0
//! Reads JSON of a foreign server, and refuses a document with too many values before it takes memory.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Error;

/// How many values a document may have. A value takes up to 300 bytes in memory, however few it has as text, so these are 60 MiB
/// at most; 2,000 objects of a driver have 80,000.
pub const ELEMENTS: usize = 200_000;

/// Reads JSON of not more than [`ELEMENTS`] values.
///
/// # Errors
/// When there are more, or the text is not JSON of this type.
pub fn from_json<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> Result<T, Error> {
    from_json_within(text, ELEMENTS)
}

/// Reads JSON of not more than this many values.
///
/// # Errors
/// When there are more, or the text is not JSON of this type.
pub fn from_json_within<T: DeserializeOwned>(text: impl AsRef<[u8]>, most: usize) -> Result<T, Error> {
    let text = text.as_ref();
    if elements(text) > most {
        return Err(Error::custom(format!("it has more than {most} values")));
    }
    serde_json::from_slice(text)
}

/// How many values a text has if it is JSON: one more than commas and opening brackets outside of texts, at most.
#[must_use]
pub fn elements(text: &[u8]) -> usize {
    let mut counter = Elements::default();
    counter.add(text);
    counter.count + 1
}

/// Counts the values of a document that comes in pieces.
#[derive(Debug, Default)]
pub struct Elements {
    /// How many begin after a comma or a bracket.
    pub count: usize,
    in_text: bool,
    escaped: bool,
}

impl Elements {
    /// Takes the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        for byte in piece {
            match (self.in_text, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.in_text = !self.in_text,
                (false, b',' | b'[' | b'{') => self.count += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn values(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(values).sum(),
            Value::Object(fields) => fields.values().map(values).sum(),
            _ => 0,
        }
    }

    #[test]
    fn json_values_are_never_counted_too_low() {
        for text in [
            "1",
            "[]",
            "[[],[[0]],{}]",
            r#"{"a":{"b":[1,2]},"c":"x,[{"}"#,
            r#"["\"[,","\\",[0]]"#,
            r#"{"[":"\\\"{","b":[]}"#,
        ] {
            let value: Value = from_json(text).expect(text);
            let (counted, are) = (elements(text.as_bytes()), values(&value));
            assert!((are..are + 4).contains(&counted), "{text}: {counted} of {are}");
            let mut pieces = Elements::default();
            text.as_bytes().chunks(1).for_each(|piece| pieces.add(piece));
            assert_eq!(pieces.count + 1, counted, "{text}, byte by byte");
        }
    }

    #[test]
    fn json_with_too_many_values_is_refused_before_it_is_built() {
        let of = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert!(from_json_within::<Value>(of(1000), 1000).is_ok());
        let error = from_json_within::<Value>(of(1001), 1000).expect_err("one too many").to_string();
        assert_eq!(error, "it has more than 1000 values");
    }
}
