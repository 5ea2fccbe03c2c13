// SPDX-License-Identifier: Apache-2.0
//! Shortens the message of an API server's Status: omits repeated objects and the content of web pages.

use kube::core::Status;

/// From this length on, a value that the API server repeats in its message is left out.
const LONGEST_VALUE: usize = 120;

/// Whether an answer with an error is a web page: a proxy or a login page answers in the place of the API server, which answers with JSON and, where
/// it is overloaded, with plain text.
#[must_use]
pub fn is_page(status: &Status) -> bool {
    // What kube writes where the answer is not JSON.
    status.reason == "Failed to parse error data" && status.message.trim_start().starts_with('<')
}

/// What is said of an answer that another server gave.
pub const NO_API_SERVER: &str = "does not come from an API server";

/// What a status says. Nothing of a web page is shown.
#[must_use]
pub fn said(status: &Status) -> String {
    match is_page(status) {
        true => format!("the answer with HTTP status {} {NO_API_SERVER}", status.code),
        false => without_values(&status.message),
    }
}

/// A message of the API server without the whole object, which it repeats as the invalid value.
fn without_values(message: &str) -> String {
    const BEFORE: &str = "Invalid value: \"";
    let mut out = String::new();
    let mut rest = message;
    while let Some(at) = rest.find(BEFORE) {
        let (before, value) = rest.split_at(at + BEFORE.len());
        let mut escaped = false;
        let end = value.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        match end {
            Some(end) if end > LONGEST_VALUE => {
                out.push_str(before.trim_end_matches('"').trim_end_matches("Invalid value: "));
                rest = value[end + 1..].trim_start_matches([':', ' ']);
            }
            _ => {
                out.push_str(before);
                rest = value;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_of_another_server_is_not_shown() {
        for (message, reason, expected) in [
            (
                "\n<html>Log in</html>",
                "Failed to parse error data",
                "the answer with HTTP status 502 does not come from an API server",
            ),
            (
                "Too many requests, please try again later.",
                "Failed to parse error data",
                "Too many requests, please try again later.",
            ),
            ("<none> is wrong", "Invalid", "<none> is wrong"),
        ] {
            assert_eq!(said(&Status::failure(message, reason).with_code(502)), expected);
        }
    }

    #[test]
    fn error_of_the_api_server_does_not_repeat_the_object() {
        let object = format!("{{\\\"apiVersion\\\":\\\"{}\\\"}}", "x".repeat(5000));
        let message = format!("\"\" is invalid: patch: Invalid value: \"{object}\": strict decoding error: unknown field \"spec.versoin\"");
        assert_eq!(
            without_values(&message),
            "\"\" is invalid: patch: strict decoding error: unknown field \"spec.versoin\""
        );
        for message in [
            "spec.a: Invalid value: \"x\": it is not y",
            "Invalid value: \"cut off",
            "no value at all",
        ] {
            assert_eq!(without_values(message), message);
        }
    }
}
