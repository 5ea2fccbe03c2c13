// SPDX-License-Identifier: Apache-2.0
//! Decides when `status.lastConfirmed` of a VDOConfig is renewed, by which readers see that the operator has not stopped.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use vdo_api::api::VDOConfigStatus;

/// How often a status that does not change is confirmed by a write: as often as all objects are compared anyway.
pub const CONFIRMATION: SignedDuration = SignedDuration::from_mins(10);

/// The time of confirmation that the next status has: now if it says anything new or the last confirmation is old, else that one.
pub(super) fn last_confirmed(old: &VDOConfigStatus, next: &VDOConfigStatus, now: &Time) -> Option<Time> {
    let same = VDOConfigStatus {
        last_confirmed: old.last_confirmed.clone(),
        ..next.clone()
    };
    let kept = old
        .last_confirmed
        .clone()
        .filter(|at| same == *old && !until_confirmation(at.0, now.0).is_zero());
    kept.or_else(|| Some(now.clone()))
}

/// How long until a status that was confirmed then is confirmed again. A time that is still to come is that of a clock which was wrong.
#[must_use]
pub fn until_confirmation(confirmed: Timestamp, now: Timestamp) -> Duration {
    let age = now.duration_since(confirmed);
    if age.is_negative() {
        return Duration::ZERO;
    }
    Duration::try_from(CONFIRMATION.saturating_sub(age)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At rest there is one write in ten minutes, however often a reconcile runs.
    #[test]
    fn status_at_rest_is_confirmed_every_ten_minutes() {
        let at = |second: i64| Time(Timestamp::from_second(second).expect("a time"));
        let status = |generation, confirmed: Option<i64>| VDOConfigStatus {
            observed_generation: Some(generation),
            last_confirmed: confirmed.map(at),
            ..VDOConfigStatus::default()
        };
        for (old, next, now, expected) in [
            (status(1, None), status(1, None), 1000, 1000),
            (status(1, Some(1000)), status(1, None), 1001, 1000),
            (status(1, Some(1000)), status(1, None), 1599, 1000),
            (status(1, Some(1000)), status(1, None), 1600, 1600),
            (status(1, Some(1000)), status(2, None), 1001, 1001),
            // The clock was set back.
            (status(1, Some(9000)), status(1, None), 1001, 1001),
        ] {
            assert_eq!(last_confirmed(&old, &next, &at(now)), Some(at(expected)), "{old:?} at {now}");
        }
        assert_eq!(until_confirmation(at(1000).0, at(1200).0), Duration::from_secs(400));
    }
}
