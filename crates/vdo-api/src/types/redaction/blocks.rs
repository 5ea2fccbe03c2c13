// SPDX-License-Identifier: Apache-2.0
//! Replaces secrets of several lines: private keys, block scalars of YAML, and values that start on the next line.

use super::shown_env_variables::is_hidden_variable;
use super::{MASKED, is_sensitive};

/// How far the end of a key is looked for, in bytes.
const LONGEST_KEY: usize = 16 << 10;

/// What stands in the place of a private key.
const KEY: &str = "****** (private key)";

/// The text without private keys, whether their lines are lines or written as `\n`.
pub(super) fn without_private_keys(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("-----BEGIN ") {
        let (before, key) = rest.split_at(at);
        out.push_str(before);
        let heading = &key["-----BEGIN ".len()..];
        let named = heading
            .find("-----")
            .filter(|end| heading[..*end].contains("PRIVATE KEY") && *end < 60);
        let Some(named) = named else {
            out.push_str("-----BEGIN ");
            rest = heading;
            continue;
        };
        out.push_str(KEY);
        rest = after_key(&heading[named + 5..]);
    }
    out + rest
}

/// What follows the body of a key. Where it has no end, what cannot be of a key.
fn after_key(body: &str) -> &str {
    let window = floor(body, LONGEST_KEY);
    let end = body[..window].find("-----END ").and_then(|at| {
        let tail = at + "-----END ".len();
        body[tail..].find("-----").map(|close| tail + close + 5)
    });
    let cut = || {
        let is_body =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\\' | '\n' | '\r' | ' ' | '\t' | ':' | ',' | '-');
        body[..window].find(|c| !is_body(c)).unwrap_or(window)
    };
    &body[end.unwrap_or_else(cut)..]
}

fn floor(text: &str, most: usize) -> usize {
    let mut at = most.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The text, line by line. The lines below a sensitive name are its value.
pub(super) fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open = Open::Nothing;
    for line in text.split_inclusive('\n') {
        let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
        match open.hides(body) {
            Some(shown) => out.push_str(&shown),
            None => {
                out.push_str(&one(body));
                open = Open::after(body, &open);
            }
        }
        out.push_str(end);
    }
    out
}

/// One line; where lines are written in it as `\n`, each of these.
fn one(line: &str) -> String {
    if !line.contains("\\n") {
        return super::line(line);
    }
    let inner = redacted(&line.replace("\\n", "\n"));
    // A value that spans the places where lines were joined is one of the whole line, too.
    super::line(&inner.replace('\n', "\\n"))
}

/// What a line leaves open for those below.
enum Open {
    Nothing,
    /// The value of a sensitive name that stands this far in, as a block.
    Block(usize),
    /// A value that may follow on the next lines, deeper than this, unless these are a structure.
    Below(usize),
    /// A quoted value of a sensitive name.
    Quote(char),
    /// The name of a variable of an environment: its value is on the next line.
    Variable,
}

impl Open {
    /// What is shown instead of a line that belongs to a secret.
    fn hides(&mut self, line: &str) -> Option<String> {
        let depth = line.len() - line.trim_start().len();
        let indent = &line[..depth];
        let word = line.trim();
        match self {
            Self::Nothing => None,
            Self::Block(_) if word.is_empty() => Some(String::new()),
            Self::Block(at) if depth > *at => Some(format!("{indent}{MASKED}")),
            Self::Below(at) => {
                let item = word.starts_with("- ") && depth >= *at;
                let structure = word.ends_with([':', '{', '[']) || word.contains(": ") || word.contains("\":");
                if word.is_empty() || structure || !(depth > *at || item) {
                    *self = Self::Nothing;
                    return None;
                }
                Some(format!("{indent}{}{MASKED}", if item { "- " } else { "" }))
            }
            Self::Quote(quote) => {
                let close = line.find(*quote);
                let rest = close.map(|at| &line[at..]);
                if close.is_some() {
                    *self = Self::Nothing;
                }
                Some(format!("{indent}{MASKED}{}", rest.map(super::line).unwrap_or_default()))
            }
            Self::Variable => {
                *self = Self::Nothing;
                let value = word.trim_start_matches(['"', '\'']);
                let (name, rest) = value.split_once(':')?;
                let named = name.trim_end_matches(['"', '\'']).eq_ignore_ascii_case("value") && !rest.trim().is_empty();
                named.then(|| {
                    let at = line.find(':').unwrap_or(line.len() - 1);
                    format!("{} {MASKED}", &line[..=at])
                })
            }
            Self::Block(_) => {
                *self = Self::Nothing;
                None
            }
        }
    }

    /// What a line leaves open.
    fn after(line: &str, _before: &Self) -> Self {
        let body = line.trim_start();
        let dashes = body.len() - body.trim_start_matches(['-', ' ']).len();
        let depth = line.len() - body.len();
        // What opens a block stands at the end, and other text may stand before its name.
        let last = body
            .rsplit_once(':')
            .filter(|(_, value)| value.trim().is_empty() || value.trim().starts_with(['|', '>']));
        let last = last.map(|(before, value)| (before.rsplit([' ', '"']).find(|word| !word.is_empty()).unwrap_or_default(), value));
        let Some((name, value)) = last.or_else(|| body[dashes..].split_once(':')) else {
            return Self::Nothing;
        };
        let name = name.trim().trim_matches(['"', '\'']);
        let value = value.trim();
        if name.eq_ignore_ascii_case("name") {
            let variable = value.trim_end_matches(',').trim_matches(['"', '\'']);
            return match is_sensitive(variable) || is_hidden_variable(variable) {
                true => Self::Variable,
                false => Self::Nothing,
            };
        }
        if name.contains(char::is_whitespace) || !is_sensitive(name) {
            return Self::Nothing;
        }
        match value.chars().next() {
            None => Self::Below(depth),
            Some('|' | '>') => Self::Block(depth),
            Some(quote @ ('"' | '\'')) if !value[1..].contains(quote) => Self::Quote(quote),
            Some(_) => Self::Block(depth),
        }
    }
}
