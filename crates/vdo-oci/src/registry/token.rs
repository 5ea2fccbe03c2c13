// SPDX-License-Identifier: Apache-2.0
//! Parses the answer of a token service, and computes how long the token is used (pure).

use serde::Deserialize;
use std::time::Duration;
use vdo_api::types::{Secret, from_json};

/// How long a token is good for where its service does not name it, by the specification of Docker.
const SHORT: Duration = Duration::from_secs(60);
/// No token is used for longer, whatever its service names: another one is asked for then.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// What a request takes.
const MARGIN: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
    /// Seconds. Services write any number here.
    #[serde(default)]
    expires_in: Option<f64>,
}

/// A token, and for how long it is sent; `None` when there is none in the answer. The answer is not repeated.
pub(super) fn read(answer: &Secret) -> Option<(Secret, Duration)> {
    let answer: Answer = from_json(answer.expose()).ok()?;
    let value = if answer.token.is_empty() {
        answer.access_token
    } else {
        answer.token
    };
    let good_for = answer
        .expires_in
        .map_or(SHORT, |seconds| Duration::from_secs_f64(seconds.clamp(0.0, LONGEST.as_secs_f64())));
    (!value.is_empty()).then(|| (Secret::new(value), good_for.saturating_sub(MARGIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_good_for_what_its_service_names_within_a_day() {
        let day = LONGEST - MARGIN;
        for (seconds, expected) in [
            ("300", Duration::from_secs(290)),
            ("300.0", Duration::from_secs(290)),
            ("null", SHORT - MARGIN),
            ("0", Duration::ZERO),
            ("5", Duration::ZERO),
            ("-1", Duration::ZERO),
            ("-9223372036854775808", Duration::ZERO),
            ("86400", day),
            ("9223372036854775807", day),
            ("18446744073709551615", day),
            ("18446744073709551616", day),
            ("1e300", day),
        ] {
            let answer = Secret::new(format!(r#"{{"token": "t", "expires_in": {seconds}}}"#));
            let (token, good_for) = read(&answer).expect(seconds);
            assert_eq!((token.expose(), good_for), ("t", expected), "{seconds}");
        }
        for answer in [
            "",
            "{}",
            "[]",
            r#"{"token": ""}"#,
            r#"{"token": 1}"#,
            r#"{"token": "t", "expires_in": 1e999}"#,
        ] {
            assert!(read(&Secret::new(answer)).is_none(), "{answer}");
        }
        assert!(read(&Secret::new(r#"{"access_token": "t"}"#)).is_some_and(|(token, _)| token.expose() == "t"));
    }
}
