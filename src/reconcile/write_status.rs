//! report: the one effect at the end of every path.

use super::id;
use crate::cluster::{ClusterError, Writer};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use std::time::Duration;
use vdo_api::api::VDOConfig;
use vdo_api::api::{API_VERSION, Class, ConditionType, Reason, VDOConfigStatus};
use vdo_api::retry::RECONCILE;
use vdo_core::manifest::merge_patch;
use vdo_core::status::{Precondition, Report, pace};

/// When to look again, if nothing wakes us before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// After the regular interval.
    Steady,
    /// Soon, because something is under way that a watch may not show.
    Soon,
    /// After a delay that grows with each failure in a row.
    Backoff,
}

impl Requeue {
    /// From what a reconcile had to say.
    #[must_use]
    pub fn after(report: &Report) -> Self {
        match report.failures.first().map(|t| t.class) {
            Some(Class::Retry) => Self::Backoff,
            Some(Class::Wait | Class::Terminal) => Self::Steady,
            None if report.waiting.is_empty() && (!report.deleting || report.removed) && !unseen(report) => Self::Steady,
            None => Self::Soon,
        }
    }

    /// The delay after so many failures in a row; no longer than the regular interval.
    #[must_use]
    pub fn delay(self, failures: u32, steady: Duration) -> Duration {
        match self {
            Self::Steady => steady,
            Self::Soon => Duration::from_secs(20).min(steady),
            Self::Backoff => RECONCILE.after(failures).min(steady),
        }
    }
}

/// The longest pause before what failed is tried again, where the regular interval is `steady`. What the cluster refuses is accepted as soon as a
/// person has changed a policy, a quota or an object of others, and no watch shows that.
#[must_use]
pub fn longest_pause(report: &Report, steady: Duration) -> Duration {
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
#[must_use]
pub fn due(last: &VDOConfigStatus, report: &Report, now: Timestamp) -> Option<Timestamp> {
    let failure = report.failures.first()?;
    let promised = last.next_attempt.as_ref()?;
    (promised.because == failure.reason.as_str() && promised.at.0 > now).then_some(promised.at.0)
}

/// Writes the status if it says anything new. One that only counts on is held back for a while after the one before, which was
/// written so long `ago`.
///
/// # Errors
/// When the API server does not accept it.
pub async fn write_status(
    config: &VDOConfig,
    old: &VDOConfigStatus,
    new: &VDOConfigStatus,
    ago: Option<Duration>,
    writer: &Writer,
) -> Result<Option<vdo_core::manifest::Object>, ClusterError> {
    if old == new || ago.is_some_and(|ago| ago < pace(old, new)) {
        return Ok(None);
    }
    let json = |status: &VDOConfigStatus| serde_json::to_value(status).unwrap_or_default();
    let change = merge_patch(&json(old), &json(new));
    writer.merge(API_VERSION, &id(config), &json!({"status": change}), true).await
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
            let failure = Failure {
                reason,
                class: Class::Retry,
                message: String::new(),
            };
            let report = Report {
                failures: vec![failure],
                ..Report::default()
            };
            assert_eq!(longest_pause(&report, steady).as_secs(), longest, "{reason}");
        }
        assert_eq!(longest_pause(&Report::default(), steady), steady);
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
            failures: reason
                .map(|reason| Failure {
                    reason,
                    class: Class::Retry,
                    message: String::new(),
                })
                .into_iter()
                .collect(),
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
