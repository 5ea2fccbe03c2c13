// SPDX-License-Identifier: Apache-2.0
//! The retry policies that operations share (`REGISTRY`, `RECONCILE`, `WATCH`, …): pauses, attempts, jitter and `Retry-After`.
//!
//! The pauses are those of the crate backon. No function here waits: the caller gets the pause and waits itself, and passes the time and
//! the seed of the jitter as arguments. The pauses of repairs when another manager changes the same field are in
//! `vdo_core::plan::repair_pauses`, those after a refused login in `vdo_vsphere::vsphere::login_retry`.

use backon::{BackoffBuilder as _, ExponentialBuilder};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

/// How soon and how often something is tried again. Each pause is twice as long as the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause, unless a server asks for more.
    pub longest: Duration,
    /// How often it is tried again at most; without a number until it succeeds.
    pub times: Option<u32>,
    /// How much longer a pause becomes by chance at most, in percent.
    pub jitter: u32,
    /// The longest pause that a server may ask for.
    pub granted: Duration,
}

/// A request to a registry, for which a person or a reconcile waits: 3.5 s in all, so that a wrong address is soon reported.
pub const REGISTRY: Policy = Policy {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(2),
    times: Some(3),
    jitter: 20,
    granted: Duration::from_secs(60),
};

/// A step of a transfer that has begun: half a minute in all, which is how long a registry takes to restart. What was moved already is worth
/// the wait.
pub const TRANSFER: Policy = Policy {
    longest: Duration::from_secs(16),
    times: Some(6),
    ..REGISTRY
};

/// A poll of the source of the matrix. The interval of the poll is the longest pause if it is shorter.
pub const MATRIX: Policy = Policy {
    jitter: 10,
    granted: DAY,
    ..endless(Duration::from_secs(30), DAY)
};

/// The inspection of a vCenter: an outage costs a login every five minutes, once it has lasted that long.
pub const VCENTER: Policy = endless(Duration::from_secs(10), Duration::from_secs(300));

/// A task of a vCenter that has not ended.
pub const VCENTER_TASK: Policy = endless(Duration::from_millis(50), Duration::from_secs(2));

/// A request that the API server refuses with `Retry-After`. The pause is the server's, and short, because the Lease has to be renewed.
pub const API_SERVER: Policy = Policy {
    first: Duration::ZERO,
    longest: Duration::ZERO,
    times: Some(3),
    jitter: 0,
    granted: Duration::from_secs(5),
};

/// A watch: a third of the pauses of client-go with as much again by chance, because drift is not seen before the watch is back.
pub const WATCH: Policy = Policy {
    jitter: 100,
    ..endless(Duration::from_millis(250), Duration::from_secs(10))
};

/// The question for the version of an API server that does not answer.
pub const VERSION: Policy = endless(Duration::from_millis(500), Duration::from_secs(30));

/// A reconcile that failed and may succeed without a change of its objects. The regular interval is the longest pause if it is shorter.
pub const RECONCILE: Policy = endless(Duration::from_secs(2), Duration::from_secs(300));

/// A driver that does not get healthy is applied once more.
pub const REAPPLY: Policy = endless(Duration::from_secs(60), Duration::from_secs(30 * 60));

/// Percent by which an interval becomes longer, so that those who began together do not go on together.
pub const INTERVAL_JITTER: u32 = 10;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest time of a server that is used; what it names beyond this is cut to it.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Tries until it succeeds, by pauses of its own alone.
const fn endless(first: Duration, longest: Duration) -> Policy {
    Policy {
        first,
        longest,
        times: None,
        jitter: 0,
        granted: Duration::ZERO,
    }
}

impl Policy {
    /// The pause after so many failures in a row, without jitter; none after none.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        // More doublings than any longest pause needs.
        const ENOUGH: usize = 64;
        let pauses = ExponentialBuilder::new()
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .without_max_times();
        let before = usize::try_from(failures).unwrap_or(ENOUGH).min(ENOUGH);
        match before.checked_sub(1) {
            Some(before) => pauses.build().nth(before).unwrap_or(self.longest),
            None => Duration::ZERO,
        }
    }

    /// How long to wait after so many failures in a row, where the server asked for this; `None` where it is not tried again. A policy with an
    /// end ends early where a server asks for more than it is granted: to ask sooner would only be refused.
    #[must_use]
    pub fn next(&self, failures: u32, asked: Option<Duration>, seed: impl Hash) -> Option<Duration> {
        let ends = |times| failures > times || asked.is_some_and(|asked| asked > self.granted);
        let again = !self.times.is_some_and(ends);
        again.then(|| self.no_sooner(self.after(failures), asked, seed))
    }

    /// A pause that is no shorter than what the server asked for, as far as it is granted, with the jitter of this policy.
    #[must_use]
    pub fn no_sooner(&self, pause: Duration, asked: Option<Duration>, seed: impl Hash) -> Duration {
        jitter(pause.max(asked.unwrap_or_default().min(self.granted)), self.jitter, seed)
    }
}

