// SPDX-License-Identifier: Apache-2.0
//! Parses the response headers `Retry-After` and `Cache-Control`.

use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};
use std::time::Duration;
use vdo_api::retry::{retry_after, seconds};

/// A header as text.
#[must_use]
pub fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// How long a server asks to be left alone.
#[must_use]
pub fn wait(headers: &HeaderMap) -> Option<Duration> {
    retry_after(&header(headers, &RETRY_AFTER)?, now())
}

#[expect(clippy::disallowed_methods, reason = "the clock enters here, for a date in Retry-After")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// How long an answer is good for by its `Cache-Control` (RFC 9111, section 5.2.2).
#[must_use]
pub fn good_for(cache_control: &str) -> Option<Duration> {
    let directives = || cache_control.split(',').map(|directive| directive.trim().to_ascii_lowercase());
    if directives().any(|directive| directive == "no-cache" || directive == "no-store") {
        return None;
    }
    directives().find_map(|directive| seconds(directive.strip_prefix("max-age=")?.trim_matches('"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every time of a server is cut to.
    const YEAR: u64 = 366 * 24 * 60 * 60;

    #[test]
    fn cache_control_max_age_counts_unless_a_cache_must_ask() {
        for (text, expected) in [
            ("max-age=600", Some(600)),
            ("public, Max-Age=\"60\", must-revalidate", Some(60)),
            ("max-age=600, no-cache", None),
            ("no-store", None),
            ("max-age=soon", None),
            ("max-age=-1", None),
            ("max-age=18446744073709551615", Some(YEAR)),
            ("max-age=99999999999999999999999999", Some(YEAR)),
            ("", None),
        ] {
            assert_eq!(good_for(text), expected.map(Duration::from_secs), "{text}");
        }
    }
}
