// SPDX-License-Identifier: Apache-2.0
//! Replaces the values of sensitive names in one line: `name=value`, `name: value`, `--name value`, `-u user:value`.

use super::shown_env_variables::is_hidden_variable;
use super::{MASKED, is_sensitive};
use regex::{Captures, Regex};
use std::sync::LazyLock;

#[expect(clippy::unwrap_used, reason = "a constant, compiled by the tests")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// A name with the sign that assigns a value to it, and the quotes and spaces between.
static NAME: LazyLock<Regex> = LazyLock::new(|| regex(r#"([A-Za-z_][A-Za-z0-9_.\-]*)(\\*["'])?[ \t]*(:=|=>|=|:)[ \t]*"#));

/// A flag with its value behind a space, or as the next item of a list.
static FLAG: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(^|[\s"'\[(,])(--?)([A-Za-z][A-Za-z0-9_.-]*)(\\*["']?[ \t]*(?:,[ \t]*|[ \t]+)\\*["']?)([^\s"'\\,\]-][^\s"'\\\]]*)"#)
});
/// Short flags for passwords, with the value behind a space or without one.
static SHORT: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(^|[\s"'\[(,])-([pPaw])(\\*["']?,[ \t]*\\*["']?|[ \t]+\\*["']?|[=]?)([^\s"'\\,\]-][^\s"'\\\]]*)"#));
/// A login behind a flag.
static USER: LazyLock<Regex> = LazyLock::new(|| regex(r#"(^|[\s"'\[(,])(-u|-U|--user|--proxy-user)([ \t=]+["']?)([^\s:"']+):([^\s"']+)"#));

/// The text without the values of sensitive names.
pub(super) fn masked(text: &str) -> String {
    flags(&named(text))
}

fn named(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(found) = NAME.captures_at(text, from) {
        let (Some(all), Some(name)) = (found.get(0), found.get(1)) else {
            break;
        };
        out.push_str(&text[from..all.end()]);
        from = all.end();
        let place = NameContext {
            before: &text[..name.start()],
            quoted: found.get(2).is_some(),
            sign: &found[3],
            spaced: all.as_str().ends_with([' ', '\t']),
        };
        if place.sign == ":" && text[from..].starts_with("//") {
            continue;
        }
        if place.names_secret(name.as_str()) {
            let (shown, length) = value(&text[from..], place.is_line(), name.as_str());
            out.push_str(&shown);
            from += length;
        }
    }
    out.push_str(&text[from..]);
    out
}

/// Where a name stands.
struct NameContext<'a> {
    before: &'a str,
    quoted: bool,
    sign: &'a str,
    spaced: bool,
}

impl NameContext<'_> {
    /// Whether it is the key of a line of YAML or of a header.
    fn is_line(&self) -> bool {
        self.sign == ":" && !self.quoted && self.before.trim_start_matches([' ', '\t', '-', '#', '>', '<', '*', '+']).is_empty()
    }

    fn names_secret(&self, name: &str) -> bool {
        if self.sign == "=" && !self.spaced && is_hidden_variable(name) {
            return true;
        }
        if !is_sensitive(name) {
            return false;
        }
        if self.sign != ":" || self.quoted || self.is_line() {
            return true;
        }
        // "Secret n/vsphere-config-secret: …" is an object and a sentence; a header and a field are names of their own.
        let object = self.before.ends_with('/') || name.contains('-');
        !object || name.chars().any(|c| c.is_ascii_uppercase()) || name.starts_with("x-")
    }
}

/// The replacement of the value at the beginning of a text, and how long the value is. A structure is not a value, and nothing is left
/// of what has no value.
fn value(text: &str, whole_line: bool, name: &str) -> (String, usize) {
    let slashes = text.len() - text.trim_start_matches('\\').len();
    let quote = text[slashes..].chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote {
        let begin = slashes + 1;
        let end = closing(&text[begin..], quote, slashes).map_or(text.len(), |end| begin + end);
        let shown = if end == begin { "" } else { MASKED };
        return (format!("{}{shown}", &text[..begin]), end);
    }
    if text.starts_with('[') {
        return list(text);
    }
    if text.starts_with(['{', '|', '>', '&', '*']) && !text.starts_with("******") {
        return (String::new(), 0);
    }
    let header = name.to_ascii_lowercase().contains("authorization") || name.to_ascii_lowercase().contains("cookie");
    let two = ["Bearer ", "Basic ", "bearer ", "basic "]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let end = if whole_line || header || two {
        text.find(['\n', '"']).unwrap_or(text.len())
    } else {
        text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '}' | ']' | '\\'))
            .unwrap_or(text.len())
    };
    let inner = text[..end].trim_end();
    if inner.is_empty()
        || matches!(
            inner.trim_end_matches([',', ';']),
            "null" | "true" | "false" | "nil" | "<nil>" | "~"
        )
    {
        return (String::new(), 0);
    }
    if inner.ends_with(" ******") {
        return (String::new(), 0);
    }
    (MASKED.to_owned(), inner.len())
}

/// Where a quote closes that was opened behind this many backslashes.
fn closing(text: &str, quote: char, slashes: usize) -> Option<usize> {
    let mut run = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => run += 1,
            c if c == quote && run <= slashes => return Some(at - run),
            _ => run = 0,
        }
    }
    None
}

/// A list of values: its brackets are left.
fn list(text: &str) -> (String, usize) {
    let end = text.find(']').unwrap_or(text.len());
    let inner = text[1..end].trim();
    if inner.is_empty() || inner.starts_with('{') {
        return (String::new(), 0);
    }
    (format!("[{MASKED}"), end)
}

fn flags(text: &str) -> String {
    if !text.contains('-') {
        return text.to_owned();
    }
    let long = |found: &Captures<'_>| {
        let path = found[5].starts_with(['/', '.']) && found[5].len() < 60;
        // A heading or a placeholder of a command to be typed.
        let placeholder = found[5].chars().all(|c| c.is_ascii_uppercase());
        match is_sensitive(&found[3]) && !path && !placeholder {
            true => format!("{}{}{}{}{MASKED}", &found[1], &found[2], &found[3], &found[4]),
            false => found[0].to_owned(),
        }
    };
    let text = FLAG.replace_all(text, long);
    let text = SHORT.replace_all(&text, format!("${{1}}-${{2}}${{3}}{MASKED}"));
    USER.replace_all(&text, format!("${{1}}${{2}}${{3}}${{4}}:{MASKED}")).into_owned()
}
