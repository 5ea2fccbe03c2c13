//! What headers say.

use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};
use std::time::Duration;

/// The longest time of a server that is used; what it names beyond this is cut to it.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Seconds as a header has them. As RFC 9111 asks for, a number that is too large for any type is a very large one.
fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)).min(LONGEST))
}

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

/// How long `Retry-After` asks to wait: seconds, or a date (RFC 9110, section 10.2.3).
#[must_use]
pub fn retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    if let Some(seconds) = seconds(value) {
        return Some(seconds);
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).ok()?.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_control_max_age_counts_unless_a_cache_must_ask() {
        for (text, expected) in [
            ("max-age=600", Some(600)),
            ("public, Max-Age=\"60\", must-revalidate", Some(60)),
            ("max-age=600, no-cache", None),
            ("no-store", None),
            ("max-age=soon", None),
            ("max-age=-1", None),
            ("max-age=18446744073709551615", Some(LONGEST.as_secs())),
            ("max-age=99999999999999999999999999", Some(LONGEST.as_secs())),
            ("", None),
        ] {
            assert_eq!(good_for(text), expected.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_that_is_not_past() {
        let now = "2026-11-20T10:00:00Z".parse().expect("a time");
        for (text, expected) in [
            ("120", Some(120)),
            ("Fri, 20 Nov 2026 10:01:00 GMT", Some(60)),
            ("Fri, 20 Nov 2026 09:59:00 GMT", None),
            ("-5", None),
            ("18446744073709551615", Some(LONGEST.as_secs())),
            ("99999999999999999999999999", Some(LONGEST.as_secs())),
            ("Wed, 01 Dec 9999 00:00:00 GMT", Some(LONGEST.as_secs())),
            ("Fri, 31 Dec 9999 23:59:59 GMT", None),
            ("later", None),
        ] {
            assert_eq!(retry_after(text, now), expected.map(Duration::from_secs), "{text}");
        }
    }
}
