// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::drivers::{CLOUD_PROVIDER, STORAGE};
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

/// That work begins and that it succeeds are events, and none is a warning; ceasing to be ready, and a failure, are warnings; how far work
/// has come is none.
#[test]
fn notes_of_ready_tell_transitions_and_no_progress() {
    use Reason::{
        ApplyFailed, ConnectionNotReady, Deleting, Healthy, NotChecked, Paused, PodsFailing, Progressing, WaitingForNodes, WaitingForPods,
    };
    let of = |reported: Option<(&str, Reason, i64)>| {
        reported.map(|(status, reason, generation)| Condition {
            observed_generation: Some(generation),
            ..condition(ConditionType::Ready, status, reason)
        })
    };
    for (old, new, connections, expected) in [
        (None, None, "True", None),
        (None, Some(("True", Healthy, 1)), "True", Some("Normal Healthy: Ready is True")),
        (
            None,
            Some(("False", WaitingForPods, 1)),
            "True",
            Some("Normal WaitingForPods: Ready is False"),
        ),
        (
            None,
            Some(("False", Progressing, 1)),
            "True",
            Some("Normal Progressing: Ready is False"),
        ),
        (
            None,
            Some(("Unknown", NotChecked, 1)),
            "Unknown",
            Some("Normal NotChecked: Ready is Unknown"),
        ),
        (
            None,
            Some(("False", ConnectionNotReady, 1)),
            "Unknown",
            Some("Normal ConnectionNotReady: Ready is False"),
        ),
        (
            None,
            Some(("False", ConnectionNotReady, 1)),
            "False",
            Some("Warning ConnectionNotReady: Ready is False"),
        ),
        (
            None,
            Some(("False", ApplyFailed, 1)),
            "True",
            Some("Warning ApplyFailed: Ready is False"),
        ),
        (
            Some(("False", ConnectionNotReady, 1)),
            Some(("False", Progressing, 1)),
            "True",
            None,
        ),
        (
            Some(("False", WaitingForNodes, 1)),
            Some(("False", WaitingForPods, 1)),
            "True",
            None,
        ),
        (Some(("False", ApplyFailed, 1)), Some(("False", WaitingForPods, 1)), "True", None),
        (Some(("True", Healthy, 1)), Some(("True", Healthy, 1)), "True", None),
        (Some(("False", ApplyFailed, 1)), Some(("False", ApplyFailed, 1)), "True", None),
        (
            Some(("False", ApplyFailed, 1)),
            Some(("False", PodsFailing, 1)),
            "True",
            Some("Warning PodsFailing: Ready is False"),
        ),
        (
            Some(("Unknown", ApplyFailed, 1)),
            Some(("False", ApplyFailed, 1)),
            "True",
            Some("Warning ApplyFailed: Ready is False"),
        ),
        (
            Some(("True", Healthy, 1)),
            Some(("False", WaitingForPods, 1)),
            "True",
            Some("Warning WaitingForPods: Ready is False"),
        ),
        (
            Some(("True", Healthy, 1)),
            Some(("False", WaitingForPods, 2)),
            "True",
            Some("Normal WaitingForPods: Ready is False"),
        ),
        (
            Some(("True", Healthy, 1)),
            Some(("False", Deleting, 1)),
            "True",
            Some("Normal Deleting: Ready is False"),
        ),
        (
            Some(("True", Healthy, 1)),
            Some(("False", Paused, 2)),
            "True",
            Some("Normal Paused: Ready is False"),
        ),
        (
            Some(("True", Healthy, 1)),
            Some(("Unknown", ConnectionNotReady, 1)),
            "False",
            Some("Warning ConnectionNotReady: Ready is Unknown"),
        ),
        (
            Some(("False", WaitingForPods, 1)),
            Some(("True", Healthy, 1)),
            "True",
            Some("Normal Healthy: Ready is True"),
        ),
    ] {
        let with = |reported| {
            of(reported)
                .into_iter()
                .chain([condition(ConditionType::ConnectionsReady, connections, Healthy)])
        };
        let (before, after): (Vec<Condition>, Vec<Condition>) = (with(old).collect(), with(new).collect());
        let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
        assert_eq!(said(&before, &after), expected, "{old:?} {new:?} {connections}");
    }
}

/// An upgrade begins, which is not a warning: the version that was chosen is named, and the one that runs in the end.
#[test]
fn notes_of_versions_tell_what_was_chosen_and_what_runs() {
    let at = |ready: &str, reason: Reason, version: &str, running: &str| {
        let mut status = status(ready, reason, "m", 1, Health::Healthy, &[]);
        status.drivers = vec![DriverStatus {
            name: STORAGE.name.into(),
            version: version.into(),
            running: running.into(),
            because: "newest that fits".into(),
            ..DriverStatus::default()
        }];
        status
    };
    let said = |old: &VDOConfigStatus, new: &VDOConfigStatus| -> Vec<String> {
        let word = |note: &Note| {
            format!(
                "{} {}: {}",
                if note.warning { "Warning" } else { "Normal" },
                note.reason,
                note.message
            )
        };
        config_notes(old, new).iter().map(word).collect()
    };
    let steps = [
        VDOConfigStatus::default(),
        at("False", Reason::Progressing, "3.7.3", ""),
        at("True", Reason::Healthy, "3.7.3", "3.7.3"),
        at("False", Reason::WaitingForPods, "3.7.4", "3.7.3"),
        at("True", Reason::Healthy, "3.7.4", "3.7.4"),
    ];
    let all: Vec<Vec<String>> = steps.windows(2).map(|pair| said(&pair[0], &pair[1])).collect();
    assert_eq!(
        all,
        [
            vec![
                "Normal VersionChosen: CSI 3.7.3 was chosen: newest that fits",
                "Normal Progressing: m"
            ],
            vec!["Normal Healthy: m"],
            vec![
                "Normal VersionChosen: CSI 3.7.4 was chosen: newest that fits",
                "Normal WaitingForPods: m"
            ],
            vec![
                "Normal Healthy: m",
                "Normal VersionChanged: CSI 3.7.3 was replaced by CSI 3.7.4, which is healthy"
            ],
        ]
    );
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
            Some("Normal Deleting: CloudProviderReady is False"),
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
    let both = &[(CLOUD_PROVIDER.name, "1.34.0"), (STORAGE.name, "3.6.3")];
    for (old, new, expected) in [
        (&both[..], &both[..], None),
        (
            both,
            &[both[0], (STORAGE.name, "3.7.3")],
            Some("CSI 3.6.3 was replaced by CSI 3.7.3, which is healthy"),
        ),
        (
            &[(STORAGE.name, "3.7.3")],
            both,
            Some("CSI 3.7.3 was replaced by CSI 3.6.3, which is healthy"),
        ),
        // Installed, removed, and not yet healthy for the first time.
        (&[], both, None),
        (both, &[], None),
        (&[(STORAGE.name, "")], both, None),
        (both, &[(STORAGE.name, "")], None),
    ] {
        let found = version_changes(&drivers(old), &drivers(new));
        let said: Vec<&str> = found.iter().map(|note| note.message.as_str()).collect();
        assert_eq!(said, Vec::from_iter(expected), "{old:?} {new:?}");
        assert!(found.iter().all(|note| !note.warning && note.reason == "VersionChanged"));
    }
}
