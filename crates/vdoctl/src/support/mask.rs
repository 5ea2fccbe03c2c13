// SPDX-License-Identifier: Apache-2.0
//! Replaces secrets in all texts of a support bundle or report: values of Secrets, values that were left out, texts that look secret.

use super::fields;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex, RegexBuilder};
use serde_json::Value;
use std::sync::LazyLock;
use vdo_api::types::{MASKED, from_json, is_sensitive, redacted};

/// Shorter than this, the value of a Secret is found in every other word.
const SHORTEST: usize = 4;

/// Longer than this, a value is looked for by itself.
const LONGEST: usize = 512;

/// The most memory of the search for known values, in bytes.
const MEMORY: usize = 64 << 20;

/// Keys of documents that name a Secret, or what is known of one, and hold none.
const NAMES_ONE: [&str; 3] = ["secret", "secrets", "credential"];

/// The sentence in which the operator reports a field that another manager changed.
static CHANGED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b([A-Z][A-Za-z]+) (\S+): ([a-z][\w.\[\]/*-]*) is (.+?) instead of (.+?)(, changed by |, and | \(the manager |$)").ok()
});

/// What is taken out.
#[derive(Default)]
pub(super) struct Mask {
    /// Values of Secrets in every form, wherever they stand.
    secrets: Search,
    /// Values that were withheld in an object, as words of their own.
    withheld: Search,
}

impl Mask {
    /// With the values of Secrets, and with those that were withheld elsewhere.
    pub(super) fn new(secrets: &[String], withheld: Vec<String>) -> Self {
        let secrets = secrets.iter().map(|value| value.trim()).filter(|value| value.len() >= SHORTEST);
        Self {
            secrets: Search::new(secrets.flat_map(forms).collect()),
            withheld: Search::new(withheld),
        }
    }

    /// A text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        let known = self.secrets.replace(text, |_, _| true);
        let known = self.withheld.replace(&known, is_word);
        let lines = known.split_inclusive('\n').map(without_changed_values);
        redacted(&lines.collect::<String>())
    }

    /// A document without secrets, as text.
    pub(super) fn json(&self, document: Value) -> String {
        format!("{:#}\n", self.document(document))
    }

    /// A document without secrets.
    pub(super) fn document(&self, document: Value) -> Value {
        let mut document = document;
        self.walk(&mut document, "", true);
        document
    }

    /// Objects of which nothing is left but what may be shown.
    pub(super) fn objects(&self, objects: Value) -> String {
        let mut objects = objects;
        self.walk(&mut objects, "", false);
        format!("{objects:#}\n")
    }

    fn walk(&self, value: &mut Value, kind: &str, keys: bool) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, kind, keys)),
            Value::Object(fields) => {
                let kind = kind_of(fields.get("object")).unwrap_or_else(|| kind.to_owned());
                if let Some(path) = fields.get("path").and_then(Value::as_str).map(str::to_owned) {
                    for side in ["wanted", "found"] {
                        if let Some(value) = fields.get_mut(side) {
                            *value = changed(&kind, &path, value);
                        }
                    }
                }
                // As in an environment: the name says what the value is.
                let named = fields.get("name").and_then(Value::as_str).is_some_and(is_sensitive);
                for (key, value) in fields.iter_mut() {
                    let hides = keys && is_sensitive(key) && !NAMES_ONE.contains(&key.as_str());
                    if hides || (named && key == "value") {
                        hide(value);
                    }
                    self.walk(value, &kind, keys);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The kind of an object that a document names, as text or by its parts.
fn kind_of(object: Option<&Value>) -> Option<String> {
    match object? {
        Value::String(text) => text.split_whitespace().next().map(str::to_owned),
        parts => parts["kind"].as_str().map(str::to_owned),
    }
}

/// A value that is written as text, or as it is.
fn changed(kind: &str, path: &str, value: &Value) -> Value {
    let Value::String(text) = value else {
        return fields::value(kind, path, value);
    };
    let (quoted, inner) = match from_json::<Value>(text) {
        Ok(inner) => (true, inner),
        Err(_) => (false, value.clone()),
    };
    match fields::value(kind, path, &inner) {
        shown if shown == inner => value.clone(),
        Value::String(shown) if shown == MASKED => MASKED.into(),
        shown if quoted => shown.to_string().into(),
        shown => shown,
    }
}

/// A line in which the operator reports changed fields, without the values of those that are in no list.
fn without_changed_values(line: &str) -> String {
    let Some(pattern) = CHANGED.as_ref().filter(|_| line.contains(" instead of ")) else {
        return line.to_owned();
    };
    let shown = |found: &Captures<'_>| {
        let one = |text: &str| changed(&found[1], &found[3], &text.into()).as_str().unwrap_or(MASKED).to_owned();
        format!(
            "{} {}: {} is {} instead of {}{}",
            &found[1],
            &found[2],
            &found[3],
            one(&found[4]),
            one(&found[5]),
            &found[6]
        )
    };
    pattern.replace_all(line, shown).into_owned()
}

fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(_) | Value::Null | Value::Bool(_) => {}
        Value::String(text) if text.is_empty() => {}
        other => *other = MASKED.into(),
    }
}

/// The texts by which a value is given away: as it is, in base64, in hexadecimal digits, as in an address, in JSON, in JSON within JSON, and
/// in XML.
fn forms(value: &str) -> Vec<String> {
    let quoted = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let json = quoted(value);
    let xml = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;"), ("'", "&#39;")]
        .iter()
        .fold(value.to_owned(), |text, (character, entity)| text.replace(character, entity));
    vec![
        STANDARD.encode(value).trim_end_matches('=').to_owned(),
        hex::encode(value),
        percent(value),
        quoted(&json),
        json,
        xml,
        value.to_owned(),
    ]
}

/// As in an address.
fn percent(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    value
        .bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Whether what was found is a word of its own.
fn is_word(before: Option<char>, after: Option<char>) -> bool {
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

/// A search for many texts at once.
#[derive(Default)]
struct Search {
    together: Option<Regex>,
    /// Those that are too long to be looked for together.
    alone: Vec<String>,
}

impl Search {
    fn new(mut texts: Vec<String>) -> Self {
        // Longest first: one may be a part of another.
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        let (alone, short): (Vec<String>, Vec<String>) = texts.into_iter().partition(|text| text.len() > LONGEST);
        if short.is_empty() {
            return Self { together: None, alone };
        }
        let pattern: Vec<String> = short.iter().map(|text| regex::escape(text)).collect();
        match RegexBuilder::new(&pattern.join("|")).size_limit(MEMORY).build() {
            Ok(together) => Self {
                together: Some(together),
                alone,
            },
            Err(_) => Self {
                together: None,
                alone: alone.into_iter().chain(short).collect(),
            },
        }
    }

    /// The text without what is looked for, where what stands before and after it allows that.
    fn replace(&self, text: &str, may: impl Fn(Option<char>, Option<char>) -> bool) -> String {
        let mut text = self
            .alone
            .iter()
            .fold(text.to_owned(), |text, value| text.replace(value.as_str(), MASKED));
        if let Some(together) = &self.together {
            let whole = text.clone();
            let shown = |found: &Captures<'_>| {
                let range = found.get(0).map(|found| found.range()).unwrap_or_default();
                match may(whole[..range.start].chars().next_back(), whole[range.end..].chars().next()) {
                    true => MASKED.to_owned(),
                    false => found[0].to_owned(),
                }
            };
            text = together.replace_all(&whole, shown).into_owned();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mask_takes_out_known_values_in_every_form() {
        let mask = Mask::new(&["p@ss w\"ord".into(), "abc".into()], vec!["withheld".into()]);
        let forms = [
            "p@ss w\"ord",
            "cEBzcyB3Im9yZA==",
            "p%40ss%20w%22ord",
            r#"p@ss w\"ord"#,
            "704073732077226f7264",
            "p@ss w&#34;ord",
        ];
        for form in forms {
            assert!(!mask.text(&format!("x {form} y")).contains(form), "{form}");
        }
        assert_eq!(mask.text("abc"), "abc", "too short to be distinguished from a word");
        assert_eq!(mask.text("a withheld value, withheldness"), "a ****** value, withheldness");
        let document = json!({"env": [{"name": "DB_PASSWORD", "value": "x1"}, {"name": "A", "value": "p@ss w\"ord"}], "auth": {"token": "t", "secret": "ns/name", "pins": ["1", "2"], "apiKey": 7}});
        assert_eq!(
            mask.document(document),
            json!({"env": [{"name": "DB_PASSWORD", "value": MASKED}, {"name": "A", "value": MASKED}], "auth": {"token": MASKED, "secret": "ns/name", "pins": ["1", "2"], "apiKey": MASKED}})
        );
    }

    /// Fields that another manager changed are shown as the list of their kind says, in documents and in sentences.
    #[test]
    fn mask_takes_out_values_of_changed_fields_in_no_list() {
        let mask = Mask::default();
        let drift = |path: &str, found: &str| json!({"object": "Deployment n/d", "path": path, "found": found, "wanted": "\"b\""});
        assert_eq!(mask.document(drift("spec.replicas", "3"))["found"], "3");
        assert_eq!(
            mask.document(drift("spec.template.spec.containers[0].image", "\"a:1\""))["found"],
            "\"a:1\""
        );
        for path in [
            "spec.template.spec.containers[0].env[0].value",
            "metadata.annotations[example.com/x]",
            "spec.template.spec.containers[0].args[1]",
        ] {
            assert_eq!(mask.document(drift(path, "\"hunter two\""))["found"], MASKED, "{path}");
        }
        assert_eq!(
            mask.text(
                "Deployment n/d: spec.template.spec.containers[0].env[0].value is \"hunter two\" instead of absent, changed by x at y"
            ),
            "Deployment n/d: spec.template.spec.containers[0].env[0].value is ****** instead of ******, changed by x at y"
        );
        let line = "Deployment n/d: spec.replicas is 3 instead of 1, changed by kubectl at 2026-01-01T00:00:00Z";
        assert_eq!(mask.text(line), line);
    }
}
