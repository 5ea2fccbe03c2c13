// SPDX-License-Identifier: Apache-2.0
//! Rewrites the errors of network libraries (hyper, rustls, the system) as texts for people.

/// What the layers of a connection say of themselves; the cause is below them.
const LAYERS: [&str; 8] = [
    "client error (Connect)",
    "client error (SendRequest)",
    "connection error",
    "dns error",
    "error resolving DNS",
    "error sending request",
    "error trying to connect",
    "tcp connect error",
];

/// What rustls says of a server that ended the connection before its answer was complete; the address of a page of its documentation follows.
const CUT_OFF: &str = "peer closed connection without sending TLS close_notify";

/// What rustls says before the cause.
const CERTIFICATE: &str = "invalid peer certificate: ";

/// The text of one error of a chain, in words for people: without numbers of the system and names of Rust. Empty where only the layer is named
/// that the cause went through.
#[must_use]
pub fn in_words(text: &str) -> String {
    let text = without_number(text);
    if LAYERS.contains(&text.as_str()) {
        return String::new();
    }
    if text.starts_with("failed to lookup address information") {
        return "the name does not resolve".to_owned();
    }
    if text.starts_with(CUT_OFF) {
        return "the connection ended before the answer was complete".to_owned();
    }
    match text.split_once(CERTIFICATE) {
        Some((before, cause)) => format!("{before}{}", certificate(cause)),
        None => text,
    }
}

/// Whether a text of rustls says that a certificate was not accepted.
#[must_use]
pub fn is_of_certificate(text: &str) -> bool {
    text.starts_with(CERTIFICATE)
}

/// Without `(os error 2)`, which the words before it say already.
#[must_use]
pub fn without_number(text: &str) -> String {
    const NUMBER: &str = " (os error ";
    let mut parts = text.split(NUMBER);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| match part.split_once(')') {
        Some((number, rest)) if number.bytes().all(|sign| sign.is_ascii_digit()) => out + rest,
        _ => out + NUMBER + part,
    })
}

fn certificate(cause: &str) -> String {
    // `Other(OtherError(CaUsedAsEndEntity))`
    let inner = cause.rsplit('(').next().unwrap_or_default().trim_end_matches(')');
    match inner {
        "UnknownIssuer" => "its certificate is not signed by a trusted authority".to_owned(),
        "CaUsedAsEndEntity" => "its certificate is the certificate of an authority, not of a server".to_owned(),
        "Expired" => "its certificate has expired".to_owned(),
        "NotValidYet" => "its certificate is not valid yet".to_owned(),
        "NotValidForName" => "its certificate is for another name".to_owned(),
        // A sentence, as those with a context are.
        _ if cause.contains(' ') => format!("its {}", cause.split(';').next().unwrap_or_default()),
        name => format!("its certificate is not accepted: {}", spaced(name)),
    }
}

/// `BadSignature` is `bad signature`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for sign in name.chars() {
        if sign.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(sign.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_library_is_said_in_words() {
        for (text, expected) in [
            ("Connection refused (os error 111)", "Connection refused"),
            ("a (os error 2) and b (os error 13)", "a and b"),
            ("a (os error x)", "a (os error x)"),
            ("client error (Connect)", ""),
            ("tcp connect error", ""),
            (
                "failed to lookup address information: Name or service not known",
                "the name does not resolve",
            ),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "its certificate is the certificate of an authority, not of a server",
            ),
            (
                "invalid peer certificate: UnknownIssuer",
                "its certificate is not signed by a trusted authority",
            ),
            (
                "invalid peer certificate: certificate not valid for name \"a\"; certificate is only valid for DnsName(\"b\")",
                "its certificate not valid for name \"a\"",
            ),
            (
                "invalid peer certificate: BadSignature",
                "its certificate is not accepted: bad signature",
            ),
            (
                "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest/rustls/manual",
                "the connection ended before the answer was complete",
            ),
            ("what it says itself", "what it says itself"),
        ] {
            assert_eq!(in_words(text), expected);
        }
    }
}
