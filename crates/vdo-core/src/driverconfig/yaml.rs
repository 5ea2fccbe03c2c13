// SPDX-License-Identifier: Apache-2.0
//! Writes quoted texts and lists of texts in the YAML of the cloud provider's file (`vsphere.conf`).
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

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn yaml_quoted_text_escapes_what_is_not_plain() {
        for (text, expected) in [
            ("a\"b\\ ~", r#""a\"b\\ ~""#),
            ("\u{7}", r#""\u0007""#),
            ("é", "\"é\""),
            // A letter of the last plane with four digits, and no letter of it.
            ("\u{FFDC}\u{FFFD}", "\"\u{FFDC}\\uFFFD\""),
            // A letter of the first plane with more, and no letter.
            ("\u{10000}\u{1F600}", r#""\U00010000\U0001F600""#),
        ] {
            assert_eq!(quoted(text), expected, "{text:?}");
        }
    }
}
