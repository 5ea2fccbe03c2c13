// SPDX-License-Identifier: Apache-2.0
//! Finds the line of a container log that shows why the container failed, and masks secrets in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use vdo_api::types::{from_json, redacted};

/// More than this of a line helps no one in a condition.
const LONGEST: usize = 300;

/// Words that make a line one that tells of a failure.
const TELLING: [&str; 7] = ["panic", "fatal", "error", "fail", "denied", "refused", "cannot"];

/// Names whose values are sensitive.
const SECRET_NAMES: [&str; 9] = [
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "authorization",
    "apikey",
    "api_key",
    "credential",
];

/// The reason that the last lines of a log give: the last line that tells of a failure, else the last one there is. Without
/// the prefixes of the usual loggers, on one line, cut to a bearable length; the given secrets, and whatever looks like one,
/// are masked.
#[must_use]
pub fn log_excerpt(log: &str, secrets: &[&str]) -> Option<String> {
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tells = |line: &&&str| {
        let line = line.to_lowercase();
        TELLING.iter().any(|word| line.contains(word))
    };
    let chosen = lines.iter().rev().find(tells).or(lines.last())?;
    let text = redacted(&redact(&message(chosen), secrets));
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(match printable.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &printable[..end]),
        None => printable,
    })
}

/// The message of a log line: of JSON its message and error, of klog what follows the prefix.
fn message(line: &str) -> String {
    if let Ok(Value::Object(map)) = from_json::<Value>(line) {
        let text = |key: &&str| map.get(*key).and_then(Value::as_str).map(str::to_owned);
        let parts: Vec<String> = ["msg", "message", "error", "err"].iter().filter_map(text).collect();
        if !parts.is_empty() {
            return parts.join(": ");
        }
    }
    // klog: one letter and a date, a time, a thread, and the place in the source that ends with a bracket.
    let is_klog =
        line.starts_with(['I', 'W', 'E', 'F']) && line.as_bytes().get(1..5).is_some_and(|date| date.iter().all(u8::is_ascii_digit));
    match line.split_once("] ") {
        Some((_, rest)) if is_klog => rest.to_owned(),
        _ => line.to_owned(),
    }
}

/// The texts by which a log line would give a secret away: as JSON and Go quote it, within another quoted text, in XML, in base64,
/// and as it is.
fn forms(secret: &str) -> [String; 5] {
    let quoted = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let json = quoted(secret);
    let xml = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;"), ("'", "&#39;")]
        .iter()
        .fold(secret.to_owned(), |text, (character, entity)| text.replace(character, entity));
    [quoted(&json), json, xml, STANDARD.encode(secret), secret.to_owned()]
}

/// Masks the given secrets, values of names that speak of secrets, credentials in addresses, and tokens.
fn redact(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for form in secrets.iter().filter(|secret| !secret.is_empty()).flat_map(|secret| forms(secret)) {
        text = text.replace(&form, "******");
    }
    let mut out: Vec<String> = Vec::new();
    let mut masked_next = false;
    for word in text.split(' ') {
        if masked_next && !word.is_empty() {
            // "Authorization: Bearer …" has its secret in the word after the next.
            masked_next = matches!(
                word.trim_matches('"').to_lowercase().as_str(),
                "bearer" | "basic" | "is" | "=" | ":"
            );
            out.push(if masked_next { word.to_owned() } else { "******".to_owned() });
            continue;
        }
        let (shown, next) = masked(word);
        masked_next = next;
        out.push(shown);
    }
    out.join(" ")
}

