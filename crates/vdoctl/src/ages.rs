// SPDX-License-Identifier: Apache-2.0
//! Formats times for all screens: ages (`5m`, `3h`), timestamps, and messages in which times become "5m ago" or "in 14m".

use k8s_openapi::jiff::Timestamp;

/// How long ago: `12s`, `5m`, `3h`, `9d`.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - then.as_second()).max(0);
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// A time to the second: `2026-11-25T07:52:58Z`.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A text with its times counted from now: `since TIME` becomes `for 5m`, and `at TIME` becomes `in 14m` or `5m ago`.
pub fn counted_from(text: &str, now: Timestamp) -> String {
    let mut shown = String::new();
    let mut rest = text;
    let begin = |rest: &str| {
        [" since ", " at "]
            .into_iter()
            .filter_map(|word| Some((rest.find(word)?, word)))
            .min()
    };
    while let Some((at, word)) = begin(rest) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let end = after.find('Z').map_or(0, |last| last + 1);
        shown.push_str(before);
        match after[..end].parse::<Timestamp>() {
            Ok(time) => {
                shown.push_str(&match (word, time > now) {
                    (" at ", true) => format!(" in {}", ago(now, time)),
                    (" at ", false) => format!(" {} ago", ago(time, now)),
                    _ => format!(" for {}", ago(time, now)),
                });
                rest = &after[end..];
            }
            Err(_) => {
                shown.push_str(word);
                rest = after;
            }
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_no_fraction_of_a_second() {
        let at: Timestamp = "2026-11-25T07:52:58.43357148Z".parse().expect("a time");
        assert_eq!(time(at), "2026-11-25T07:52:58Z");
    }

    #[test]
    fn times_in_a_text_are_counted_from_now() {
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        for (text, expected) in [
            ("the next attempt is at 2026-01-01T01:14:00Z.", "the next attempt is in 14m."),
            ("it was tried at 2026-01-01T00:55:00Z", "it was tried 5m ago"),
            (
                "Pod n/p has been terminating since 2026-01-01T00:30:00Z: its pods must terminate first",
                "Pod n/p has been terminating for 30m: its pods must terminate first",
            ),
            (
                "the login at vc was refused since Zoe came",
                "the login at vc was refused since Zoe came",
            ),
            (
                "since long at vc at 2026-01-01T00:55:00Z and at 2026-01-01T00:50:00Z",
                "since long at vc 5m ago and 10m ago",
            ),
        ] {
            assert_eq!(counted_from(text, now), expected);
        }
    }
}
