//! What a look at a source found (pure).

use std::time::Duration;

/// The bytes of an index and of the signature beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The index.
    pub index: Vec<u8>,
    /// Its signature, if there is one.
    pub signature: Option<Vec<u8>>,
}

/// What a source has now, and what it says of the next look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The bytes.
    pub signed: std::sync::Arc<Signed>,
    /// By which a web server knows them again.
    pub validators: Validators,
    /// How long the server says that nothing changes.
    pub good_for: Option<Duration>,
}

impl Look {
    /// At a source that is read at every look.
    #[must_use]
    pub fn at(signed: Signed) -> Self {
        Self {
            signed: signed.into(),
            validators: Validators::default(),
            good_for: None,
        }
    }
}

/// `ETag` and `Last-Modified` as they were sent. A server that knows them again saves the transfer; they prove nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub modified: Option<String>,
}

/// How long an answer is good for by its `Cache-Control` (RFC 9111, section 5.2.2).
pub(super) fn good_for(cache_control: &str) -> Option<Duration> {
    let directives = || cache_control.split(',').map(|directive| directive.trim().to_ascii_lowercase());
    if directives().any(|directive| directive == "no-cache" || directive == "no-store") {
        return None;
    }
    let age = directives().find_map(|directive| {
        directive
            .strip_prefix("max-age=")
            .and_then(|age| age.trim_matches('"').parse().ok())
    })?;
    Some(Duration::from_secs(age))
}

/// How long `Retry-After` asks to wait: seconds, or a date (RFC 9110, section 10.2.3).
pub(super) fn retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
    Duration::try_from(date.duration_since(now)).ok()
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
            ("later", None),
        ] {
            assert_eq!(retry_after(text, now), expected.map(Duration::from_secs), "{text}");
        }
    }
}
