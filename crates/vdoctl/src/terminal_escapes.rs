// SPDX-License-Identifier: Apache-2.0
//! Escapes control characters in text from others (matrix, file names, cluster, vCenter), so that the text cannot control the terminal.
//! A character that would move the cursor, set a title or reverse the direction of the text is printed as `\u{1b}`.

use super::style;

/// Whether a terminal, or what draws the letters, would obey this character instead of showing it.
fn commands(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // The marks and overrides that turn the direction of text; with them a line reads otherwise than it is.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Further ends of lines.
        '\u{2028}' | '\u{2029}' => true,
        // C0, DEL and C1.
        _ => c.is_control(),
    }
}

/// A text as a terminal may have it: what is foreign is escaped, our own styles become those of terminals.
pub(super) fn shown(text: &str) -> String {
    let mut parts = text.split(style::mark());
    let mut out = escaped(parts.next().unwrap_or_default());
    for part in parts {
        match part
            .split_once('m')
            .filter(|(codes, _)| codes.bytes().all(|b| b.is_ascii_digit() || b == b';'))
        {
            Some((codes, rest)) => out.push_str(&format!("\x1b[{codes}m{}", escaped(rest))),
            // A style that was cut in two is none.
            None => out.push_str(&escaped(part)),
        }
    }
    out
}

fn escaped(text: &str) -> String {
    replaced(text, |c| c.escape_unicode().to_string())
}

/// The same JSON document, in letters that no terminal obeys. Outside of its strings such characters do not occur, and inside
/// they may be written as numbers.
pub(super) fn json(text: &str) -> String {
    replaced(text, |c| format!("\\u{:04x}", u32::from(c)))
}

fn replaced(text: &str, instead: impl Fn(char) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if commands(c) { out.push_str(&instead(c)) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that must not reach a terminal: C0 without line end and tab, DEL, C1, directions, ends of lines.
    fn forbidden() -> impl Iterator<Item = char> {
        let ranges = [
            0..=8,
            11..=31,
            127..=159,
            0x202a..=0x202e,
            0x2066..=0x2069,
            0x2028..=0x2029,
            0x200e..=0x200f,
            0x61c..=0x61c,
        ];
        ranges.into_iter().flatten().filter_map(char::from_u32)
    }

    #[test]
    fn shown_every_forbidden_character_is_escaped() {
        for c in forbidden() {
            assert_eq!(shown(&format!("a{c}b")), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        let harmless = "Füße ✗ … 東京\tx\n👩‍👩‍👧 e\u{301} \u{a0}\u{feff}";
        assert_eq!(shown(harmless), harmless);
    }

    #[test]
    fn shown_own_styles_survive_and_foreign_ones_do_not() {
        for style in [style::bad, style::good, style::warn, style::head, style::faint] {
            let own = shown(&style("a\u{1b}[8mb\u{1b}[31mc"));
            assert_eq!(own.matches('\u{1b}').count(), 2, "one to begin and one to end: {own:?}");
            assert!(own.starts_with("\u{1b}[") && own.ends_with("\u{1b}[0m"), "{own:?}");
            assert!(own.contains("a\\u{1b}[8mb\\u{1b}[31mc"), "{own:?}");
        }
    }

    #[test]
    fn shown_style_cut_in_two_leaves_no_escape() {
        let mark = style::mark();
        for text in [
            mark.to_owned(),
            format!("{mark}31"),
            format!("{mark}31;x;1m"),
            format!("x{}", &mark[..mark.len() - 1]),
        ] {
            assert!(!shown(&text).contains('\u{1b}'), "{text:?}");
        }
    }

    #[test]
    fn json_every_forbidden_character_becomes_a_number() {
        let value = serde_json::json!({"a": forbidden().chain(['\n', '\t', 'ü']).collect::<String>(), "b\u{9b}": [1, "\u{202e}"]});
        for text in [value.to_string(), format!("{value:#}")] {
            let safe = json(&text);
            assert!(!safe.chars().any(commands), "{safe:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("JSON"), value);
        }
        let plain = "{\n  \"a\": \"ü\\n\"\n}\n";
        assert_eq!(json(plain), plain, "nothing else changes");
    }
}
