// SPDX-License-Identifier: Apache-2.0
//! Replaces secrets that a pattern recognises without a name: tokens of known providers, logins and parameters in URLs, XML elements.

use super::MASKED;
use regex::{Captures, Regex, RegexSet};
use std::sync::LazyLock;

/// Forms of which nothing but the form is left.
const WHOLE: [&str; 25] = [
    // JSON Web Tokens, and JSON in base64, such as logins of registries.
    r"\beyJ[A-Za-z0-9_+/=-]{8,}(?:\.[A-Za-z0-9_=-]+)*\.?",
    // PEM in base64.
    r"LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*",
    // Clouds.
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ABIA|ACCA)[A-Z0-9]{12,}\b",
    r"\bAIza[0-9A-Za-z_-]{20,}",
    r"\bya29\.[0-9A-Za-z_-]{10,}",
    r"\bdop_v1_[a-f0-9]{16,}",
    // Places of source code, packages and images.
    r"\bgh[pousr]_[A-Za-z0-9]{16,}",
    r"\bgithub_pat_[A-Za-z0-9_]{16,}",
    r"\bgl(?:pat|ptt|rt|dt|soat|cbt)-[A-Za-z0-9_.-]{10,}",
    r"\bnpm_[A-Za-z0-9]{16,}",
    r"\bpypi-[A-Za-z0-9_-]{16,}",
    r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{10,}",
    // Chats, payments, mail.
    r"\bxox[a-z]-[A-Za-z0-9-]{8,}",
    r"\b[spr]k_(?:live|test)_[A-Za-z0-9]{8,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bSG\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r"\b\d{6,}:AA[A-Za-z0-9_-]{20,}",
    // Vaults and clusters.
    r"\bhv[sbr]\.[A-Za-z0-9_-]{8,}",
    r"\bs\.[A-Za-z0-9]{24}\b",
    r"\bAGE-SECRET-KEY-1[A-Z0-9]{8,}",
    r"\bsha256~[A-Za-z0-9_-]{10,}",
    r"\bgls?a_[A-Za-z0-9_]{16,}",
    r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b",
    // Hashes of passwords.
    r"\$(?:2[abxy]|1|5|6|y|apr1|argon2(?:id|i|d)|pbkdf2[\w-]*|scrypt)\$[^\s\x22',]+",
    // Licences.
    r"\b[0-9A-Z]{5}(?:-[0-9A-Z]{5}){4}\b",
];

/// Names in the query of an address whose values are shown.
const QUERY: [&str; 22] = [
    "timeout",
    "timeoutSeconds",
    "limit",
    "watch",
    "resourceVersion",
    "resourceVersionMatch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "labelSelector",
    "fieldSelector",
    "fieldManager",
    "fieldValidation",
    "force",
    "dryRun",
    "pretty",
    "container",
    "previous",
    "tailLines",
    "limitBytes",
    "dcPath",
    "dsName",
    "ns",
];

/// Compiles what is written in this file; a test compiles all of it.
#[expect(clippy::unwrap_used, reason = "a constant, compiled by the tests")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

