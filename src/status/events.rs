use crate::api::{ConditionType, Conditions, DriverStatus, Health, Reason, VDOConfigStatus};
use crate::drivers::short;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use std::time::Duration;

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
        health: status.health,
        removal,
        drivers: drivers.map(|d| (d.name.as_str(), d.version.as_str())).collect(),
    })
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether a person should look.
    pub warning: bool,
    /// The reason, from the closed list.
    pub reason: String,
    /// What was done, in a few words: an event of another action is another event, whatever its reason.
    pub action: String,
    /// The sentence.
    pub message: String,
}

/// What the operator did where there is nothing particular to say.
const ACTION: &str = "Reconcile";

/// The events of a transition: becoming ready, ceasing to be, and running into another failure; and of each driver, that it is no longer
/// requested, or is being removed, or removed. Progress makes none.
#[must_use]
pub fn notes(old: &[Condition], new: &[Condition]) -> Vec<Note> {
    let drivers = [ConditionType::CloudProviderReady, ConditionType::StorageReady].into_iter();
    let reported = [Reason::NotRequested, Reason::Deleting, Reason::Removed].map(Reason::as_str);
    let apart = drivers.filter_map(|kind| {
        let (before, after) = (Conditions::find(old, kind)?, Conditions::find(new, kind)?);
        let news = before.reason != after.reason && reported.contains(&after.reason.as_str()) && before.status != "Unknown";
        news.then(|| Note {
            warning: after.reason != Reason::Removed.as_str(),
            reason: after.reason.clone(),
            action: ACTION.into(),
            message: after.message.clone(),
        })
    });
    ready(old, new).into_iter().chain(apart).collect()
}

/// The events of drivers that run in another version than before.
#[must_use]
pub fn version_changes(old: &VDOConfigStatus, new: &VDOConfigStatus) -> Vec<Note> {
    let changed = |driver: &DriverStatus| {
        let before = old.drivers.iter().find(|before| before.name == driver.name)?;
        let (from, to) = (before.running.as_str(), driver.running.as_str());
        (!from.is_empty() && !to.is_empty() && from != to).then(|| Note {
            warning: false,
            reason: Reason::VersionChanged.to_string(),
            action: format!("Run {} {to}", short(&driver.name)),
            message: format!("{0} {from} was replaced by {0} {to}, which is healthy", short(&driver.name)),
        })
    };
    new.drivers.iter().filter_map(changed).collect()
}

