// SPDX-License-Identifier: Apache-2.0
//! Decides how long the write of a status is delayed if the status shows only more progress than the last one.

use std::time::Duration;
use vdo_api::api::{ConditionType, Conditions, Health, Reason, VDOConfigStatus};

/// Statuses that only tell how far a work has come are written no more often than this.
const PACE: Duration = Duration::from_secs(2);

/// The same while drivers are removed: driver after driver and object after object disappears from the status, which is what a removal
/// is, and soon no one can read it any more.
const PACE_OF_REMOVAL: Duration = Duration::from_secs(10);

/// How long after the last status the next one may be held back: a while, if they differ in nothing but how far a work under way has
/// come, so that a reader gains nothing from many; not at all otherwise. The first status of a removal, and each in
/// which it has stopped, is written at once.
#[must_use]
pub fn pace(old: &VDOConfigStatus, new: &VDOConfigStatus) -> Duration {
    let (Some(was), Some(is)) = (work(old), work(new)) else {
        return Duration::ZERO;
    };
    if was != is {
        return Duration::ZERO;
    }
    if is.removal { PACE_OF_REMOVAL } else { PACE }
}

/// What of a work is news when it changes.
#[derive(PartialEq)]
struct Work<'a> {
    generation: Option<i64>,
    /// What a person waits for.
    handled: Option<&'a str>,
    health: Option<Health>,
    /// Whether the drivers go.
    removal: bool,
    /// The drivers that come, with their versions.
    drivers: Vec<(&'a str, &'a str)>,
}

/// The work that is under way, if it is, and nothing is in its way.
fn work(status: &VDOConfigStatus) -> Option<Work<'_>> {
    let ready = Conditions::find(&status.conditions, ConditionType::Ready)?;
    let removal = ready.reason == Reason::Deleting.as_str();
    let drivers = status.drivers.iter().filter(|_| !removal);
    (ready.status == "False" && Reason::PROGRESS.iter().any(|r| r.as_str() == ready.reason)).then(|| Work {
        generation: status.observed_generation,
        handled: status.last_handled_reconcile_at.as_deref(),
        health: status.health,
        removal,
        drivers: drivers.map(|d| (d.name.as_str(), d.version.as_str())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use k8s_openapi::jiff::Timestamp;
    use vdo_api::api::DriverStatus;

    fn status(ready: &str, reason: Reason, message: &str, generation: i64, health: Health, drivers: &[(&str, i64)]) -> VDOConfigStatus {
        let driver = |(name, objects): &(&str, i64)| DriverStatus {
            name: (*name).into(),
            version: "1.0.0".into(),
            objects: *objects,
            ..DriverStatus::default()
        };
        VDOConfigStatus {
            observed_generation: Some(generation),
            health: Some(health),
            conditions: vec![Condition {
                type_: "Ready".into(),
                status: ready.into(),
                reason: reason.to_string(),
                message: message.into(),
                last_transition_time: Time(Timestamp::UNIX_EPOCH),
                observed_generation: Some(generation),
            }],
            drivers: drivers.iter().map(driver).collect(),
            ..VDOConfigStatus::default()
        }
    }

    #[test]
    fn status_write_pace_important_change_is_immediate() {
        use Health::{Blocked, Degraded, Healthy, Progressing};
        use Reason::{Deleting, DeletionBlocked, Forbidden, Removed, VolumesInUse, WaitingForNodes, WaitingForPods};
        let at_once = Duration::ZERO;
        let both: &[(&str, i64)] = &[("cpi", 7), ("csi", 19)];
        let coming = |reason, message: &str, drivers| status("False", reason, message, 1, Progressing, drivers);
        let going = |message: &str, drivers| status("False", Deleting, message, 2, Progressing, drivers);
        let stopped = |reason| status("False", reason, "why", 2, Blocked, both);
        for (what, old, new, expected) in [
            (
                "an installation moves on",
                coming(WaitingForNodes, "1 of 4", both),
                coming(WaitingForNodes, "2 of 4", both),
                PACE,
            ),
            (
                "it waits for something else",
                coming(WaitingForNodes, "4 of 4", both),
                coming(WaitingForPods, "1 of 2", both),
                PACE,
            ),
            (
                "a driver is chosen",
                coming(WaitingForPods, "1 of 2", &both[..1]),
                coming(WaitingForPods, "1 of 2", both),
                at_once,
            ),
            (
                "all is well",
                coming(WaitingForPods, "1 of 2", both),
                status("True", Reason::Healthy, "", 1, Healthy, both),
                at_once,
            ),
            (
                "it degrades",
                coming(WaitingForPods, "1 of 2", both),
                status("False", WaitingForPods, "", 1, Degraded, both),
                at_once,
            ),
            ("it begins", VDOConfigStatus::default(), coming(WaitingForPods, "", both), at_once),
            (
                "a removal begins",
                status("True", Reason::Healthy, "", 1, Healthy, both),
                going("the first goes", both),
                at_once,
            ),
            (
                "one begins during an installation",
                coming(WaitingForPods, "", both),
                going("the first goes", both),
                at_once,
            ),
            (
                "of the same generation",
                coming(WaitingForPods, "", both),
                status("False", Deleting, "", 1, Progressing, both),
                at_once,
            ),
            (
                "an object goes",
                going("a goes", both),
                going("b goes", &[("cpi", 7), ("csi", 18)]),
                PACE_OF_REMOVAL,
            ),
            (
                "a driver is gone",
                going("a goes", both),
                going("b goes", &both[..1]),
                PACE_OF_REMOVAL,
            ),
            (
                "the last one is gone",
                going("b goes", &both[..1]),
                going("the namespace goes", &[]),
                PACE_OF_REMOVAL,
            ),
            ("volumes keep it", going("a goes", both), stopped(VolumesInUse), at_once),
            ("someone holds an object", going("a goes", both), stopped(DeletionBlocked), at_once),
            ("a right is missing", going("a goes", both), stopped(Forbidden), at_once),
            (
                "nothing moves on",
                going("a goes", both),
                status("False", Deleting, "a goes", 2, Blocked, both),
                at_once,
            ),
            ("a volume less keeps it", stopped(VolumesInUse), stopped(VolumesInUse), at_once),
            ("it goes on", stopped(VolumesInUse), going("a goes", both), at_once),
            (
                "all are removed",
                going("the namespace goes", &[]),
                status("True", Removed, "", 2, Healthy, &[]),
                at_once,
            ),
            (
                "another generation",
                going("a goes", both),
                status("False", Deleting, "a goes", 3, Progressing, both),
                at_once,
            ),
        ] {
            assert_eq!(pace(&old, &new), expected, "{what}");
        }
    }
}
