//! Secrets out of a support bundle: the values that are known, and everything that looks like one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const MASKED: &str = "******";

/// Shorter than this, a value is found in every other word.
const SHORTEST: usize = 4;

/// Words at the end of a name whose value is a secret.
const NAMES: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "bearertoken",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "token",
    "apikey",
    "clientsecret",
    "secretkey",
    "privatekey",
    "authorization",
];

/// What is taken out.
pub(super) struct Mask {
    /// Longest first: one may be a part of another.
    known: Vec<String>,
}

impl Mask {
    /// With the values of Secrets.
    pub(super) fn new(values: Vec<String>) -> Self {
        let mut known: Vec<String> = Vec::new();
        for value in values.iter().map(|value| value.trim()).filter(|value| value.len() >= SHORTEST) {
            known.push(value.to_owned());
            known.push(STANDARD.encode(value).trim_end_matches('=').to_owned());
            known.push(hex::encode(value));
            known.push(percent(value));
            known.push(Value::String(value.to_owned()).to_string().trim_matches('"').to_owned());
        }
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        known.dedup();
        Self { known }
    }

    /// A text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        let known = self
            .known
            .iter()
            .fold(text.to_owned(), |text, value| match text.contains(value.as_str()) {
                true => text.replace(value.as_str(), MASKED),
                false => text,
            });
        let mut inside = false;
        let lines = known.split_inclusive('\n').map(|line| {
            let begins = line.contains("-----BEGIN") && line.contains("PRIVATE KEY-----");
            let hidden = inside || begins;
            inside = (inside || begins) && !line.contains("-----END");
            if hidden {
                "****** (private key)\n".to_owned()
            } else {
                line_without(line)
            }
        });
        lines.collect()
    }

    /// A document without secrets, as text.
    pub(super) fn json(&self, document: Value) -> String {
        let mut document = document;
        self.walk(&mut document);
        format!("{document:#}\n")
    }

    fn walk(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            Value::Object(fields) => {
                // As in an environment: the name says what the value is.
                let named = fields.get("name").and_then(Value::as_str).is_some_and(is_secret);
                for (key, value) in fields.iter_mut() {
                    let hides = is_secret(key) || (named && key == "value");
                    match value {
                        Value::String(text) if hides && !text.is_empty() => *text = MASKED.to_owned(),
                        other => self.walk(other),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Whether a value of this name is a secret.
fn is_secret(name: &str) -> bool {
    let bare: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    NAMES.iter().any(|word| bare.ends_with(word))
}

/// A line without the values of names that say so, without what follows `Bearer` or `Basic`, and without the password in an address.
fn line_without(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        rest = after;
        if before.ends_with(':') && after.starts_with("//") {
            let end = after
                .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '>' | ')'))
                .unwrap_or(after.len());
            let (address, tail) = after.split_at(end);
            out.push_str(&without_password(address));
            rest = tail;
            continue;
        }
        let name = before[..at].trim_end().trim_end_matches(['"', '\'', '\\']);
        let name = name
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
            .next()
            .unwrap_or_default();
        if is_secret(name) {
            let (masked, tail) = value(after);
            out.push_str(&masked);
            rest = tail;
        }
    }
    out.push_str(rest);
    after_scheme(&out)
}

/// The replacement of the value at the beginning of a text, and what follows it. A structure is no value.
fn value(text: &str) -> (String, &str) {
    let begin = text.len() - text.trim_start_matches([' ', '\t']).len();
    let (blanks, rest) = text.split_at(begin);
    let quote = rest.trim_start_matches('\\').chars().next().filter(|c| matches!(c, '"' | '\''));
    let lead = if quote.is_some() {
        rest.len() - rest.trim_start_matches('\\').len() + 1
    } else {
        0
    };
    let (open, inner) = rest.split_at(lead);
    let end = match quote {
        Some(quote) => inner.find([quote, '\\', '\n']),
        // The value of a header may have two words.
        None => inner.find(|c: char| {
            matches!(c, ',' | ';' | '\n' | '}' | ']' | '&')
                || (c.is_whitespace() && !inner.starts_with("Bearer ") && !inner.starts_with("Basic "))
        }),
    };
    let (inner, tail) = inner.split_at(end.unwrap_or(inner.len()));
    let empty = inner.is_empty() || matches!(inner, "null" | "true" | "false" | "\"\"") || inner.starts_with(['{', '[']);
    let shown = if empty { inner } else { MASKED };
    (format!("{blanks}{open}{shown}"), tail)
}

fn without_password(address: &str) -> String {
    let body = address.trim_start_matches('/');
    let host = body.split('/').next().unwrap_or_default();
    match host.rsplit_once('@').and_then(|(login, _)| login.split_once(':')) {
        Some((user, password)) => address.replacen(&format!("{user}:{password}@"), &format!("{user}:{MASKED}@"), 1),
        None => address.to_owned(),
    }
}

fn after_scheme(line: &str) -> String {
    let mut out = line.to_owned();
    for scheme in ["Bearer ", "Basic "] {
        let mut from = 0;
        while let Some(at) = out[from..].find(scheme) {
            let begin = from + at + scheme.len();
            let end = out[begin..]
                .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ','))
                .map_or(out.len(), |end| begin + end);
            // A word of a sentence is no token.
            let token = &out[begin..end];
            if token.len() >= 12 && token.chars().any(|c| c.is_ascii_digit()) {
                out.replace_range(begin..end, MASKED);
            }
            from = begin;
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mask_takes_out_what_looks_like_a_secret() {
        let mask = Mask::new(Vec::new());
        for (text, expected) in [
            ("password=hunter2 user=x", "password=****** user=x"),
            ("password: \"hun ter2\", user: x", "password: \"******\", user: x"),
            ("VC_PASSWORD=hunter2", "VC_PASSWORD=******"),
            (r#"{\"password\":\"hunter2\",\"a\":1}"#, r#"{\"password\":\"******\",\"a\":1}"#),
            (
                "GET https://user:hunter2@vc.example.com/sdk failed",
                "GET https://user:******@vc.example.com/sdk failed",
            ),
            ("Authorization: Bearer abc123def456ghi", "Authorization: ******"),
            ("sent Bearer abc123def456ghi to it", "sent Bearer ****** to it"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb\n",
                "a\n****** (private key)\n****** (private key)\n****** (private key)\nb\n",
            ),
            (
                "the password of the account has expired: set a new one",
                "the password of the account has expired: set a new one",
            ),
            (
                "Secret n/vc1-credentials: no key password",
                "Secret n/vc1-credentials: no key password",
            ),
            ("serviceAccountToken: {path: token}", "serviceAccountToken: {path: token}"),
            ("https://10.0.0.1:6443/api", "https://10.0.0.1:6443/api"),
            ("token: null", "token: null"),
        ] {
            assert_eq!(mask.text(text), expected);
        }
    }

    #[test]
    fn mask_takes_out_known_values_in_every_form() {
        let mask = Mask::new(vec!["p@ss w\"ord".into(), "abc".into()]);
        let forms = ["p@ss w\"ord", "cEBzcyB3Im9yZA==", "p%40ss%20w%22ord", r#"p@ss w\"ord"#];
        for form in forms {
            assert!(!mask.text(&format!("x {form} y")).contains(form), "{form}");
        }
        assert_eq!(mask.text("abc"), "abc", "too short to be distinguished from a word");
        let document = json!({"env": [{"name": "DB_PASSWORD", "value": "x1"}, {"name": "A", "value": "p@ss w\"ord"}], "auth": {"token": "t", "secret": "ns/name"}});
        let shown: Value = serde_json::from_str(&mask.json(document)).expect("JSON");
        assert_eq!(
            shown,
            json!({"env": [{"name": "DB_PASSWORD", "value": MASKED}, {"name": "A", "value": MASKED}], "auth": {"token": MASKED, "secret": "ns/name"}})
        );
    }
}
