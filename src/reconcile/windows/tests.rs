// SPDX-License-Identifier: Apache-2.0
use super::*;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use vdo_api::types::ChartRef;
use vdo_core::drivers::CSI;
use vdo_core::matrix::StoredMatrix;
use vdo_core::plan::{About, Failed, Outcome, PackedObjects, RevisionFailure, Rollback};
use vdo_source::fetch::{MatrixSource, embedded};

const NEW_YEAR: &str = "2026-01-01T00:00:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().expect("a time")
}

fn config(spec: Value, annotations: Value) -> VDOConfig {
    let config = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "spec": spec,
        "metadata": {"name": "vdo", "namespace": "n", "annotations": annotations}});
    serde_json::from_value(config).expect("a VDOConfig")
}

fn nights() -> Value {
    json!([{"schedule": "0 2 * * *", "duration": "1h"}])
}

/// The zone is UTC unless another is named. What is broken is never taken for no windows.
#[test]
fn window_condition_and_next_look_follow_the_windows() {
    let broken = json!([{"schedule": "* * * * *", "duration": "1h"}, {"schedule": "0 2 * * *", "duration": "1h", "timeZone": "Here"}]);
    for (spec, now, expected, next) in [
        (json!({}), NEW_YEAR, None, None),
        (
            json!({"maintenanceWindows": nights()}),
            NEW_YEAR,
            Some((Some(false), "OutsideMaintenanceWindow", "opens at 2026-01-01T02:00:00Z")),
            Some("2026-01-01T02:00:00Z"),
        ),
        (
            json!({"maintenanceWindows": nights()}),
            "2026-01-01T02:10:00Z",
            Some((Some(true), "WindowOpen", "is open until 2026-01-01T03:00:00Z")),
            Some("2026-01-01T03:00:00Z"),
        ),
        (
            json!({"maintenanceWindows": nights(), "approval": "Manual"}),
            NEW_YEAR,
            Some((
                Some(false),
                "OutsideMaintenanceWindow",
                "no change waits for a window, because spec.approval is Manual",
            )),
            Some("2026-01-01T02:00:00Z"),
        ),
        (
            json!({ "maintenanceWindows": broken }),
            NEW_YEAR,
            Some((
                None,
                "MaintenanceWindowInvalid",
                "there is no time zone \"Here\"; no driver changes automatically until the windows are corrected",
            )),
            None,
        ),
    ] {
        let mut found = Report::default();
        report_windows(&config(spec.clone(), json!({})), at(now), &mut found);
        let window = found.window.as_ref();
        assert_eq!(
            window.map(|w| (w.holds, w.reason.as_str())),
            expected.map(|(holds, reason, _)| (holds, reason)),
            "{spec}"
        );
        assert!(
            window.is_none_or(|w| w.message.contains(expected.expect("a window").2)),
            "{window:?}"
        );
        assert_eq!(found.look_again, next.map(at), "{spec}");
    }
}

/// The operator wakes for what comes first.
#[test]
fn look_for_a_window_does_not_push_back_an_earlier_one() {
    let config = config(json!({"maintenanceWindows": nights()}), json!({}));
    for (earlier, expected) in [
        ("2026-01-01T00:10:00Z", "2026-01-01T00:10:00Z"),
        ("2026-01-01T09:00:00Z", "2026-01-01T02:00:00Z"),
    ] {
        let mut found = Report {
            look_again: Some(at(earlier)),
            ..Report::default()
        };
        report_windows(&config, at(NEW_YEAR), &mut found);
        assert_eq!(found.look_again, Some(at(expected)));
    }
}

fn revision() -> Revision {
    Revision {
        time: at(NEW_YEAR),
        ..Revision::of(2, PackedObjects::default())
    }
}

