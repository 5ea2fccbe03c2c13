// SPDX-License-Identifier: Apache-2.0
//! What the API server says, for people.

/// From this length on, a value that the API server repeats in its message is left out.
const LONGEST_VALUE: usize = 120;

/// A message of the API server without the whole object, which it repeats as the invalid value.
#[must_use]
pub fn without_values(message: &str) -> String {
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
