//! Writes the little YAML the CPI needs: nested maps with quoted texts.
//!
//! The reader is YAML 1.1 (`yaml.v2`), where `no`, `0x1F`, `1:30` and `2001-01-01` are not texts unless quoted; so every
//! text is quoted, and everything outside letters, digits and printable ASCII is escaped.

use std::fmt::Write as _;

/// A text as a double-quoted YAML scalar.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() && (c as u32) < 0x1_0000 => out.push(c),
            c if (c as u32) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => {
                let _ = write!(out, "\\U{:08X}", c as u32);
            }
        }
    }
    out.push('"');
    out
}

/// A list of texts in flow form.
pub(super) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<_> = texts.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}
