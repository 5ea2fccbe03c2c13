// SPDX-License-Identifier: Apache-2.0
//! Computes when a VDOConfig is reconciled again: interval, backoff after a failure, pause after a refusal by the API server.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use vdo_api::api::{Class, ConditionType, Reason, VDOConfigStatus};
use vdo_api::retry::{INTERVAL_JITTER, RECONCILE, jitter};
use vdo_core::status::{Precondition, Report};

/// When a VDOConfig is reconciled again, if nothing wakes the operator before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextRun {
    /// From now.
    pub delay: Duration,
    /// The same as a time in whole seconds, as the status promises it.
    pub at: Option<Timestamp>,
    /// How many failures in a row there are now.
    pub failures: u32,
}

/// What the pace of the next run depends on, besides what this one has found.
#[derive(Debug, Clone, Copy)]
pub struct Pacing<'a> {
    /// The failures in a row before this run.
    pub failures: u32,
    /// The regular interval.
    pub steady: Duration,
    /// The UID of the VDOConfig, by which the pauses of two differ.
    pub uid: &'a str,
}

/// Decides it after a run at `now`: a promised attempt keeps its time, and what ends earlier, such as the peace after a fight over a field, is
/// not waited beyond.
#[must_use]
pub fn next_run(report: &Report, last: &VDOConfigStatus, pacing: Pacing<'_>, now: Timestamp) -> NextRun {
    let next = Requeue::after(report);
    let due = due(last, report, now).filter(|_| next == Requeue::Backoff);
    let failures = match (next, due) {
        (Requeue::Backoff, Some(_)) => pacing.failures.max(1),
        (Requeue::Backoff, None) => pacing.failures.saturating_add(1),
        _ => 0,
    };
    let until = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
    let longest = longest_pause(report, pacing.steady);
    let pause = due.map_or_else(|| jitter(next.delay(failures, longest), INTERVAL_JITTER, (pacing.uid, now)), until);
    let peace = report.contentions.iter().map(|contention| contention.until);
    let delay = peace.chain(report.look_again).map(until).fold(pause, Duration::min);
    let at = || {
        let at = now.checked_add(SignedDuration::try_from(delay).ok()?).ok()?;
        Timestamp::from_second(at.as_second()).ok()
    };
    NextRun {
        delay,
        at: due.or_else(at),
        failures,
    }
}

/// When to look again, if nothing wakes us before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requeue {
    /// After the regular interval.
    Steady,
    /// Soon, because something is under way that a watch may not show.
    Soon,
    /// After a delay that grows with each failure in a row.
    Backoff,
}

impl Requeue {
    /// From what a reconcile had to say.
    fn after(report: &Report) -> Self {
        match report.failures.first().map(|t| t.class) {
            Some(Class::Retry) => Self::Backoff,
            Some(Class::Wait | Class::Terminal) => Self::Steady,
            None if report.waiting.is_empty() && (!report.deleting || report.removed) && !unseen(report) => Self::Steady,
            None => Self::Soon,
        }
    }

    /// The delay after so many failures in a row; no longer than the regular interval.
    fn delay(self, failures: u32, steady: Duration) -> Duration {
        match self {
            Self::Steady => steady,
            Self::Soon => Duration::from_secs(20).min(steady),
            Self::Backoff => RECONCILE.after(failures).min(steady),
        }
    }
}

/// The longest pause before what failed is tried again, where the regular interval is `steady`. What the cluster refuses is accepted as soon as a
/// person has changed a policy, a quota or an object of others, and no watch shows that.
fn longest_pause(report: &Report, steady: Duration) -> Duration {
    const REFUSED: Duration = Duration::from_secs(60);
    match report.failures.first().map(|failure| failure.reason) {
        Some(Reason::AdmissionDenied | Reason::Conflict | Reason::NotOurs | Reason::ImmutableField) => steady.min(REFUSED),
        _ => steady,
    }
}

/// Whether there is something that goes on without a look which was refused or failed. A watch that is let in again says nothing.
fn unseen(report: &Report) -> bool {
    let informs = [ConditionType::SnapshotsSupported, ConditionType::VolumesHealthy];
    let missed = |found: &Precondition| informs.contains(&found.kind) && found.reason == Reason::NotChecked;
    report.preconditions.iter().any(missed)
}