fn ready(old: &[Condition], new: &[Condition]) -> Option<Note> {
    let (before, after) = (
        Conditions::find(old, ConditionType::Ready),
        Conditions::find(new, ConditionType::Ready),
    );
    let after = after?;
    let changed = before.is_none_or(|b| b.status != after.status || b.reason != after.reason);
    let working = Conditions::is_true(new, ConditionType::Reconciling) && before.is_none_or(|b| b.status != "True");
    let waits = Reason::PROGRESS.iter().any(|r| r.as_str() == after.reason);
    (changed && !(working && waits)).then(|| Note {
        // Paused is what was asked for.
        warning: after.status != "True" && after.reason != Reason::Paused.as_str(),
        reason: after.reason.clone(),
        action: ACTION.into(),
        message: after.message.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

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

    fn condition(kind: ConditionType, status: &str, reason: Reason) -> Condition {
        Condition {
            type_: kind.to_string(),
            status: status.into(),
            reason: reason.to_string(),
            message: format!("{kind} is {status}"),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            observed_generation: None,
        }
    }

    fn said(old: &[Condition], new: &[Condition]) -> Vec<String> {
        let word = |note: &Note| {
            format!(
                "{} {}: {}",
                if note.warning { "Warning" } else { "Normal" },
                note.reason,
                note.message
            )
        };
        notes(old, new).iter().map(word).collect()
    }

    /// Becoming ready, ceasing to be, and another failure are events; how far a work has come is none.
    #[test]
    fn notes_of_ready_tell_transitions_and_no_progress() {
        use Reason::{ApplyFailed, Healthy, PodsFailing, WaitingForNodes, WaitingForPods};
        let of = |reported: Option<(&str, Reason)>| reported.map(|(status, reason)| condition(ConditionType::Ready, status, reason));
        for (old, new, reconciling, expected) in [
            (None, None, false, None),
            (None, Some(("True", Healthy)), false, Some("Normal Healthy: Ready is True")),
            (None, Some(("False", WaitingForPods)), true, None),
            (
                None,
                Some(("False", WaitingForPods)),
                false,
                Some("Warning WaitingForPods: Ready is False"),
            ),
            (
                None,
                Some(("False", ApplyFailed)),
                true,
                Some("Warning ApplyFailed: Ready is False"),
            ),
            (Some(("True", Healthy)), Some(("True", Healthy)), false, None),
            (Some(("False", ApplyFailed)), Some(("False", ApplyFailed)), false, None),
            (
                Some(("False", ApplyFailed)),
                Some(("False", PodsFailing)),
                false,
                Some("Warning PodsFailing: Ready is False"),
            ),
            (
                Some(("Unknown", ApplyFailed)),
                Some(("False", ApplyFailed)),
                false,
                Some("Warning ApplyFailed: Ready is False"),
            ),
            (Some(("False", WaitingForNodes)), Some(("False", WaitingForPods)), true, None),
            (
                Some(("True", Healthy)),
                Some(("False", WaitingForPods)),
                true,
                Some("Warning WaitingForPods: Ready is False"),
            ),
            (
                Some(("False", WaitingForPods)),
                Some(("True", Healthy)),
                false,
                Some("Normal Healthy: Ready is True"),
            ),
        ] {
            let working = condition(
                ConditionType::Reconciling,
                if reconciling { "True" } else { "False" },
                WaitingForPods,
            );
            let old_conditions: Vec<Condition> = of(old).into_iter().collect();
            let new_conditions: Vec<Condition> = of(new).into_iter().chain([working]).collect();
            let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
            assert_eq!(said(&old_conditions, &new_conditions), expected, "{old:?} {new:?} {reconciling}");
        }
    }

    #[test]
    fn notes_of_drivers_tell_when_one_is_removed_or_no_longer_requested() {
        use ConditionType::{CloudProviderReady, StorageReady};
        use Reason::{Deleting, Healthy, NotRequested, Removed, WaitingForPods};
        for (kind, old, new, expected) in [
            (
                CloudProviderReady,
                ("True", Healthy),
                ("False", Deleting),
                Some("Warning Deleting: CloudProviderReady is False"),
            ),
            (
                StorageReady,
                ("True", Healthy),
                ("True", NotRequested),
                Some("Warning NotRequested: StorageReady is True"),
            ),
            (
                StorageReady,
                ("False", Deleting),
                ("Unknown", Removed),
                Some("Normal Removed: StorageReady is Unknown"),
            ),
            (StorageReady, ("False", Deleting), ("False", Deleting), None),
            (StorageReady, ("Unknown", Removed), ("Unknown", NotRequested), None),
            (StorageReady, ("True", Healthy), ("False", WaitingForPods), None),
        ] {
            let of = |(status, reason): (&str, Reason)| [condition(kind, status, reason)];
            let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
            assert_eq!(said(&of(old), &of(new)), expected, "{kind} {old:?} {new:?}");
        }
    }

    #[test]
    fn notes_of_versions_name_both_once_the_new_one_is_healthy() {
        let drivers = |running: &[(&str, &str)]| {
            let driver = |(name, running): &(&str, &str)| DriverStatus {
                name: (*name).into(),
                running: (*running).into(),
                ..DriverStatus::default()
            };
            VDOConfigStatus {
                drivers: running.iter().map(driver).collect(),
                ..VDOConfigStatus::default()
            }
        };
        let both = &[("vsphere-cpi", "1.34.0"), ("vsphere-csi", "3.6.3")];
        for (old, new, expected) in [
            (&both[..], &both[..], None),
            (
                both,
                &[both[0], ("vsphere-csi", "3.7.3")],
                Some("CSI 3.6.3 was replaced by CSI 3.7.3, which is healthy"),
            ),
            (
                &[("vsphere-csi", "3.7.3")],
                both,
                Some("CSI 3.7.3 was replaced by CSI 3.6.3, which is healthy"),
            ),
            // Installed, removed, and not yet healthy for the first time.
            (&[], both, None),
            (both, &[], None),
            (&[("vsphere-csi", "")], both, None),
            (both, &[("vsphere-csi", "")], None),
        ] {
            let found = version_changes(&drivers(old), &drivers(new));
            let said: Vec<&str> = found.iter().map(|note| note.message.as_str()).collect();
            assert_eq!(said, Vec::from_iter(expected), "{old:?} {new:?}");
            assert!(found.iter().all(|note| !note.warning && note.reason == "VersionChanged"));
        }
    }
}