/// A pause that is up to so many percent longer. The same seed gives the same pause; who has no name of their own takes a random number.
#[must_use]
pub fn jitter(pause: Duration, percent: u32, seed: impl Hash) -> Duration {
    const STEPS: u32 = 1000;
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    let part = u32::try_from(hasher.finish() % u64::from(STEPS)).unwrap_or_default();
    let step = pause.checked_div(STEPS * 100).unwrap_or_default();
    pause.saturating_add(step.saturating_mul(part.saturating_mul(percent)))
}

/// Whether an answer with this status is given to the same request only for a while: the server is busy, or broken.
#[must_use]
pub fn may_pass(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

/// How long `Retry-After` asks to wait: seconds, or a date (RFC 9110, section 10.2.3). None when the date is over or it is neither.
#[must_use]
pub fn retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    if let Some(seconds) = seconds(value) {
        return Some(seconds);
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).ok()?.min(LONGEST))
}

/// Seconds as a header has them. As RFC 9111 asks for, a number that is too large for any type is a very large one.
#[must_use]
pub fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::MAX;

    #[test]
    fn retry_pauses_double_up_to_the_longest_of_each_policy() {
        let ms = Duration::from_millis;
        let s = Duration::from_secs;
        for (name, policy, pauses, at_last) in [
            ("registry", REGISTRY, [ms(500), s(1), s(2)], s(2)),
            ("transfer", TRANSFER, [ms(500), s(1), s(2)], s(16)),
            ("matrix", MATRIX, [s(30), s(60), s(120)], DAY),
            ("vcenter", VCENTER, [s(10), s(20), s(40)], s(300)),
            ("task", VCENTER_TASK, [ms(50), ms(100), ms(200)], s(2)),
            ("api server", API_SERVER, [s(0), s(0), s(0)], s(0)),
            ("watch", WATCH, [ms(250), ms(500), s(1)], s(10)),
            ("version", VERSION, [ms(500), s(1), s(2)], s(30)),
            ("reconcile", RECONCILE, [s(2), s(4), s(8)], s(300)),
            ("reapply", REAPPLY, [s(60), s(120), s(240)], s(1800)),
        ] {
            // backon computes with numbers of 32 bits.
            let close = |found: Duration, expected: Duration| found.abs_diff(expected) < Duration::from_micros(1);
            for (failures, pause) in (1..).zip(pauses) {
                assert!(
                    close(policy.after(failures), pause),
                    "{name}: {:?} after {failures}",
                    policy.after(failures)
                );
            }
            assert_eq!(policy.after(0), Duration::ZERO, "{name}");
            assert_eq!([policy.after(40), policy.after(u32::MAX)], [at_last; 2], "{name}");
        }
    }

    #[test]
    fn retry_ends_by_number_and_where_a_server_asks_for_too_much() {
        let s = Duration::from_secs;
        for (policy, failures, asked, expected) in [
            (REGISTRY, 1, None, Some(Duration::from_millis(500))),
            (REGISTRY, 3, None, Some(s(2))),
            (REGISTRY, 4, None, None),
            (TRANSFER, 6, None, Some(s(16))),
            (TRANSFER, 7, None, None),
            (TRANSFER, 7, Some(s(1)), None),
            // Never sooner than the server asks for, nor than our own pause.
            (REGISTRY, 1, Some(s(30)), Some(s(30))),
            (REGISTRY, 3, Some(s(1)), Some(s(2))),
            (REGISTRY, 1, Some(s(60)), Some(s(60))),
            (REGISTRY, 1, Some(s(61)), None),
            (REGISTRY, 1, Some(NEVER), None),
            // What has no end waits as long as a server is granted.
            (MATRIX, 1, Some(NEVER), Some(DAY)),
            (VCENTER, 1000, None, Some(s(300))),
        ] {
            let sharp = Policy { jitter: 0, ..policy };
            assert_eq!(sharp.next(failures, asked, 7), expected, "{policy:?} {failures} {asked:?}");
            let (found, most) = (policy.next(failures, asked, 7), expected.map(|pause| pause.mul_f64(1.2)));
            assert!(expected <= found && found <= most, "{found:?} instead of {expected:?}");
        }
    }

    #[test]
    fn jitter_is_later_by_up_to_its_percentage_and_the_same_for_the_same_seed() {
        let hour = Duration::from_secs(3600);
        let all: Vec<Duration> = (0..1000).map(|seed| jitter(hour, 10, seed)).collect();
        let (least, most) = (all.iter().min().expect("some"), all.iter().max().expect("some"));
        assert!(*least >= hour && *least < hour.mul_f64(1.01), "{least:?}");
        assert!(*most <= hour.mul_f64(1.1) && *most > hour.mul_f64(1.09), "{most:?}");
        assert_eq!(jitter(hour, 10, "a"), jitter(hour, 10, "a"));
        assert_eq!(jitter(hour, 0, 1), hour);
        assert_eq!(jitter(Duration::MAX, 100, 1), Duration::MAX);
    }

    #[test]
    fn retry_is_for_servers_that_are_busy_or_broken() {
        let found: Vec<u16> = [200, 302, 400, 401, 404, 408, 409, 416, 429, 499, 500, 502, 503, 599, 600]
            .into_iter()
            .filter(|status| may_pass(*status))
            .collect();
        assert_eq!(found, [429, 500, 502, 503, 599]);
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