/// When the attempt is due that the last status promised after this very failure, if that is still to come. An earlier wake-up is
/// no reason to promise another time: the status would be new in every run, and writing it wakes us again.
fn due(last: &VDOConfigStatus, report: &Report, now: Timestamp) -> Option<Timestamp> {
    let failure = report.failures.first()?;
    let promised = last.next_attempt.as_ref()?;
    (promised.because == failure.reason.as_str() && promised.at.0 > now).then_some(promised.at.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use vdo_api::api::NextAttempt;
    use vdo_core::status::Failure;

    #[test]
    fn what_is_refused_is_tried_again_within_a_minute() {
        let steady = Duration::from_secs(300);
        for (reason, longest) in [(Reason::AdmissionDenied, 60), (Reason::NotOurs, 60), (Reason::ApiUnavailable, 300)] {
            let failure = Failure::new(reason, Class::Retry, "");
            let report = Report {
                failures: vec![failure],
                ..Report::default()
            };
            assert_eq!(longest_pause(&report, steady).as_secs(), longest, "{reason}");
        }
        assert_eq!(longest_pause(&Report::default(), steady), steady);
    }

    #[test]
    fn next_run_comes_no_later_than_anything_that_ends() {
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let failing = Failure::new(Reason::ApiUnavailable, Class::Retry, "");
        let promised = VDOConfigStatus {
            next_attempt: Some(NextAttempt {
                at: Time(at(1007)),
                because: Reason::ApiUnavailable.to_string(),
            }),
            ..VDOConfigStatus::default()
        };
        let run = |report: &Report, last: &VDOConfigStatus| {
            let pacing = Pacing {
                failures: 3,
                steady: Duration::from_secs(300),
                uid: "u",
            };
            next_run(report, last, pacing, at(1000))
        };
        let last = VDOConfigStatus::default();
        let well = run(&Report::default(), &last);
        assert!(well.delay.as_secs() >= 240 && well.failures == 0, "{well:?}");
        let soon = Report {
            look_again: Some(at(1005)),
            ..Report::default()
        };
        assert_eq!(run(&soon, &last).delay.as_secs(), 5);
        let failed = Report {
            failures: vec![failing],
            ..Report::default()
        };
        assert_eq!(run(&failed, &last).failures, 4);
        let kept = run(&failed, &promised);
        assert_eq!((kept.delay.as_secs(), kept.at, kept.failures), (7, Some(at(1007)), 3));
    }

    #[test]
    fn next_reconcile_after_unknown_precondition_is_soon() {
        let kind = ConditionType::SnapshotsSupported;
        for (found, next) in [
            (Precondition::unknown(kind, Reason::NotChecked, "a right is missing"), Requeue::Soon),
            (Precondition::unknown(kind, Reason::NotRequested, "no one asks"), Requeue::Steady),
            (
                Precondition::fails(kind, Reason::SnapshotDefinitionsMissing, "not served"),
                Requeue::Steady,
            ),
            (Precondition::holds(kind, "all there"), Requeue::Steady),
        ] {
            let report = Report {
                preconditions: vec![found],
                ..Report::default()
            };
            assert_eq!(Requeue::after(&report), next, "{:?}", report.preconditions);
        }
    }

    #[test]
    fn next_attempt_announced_keeps_its_time_when_woken_early() {
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let status = |promised: Option<(i64, Reason)>| VDOConfigStatus {
            next_attempt: promised.map(|(second, because)| NextAttempt {
                at: Time(at(second)),
                because: because.to_string(),
            }),
            ..VDOConfigStatus::default()
        };
        let report = |reason: Option<Reason>| Report {
            failures: reason.map(|reason| Failure::new(reason, Class::Retry, "")).into_iter().collect(),
            ..Report::default()
        };
        let (forbidden, unavailable) = (Reason::Forbidden, Reason::ApiUnavailable);
        for (promised, reason, now, expected) in [
            (None, Some(forbidden), 10, None),
            (Some((12, forbidden)), Some(forbidden), 10, Some(12)),
            // It is this one.
            (Some((12, forbidden)), Some(forbidden), 12, None),
            (Some((12, forbidden)), Some(forbidden), 13, None),
            // Something else has gone wrong, or nothing.
            (Some((12, forbidden)), Some(unavailable), 10, None),
            (Some((12, forbidden)), None, 10, None),
        ] {
            let found = due(&status(promised), &report(reason), at(now));
            assert_eq!(found, expected.map(at), "{promised:?} {reason:?} at {now}");
        }
    }
}
