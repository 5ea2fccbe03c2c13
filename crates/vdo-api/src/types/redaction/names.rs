// SPDX-License-Identifier: Apache-2.0
//! The names whose values are secrets (`password`, `token`, `db_pass`), and the similar names whose values are not (`secretName`).

/// Parts of names, without punctuation and in lower case.
const PARTS: [&str; 19] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "sessionid",
    "sessionkey",
    "soapsession",
    "connectionstring",
    "connstr",
    "cookie",
    "webhookurl",
];

/// Ends of names.
const ENDS: [&str; 9] = ["key", "auth", "dsn", "salt", "hmac", "pin", "otp", "seed", "jwt"];

/// Whole names.
const WHOLE: [&str; 6] = ["pass", "auth", "pin", "otp", "sig", "pw"];

/// Names that end so are of things that only have to do with a secret: where it is, how long it lives.
const ABOUT: [&str; 26] = [
    "name",
    "namespace",
    "ref",
    "refs",
    "file",
    "path",
    "dir",
    "folder",
    "checksum",
    "count",
    "seconds",
    "expiration",
    "requests",
    "type",
    "digest",
    "version",
    "verified",
    "policy",
    "bytes",
    "total",
    "reason",
    "accepted",
    "refused",
    "found",
    "valid",
    "secrets",
];

/// Names that end with `key` and hold no secret.
const PUBLIC: [&str; 9] = [
    "publickey",
    "labelkey",
    "topologykey",
    "matrixkey",
    "matrixkeys",
    "topologykeys",
    "monkey",
    "foreignkey",
    "hotkey",
];

/// Whether a value of this name is a secret. The name of a thing that only has to do with one, such as `secretName` or `passwordFile`,
/// is not.
#[must_use]
pub fn is_sensitive(name: &str) -> bool {
    let bare: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    if ABOUT.iter().any(|end| bare.ends_with(end)) || PUBLIC.contains(&bare.as_str()) {
        return false;
    }
    let one = bare.strip_suffix('s').unwrap_or(&bare);
    let ends = |end: &&str| one.ends_with(*end) && one.len() > end.len() + 1 && !matches!(*end, "pin" | "otp" | "seed" | "jwt" | "auth");
    PARTS.iter().any(|part| bare.contains(part))
        || WHOLE.contains(&bare.as_str())
        || ENDS.iter().any(ends)
        || words(name)
            .last()
            .is_some_and(|last| ENDS.contains(&last.as_str()) && last != "key" || last == "pass")
}

/// The words of a name, in lower case: `db_pass`, `db-pass` and `dbPass` have two.
fn words(name: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut begins = true;
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            begins = true;
            continue;
        }
        if begins || (c.is_ascii_uppercase() && was_lower) {
            all.push(String::new());
        }
        begins = false;
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if let Some(word) = all.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    all
}