static ALL: LazyLock<(Option<RegexSet>, Vec<Regex>)> =
    LazyLock::new(|| (RegexSet::new(WHOLE).ok(), WHOLE.iter().map(|pattern| regex(pattern)).collect()));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r#"([A-Za-z][A-Za-z0-9+.-]*://)([^\s"'<>\\]+)"#));
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| regex(r#"([?&;#])([A-Za-z0-9_.%\[\]-]+)=([^&\s"'<>\\#]+)"#));
static HOOK: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"((?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|webhook\.office\.com)/)[^\s\x22']+")
});
static LOGIN_AT: LazyLock<Regex> = LazyLock::new(|| regex(r#"([A-Za-z0-9_.+-]+):([^\s/:"'\\,]+)@([A-Za-z0-9(\[][A-Za-z0-9_.-]*)"#));
static ORACLE: LazyLock<Regex> = LazyLock::new(|| regex(r#"\b([A-Za-z0-9_.+-]+)/([^\s/@"']+)@(//)?([A-Za-z0-9][A-Za-z0-9.-]*)([:/])"#));
static ELEMENT: LazyLock<Regex> = LazyLock::new(|| regex(r"<((?:[\w-]+:)?([A-Za-z_][\w.-]*))([^<>]*)>([^<]+)</"));
static SCHEME: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(?i)\b(bearer|basic|digest|negotiate|token|apikey|splunk|aws4-hmac-sha256)([ \t]+)([^\s"'\\,]{8,})"#));
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?i)(\\*"?name\\*"?[ \t]*[:=][ \t]*\\*"?)([A-Za-z_][\w.-]*)(\\*"?[ \t]*[, ][ \t]*\\*"?value\\*"?[ \t]*[:=][ \t]*)(\\*"(?:[^"\\]|\\+[^"\\])*\\*"|[^\s",}]+)"#,
    )
});
static NAMED_AFTER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?i)(\\*"value\\*"[ \t]*:[ \t]*)(\\*"(?:[^"\\]|\\+[^"\\])*\\*")([ \t]*,[ \t]*\\*"name\\*"[ \t]*:[ \t]*\\*")([A-Za-z_][\w.-]*)"#,
    )
});

/// The text without values that are known by their form.
pub(super) fn masked(text: &str) -> String {
    let mut text = addresses(text);
    if let Some(set) = &ALL.0 {
        for at in &set.matches(&text) {
            text = ALL.1[at].replace_all(&text, MASKED).into_owned();
        }
    }
    if text.contains('@') {
        text = LOGIN_AT.replace_all(&text, login).into_owned();
        text = ORACLE.replace_all(&text, oracle).into_owned();
    }
    if text.contains("</") {
        let element = |found: &Captures<'_>| match super::is_sensitive(&found[2]) {
            true => format!("<{}{}>{MASKED}</", &found[1], &found[3]),
            false => found[0].to_owned(),
        };
        text = ELEMENT.replace_all(&text, element).into_owned();
    }
    text = SCHEME.replace_all(&text, scheme).into_owned();
    if text.to_ascii_lowercase().contains("value") {
        let forward = |found: &Captures<'_>| match is_named(&found[2]) {
            true => format!("{}{}{}{MASKED}", &found[1], &found[2], &found[3]),
            false => found[0].to_owned(),
        };
        text = NAMED.replace_all(&text, forward).into_owned();
        let backward = |found: &Captures<'_>| match is_named(&found[4]) {
            true => format!("{}{MASKED}{}{}", &found[1], &found[3], &found[4]),
            false => found[0].to_owned(),
        };
        text = NAMED_AFTER.replace_all(&text, backward).into_owned();
    }
    text
}

fn is_named(name: &str) -> bool {
    super::is_sensitive(name) || super::shown_env_variables::is_hidden_variable(name)
}

/// Logins, parameters and secret paths of addresses.
fn addresses(text: &str) -> String {
    let mut text = text.to_owned();
    if text.contains("://") {
        text = ADDRESS
            .replace_all(&text, |found: &Captures<'_>| format!("{}{}", &found[1], without_login(&found[2])))
            .into_owned();
        text = HOOK.replace_all(&text, format!("${{1}}{MASKED}")).into_owned();
    }
    if text.contains('=') {
        let parameter = |found: &Captures<'_>| match QUERY.contains(&&found[2]) {
            true => found[0].to_owned(),
            false => format!("{}{}={MASKED}", &found[1], &found[2]),
        };
        text = PARAMETER.replace_all(&text, parameter).into_owned();
    }
    text
}

/// What follows `://`, without a password and without a token in the place of a user.
fn without_login(rest: &str) -> String {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = rest[..end].rfind('@').or_else(|| {
        // A password with a slash that was not escaped.
        let port = rest[..end].split_once(':').map(|(_, port)| port);
        let is_port = port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
        rest.rfind('@').filter(|_| !is_port && !rest.starts_with('['))
    });
    match at {
        None => rest.to_owned(),
        Some(at) => match rest[..at].split_once(':') {
            Some((user, _)) => format!("{user}:{MASKED}{}", &rest[at..]),
            None => format!("{MASKED}{}", &rest[at..]),
        },
    }
}

/// `user:password@host`; not the digest of an image.
fn login(found: &Captures<'_>) -> String {
    if found[3].starts_with("sha256") || found[3].starts_with("sha512") || &found[2] == MASKED {
        return found[0].to_owned();
    }
    format!("{}:{MASKED}@{}", &found[1], &found[3])
}

/// `user/password@host`; not the digest of an image.
fn oracle(found: &Captures<'_>) -> String {
    let slashes = found.get(3).map_or("", |slashes| slashes.as_str());
    if found[4].starts_with("sha256") || found[4].starts_with("sha512") {
        return found[0].to_owned();
    }
    format!("{}/{MASKED}@{slashes}{}{}", &found[1], &found[4], &found[5])
}

/// What follows the name of a scheme, unless it is a word of a sentence.
fn scheme(found: &Captures<'_>) -> String {
    let value = &found[3];
    let bearer = found[1].eq_ignore_ascii_case("bearer") && !["authentication", "authorization"].contains(&value);
    let word = !bearer && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_punctuation());
    match word && !value.contains(['=', '+', '/']) {
        true => found[0].to_owned(),
        false => format!("{}{}{MASKED}", &found[1], &found[2]),
    }
}