/// A user's wish counts until it was tried, and only where something had failed.
#[test]
fn retry_of_a_failed_change_does_not_wait() {
    let failure = RevisionFailure {
        reason: "PodsFailing".into(),
        message: "m".into(),
        basis: "b".into(),
    };
    let back = Revision {
        about: About {
            rollback: Some(Rollback {
                to: 1,
                from: Some(Failed {
                    revision: 1,
                    version: "3.7.3".into(),
                    failure: failure.clone(),
                }),
            }),
            ..About::default()
        },
        ..revision()
    };
    let failed = Revision {
        outcome: Outcome::Failed,
        failure: Some(failure),
        ..revision()
    };
    for (newest, asked, expected) in [
        (&back, "2026-01-01T00:00:01Z", true),
        (&failed, "2026-01-01T00:00:01Z", true),
        (&back, NEW_YEAR, false),
        (&back, "yesterday", false),
        (&revision(), "2026-01-01T00:00:01Z", false),
    ] {
        let annotated = config(json!({}), json!({ RETRY_AT: asked }));
        assert_eq!(is_retried(&annotated, newest), expected, "{asked} {newest:?}");
        assert!(!is_retried(&config(json!({}), json!({})), newest));
    }
}

/// The same chart in another package, which has another digest.
fn packed_again(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).expect("a package");
    let mut writer = GzEncoder::new(Vec::new(), Compression::none());
    writer.write_all(&bytes).expect("written");
    writer.finish().expect("a package")
}

/// The chart that was applied last stays, from what the inventory keeps; without it the driver is left at what was applied last.
#[test]
fn chart_of_a_newer_matrix_waits_with_the_version_of_before() {
    let index = Index::parse(embedded::index()).expect("an index");
    let entry = &index.drivers[CSI].versions[0];
    let old = packed_again(&embedded::chart(&entry.chart).expect("a chart"));
    let closed = closed(&config(json!({"maintenanceWindows": nights()}), json!({})), at(NEW_YEAR)).expect("closed");
    for (version, is_kept, expected) in [
        (entry.version.to_string(), true, "the chart of before"),
        (entry.version.to_string(), false, "what was applied last"),
        // That is an upgrade, which the choice holds.
        ("3.0.0".to_owned(), true, "the chart of the matrix"),
    ] {
        let revision = Revision {
            about: About {
                version: version.clone(),
                chart: Digest::of(&old).to_string(),
                ..About::default()
            },
            ..revision()
        };
        let mut inventory = Inventory::default();
        inventory.history.insert(CSI.into(), vec![revision]);
        let charts = is_kept.then(|| (Digest::of(&old), old.clone())).into_iter().collect();
        let stored = StoredMatrix::of(("embedded".into(), 1, None), (embedded::index(), None, None), charts);
        inventory.embedded = Some(stored.into());
        let mut runs = DriverRuns::default();
        runs.of(CSI).pick = Some(pick(&entry.version, entry.chart.clone()));
        let repository = ChartRepository::new(MatrixSource::Embedded);
        keep_charts(&closed, &config(json!({}), json!({})), &repository, &inventory, &mut runs);
        let run = runs.of(CSI);
        let is_old = run.pick.as_ref().is_some_and(|pick| pick.chart.digest == Digest::of(&old));
        let found = match (&run.source, is_old) {
            (Some(Source::Chart(_)), true) => "the chart of before",
            (Some(Source::LastApplied), false) => "what was applied last",
            (None, false) => "the chart of the matrix",
            _ => "something else",
        };
        assert_eq!(found, expected, "{version} {is_kept}");
        let waits: Vec<String> = waits(Some(&closed), &runs).into_iter().map(|wait| wait.message).collect();
        let expected_wait = format!(
            "another chart of CSI {version} waits until 2026-01-01T02:00:00Z, when the maintenance window \"0 2 * * *\" in UTC opens"
        );
        assert_eq!(
            waits,
            if found == "the chart of the matrix" {
                vec![]
            } else {
                vec![expected_wait]
            }
        );
        // It is what the next inventory keeps.
        assert_eq!(repository.packed(&Digest::of(&old)).is_some(), found == "the chart of before");
    }
}

fn pick(version: &DriverVersion, chart: ChartRef) -> Pick {
    Pick {
        version: version.clone(),
        target: version.clone(),
        from: Some(version.clone()),
        leaves: None,
        path: Vec::new(),
        waits: None,
        chart,
        because: String::new(),
        because_target: String::new(),
        because_newest: String::new(),
        newest: None,
        overridden: None,
        deprecated: None,
    }
}
