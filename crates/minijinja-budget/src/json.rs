//! How `{{ … }}` writes: as JSON that every reader of YAML reads alike, paid for piece by piece.

use crate::budget::Budget;
use minijinja::value::Value;
use minijinja::{Error, ErrorKind, Output};
use std::fmt::Write as _;
use std::io;

/// Writes a value, or what a macro or block of the templates has written, as it is.
pub(crate) fn write(budget: &Budget, out: &mut Output, value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "the value is undefined"));
    }
    if value.is_safe() {
        // what a macro or a set block has written, through this same function
        let text = value.as_str().unwrap_or_default();
        budget.charge(text.len())?;
        return out.write_str(text).map_err(Error::from);
    }
    // piece by piece: a value that repeats itself is small in memory and can be endless in writing
    budget.weigh(value)?;
    let mut writer = JsonText { budget, out, failed: None };
    let result = serde_json::to_writer(&mut writer, value);
    match (writer.failed, result) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(Error::new(ErrorKind::BadSerialization, "the value has no JSON form").with_source(error)),
        (None, Ok(())) => Ok(()),
    }
}

/// Takes JSON and writes the same as YAML that every reader reads alike.
struct JsonText<'a, 'b> {
    budget: &'a Budget,
    out: &'a mut Output<'b>,
    failed: Option<Error>,
}

impl io::Write for JsonText<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?; // the writer of JSON passes whole characters
        let written = self.budget.charge(bytes.len()).and_then(|()| {
            if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                return self.out.write_str(text).map_err(Error::from);
            }
            text.chars()
                .try_for_each(|c| {
                    if printable(c) {
                        self.out.write_char(c)
                    } else {
                        escape(self.out, c)
                    }
                })
                .map_err(Error::from)
        });
        written.map(|()| bytes.len()).map_err(|error| {
            self.failed = Some(error);
            io::Error::other("stopped")
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a character may stand unescaped in a double-quoted YAML scalar and means itself there. Line separators do not: YAML 1.1
/// readers fold them.
fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn escape(out: &mut Output, c: char) -> std::fmt::Result {
    write!(out, "\\u{:04x}", u32::from(c)) // everything unprintable lies in the basic plane
}