/// The word with its secret masked, and whether the next word is a secret.
fn masked(word: &str) -> (String, bool) {
    if word.trim_matches(|c: char| !c.is_alphanumeric()).starts_with("eyJ") {
        return ("******".into(), false);
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((_, host)) = rest.split('/').next().unwrap_or_default().rsplit_once('@')
    {
        let tail = rest.split_once('/').map(|(_, tail)| format!("/{tail}")).unwrap_or_default();
        return (format!("{scheme}://******@{host}{tail}"), false);
    }
    let lower = word.to_lowercase();
    if lower.len() != word.len() {
        return (word.to_owned(), false);
    }
    for name in SECRET_NAMES {
        let Some(at) = lower.find(name) else { continue };
        let after = at + name.len();
        let rest = &word[after..];
        let value = rest.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '"' | '\'' | '-' | '_'));
        if let Some(value) = value.strip_prefix(['=', ':']) {
            let shown = &word[..word.len() - value.len()];
            return if value.is_empty() {
                (word.to_owned(), true)
            } else {
                (format!("{shown}******"), false)
            };
        }
    }
    (word.to_owned(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_words_error_line_is_found_and_stripped() {
        for (log, expected) in [
            ("", None),
            ("\n \n", None),
            ("starting\nlistening on :8080\n", Some("listening on :8080")),
            (
                "I1121 14:00:00.000001       1 main.go:1] starting\nE1121 14:00:01.000001       1 server.go:33] Failed to login: wrong user\nI1121 14:00:02.000001       1 main.go:9] stopping\n",
                Some("Failed to login: wrong user"),
            ),
            (
                r#"{"level":"error","time":"2026-11-21T14:00:00Z","caller":"x.go:1","msg":"could not get the vCenter","error":"dial tcp: connection refused"}"#,
                Some("could not get the vCenter: dial tcp: connection refused"),
            ),
            (
                "panic: runtime error: invalid memory address\n\ngoroutine 1 [running]:\nmain.main()\n",
                Some("panic: runtime error: invalid memory address"),
            ),
            ("Error: a\tb\u{1b}[0m", Some("Error: a b [0m")),
        ] {
            assert_eq!(log_excerpt(log, &[]).as_deref(), expected, "{log}");
        }
    }

    #[test]
    fn log_words_long_line_is_truncated() {
        let long = log_excerpt(&format!("error {}", "ü".repeat(1000)), &[]).expect("a line");
        assert_eq!(long.chars().count(), LONGEST + 1);
    }

    #[test]
    fn log_words_known_secret_is_masked_in_every_encoding() {
        let secret = r#"p@ss"w\ord & <co>'s"#;
        for line in [
            r#"error: p@ss"w\ord & <co>'s was refused"#,
            // klog and Go's %q, alone and within another text.
            r#"error: "p@ss\"w\\ord & <co>'s" was refused"#,
            r#"error: "answer \"p@ss\\\"w\\\\ord & <co>'s\" was refused""#,
            "error: <password>p@ss&#34;w\\ord &amp; &lt;co&gt;&#39;s</password> was refused",
            "error: data cEBzcyJ3XG9yZCAmIDxjbz4ncw== was refused",
        ] {
            let reported = log_excerpt(line, &[secret]).expect("words");
            assert!(
                reported.contains("******") && reported.contains("was refused"),
                "{line}: {reported}"
            );
            assert!(
                !["ord", "cEBz"].iter().any(|part| reported.replace("password", "").contains(part)),
                "{line}: {reported}"
            );
        }
    }

    #[test]
    fn log_words_secret_like_text_is_masked() {
        for (line, expected) in [
            ("error: user a with p@ss word=x", "error: user a with ****** word=x"),
            ("failed password=hunter2 user=a", "failed password=****** user=a"),
            ("failed Password: hunter2 for a", "failed Password: ****** for a"),
            ("error \"password\":\"hunter2\"", "error \"password\":******"),
            ("error client_secret_key=hunter2", "error client_secret_key=******"),
            ("error Authorization: Bearer abc.def", "error Authorization: Bearer ******"),
            (
                "error at https://bob:hunter2@vc.example/sdk",
                "error at https://******@vc.example/sdk",
            ),
            ("error with eyJhbGciOi.J9.x here", "error with ****** here"),
            ("error: login --token huntertwo", "error: login --token ******"),
            (
                "error at https://h.example/x?sig=huntertwo",
                "error at https://h.example/x?sig=******",
            ),
            ("error ENCRYPTION_KEY=huntertwo", "error ENCRYPTION_KEY=******"),
            ("error: secret \"x\" not found", "error: secret \"x\" not found"),
            ("error: no token", "error: no token"),
        ] {
            assert_eq!(log_excerpt(line, &["p@ss"]).as_deref(), Some(expected));
        }
    }
}
