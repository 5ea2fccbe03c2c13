// SPDX-License-Identifier: Apache-2.0
//! Tests which events a change of conditions, versions and requested drivers emits.

use super::*;
use crate::drivers::{CLOUD_PROVIDER, STORAGE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

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
    let at = |ready: &str, reason: Reason, version: &str, running: &str| VDOConfigStatus {
        conditions: vec![Condition {
            message: "m".into(),
            observed_generation: Some(1),
            ..condition(ConditionType::Ready, ready, reason)
        }],
        drivers: vec![DriverStatus {
            name: STORAGE.name.into(),
            version: version.into(),
            running: running.into(),
            because: "newest that fits".into(),
            ..DriverStatus::default()
        }],
        ..VDOConfigStatus::default()
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
