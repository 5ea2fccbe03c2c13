// SPDX-License-Identifier: Apache-2.0
//! What is said while drivers come, run and go.

use super::{at, cluster, connection, driver, failure, health, healthy, installing, lines, new, settled, wait};
use vdo_api::api::{Class, ConditionType, Conditions, Health, Reason, VDOConfigStatus};
use vdo_api::facts::Connection;
use vdo_api::types::ObjectId;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::plan::Drift;
use vdo_core::status::{DriverReport, Precondition, Report, fold};

/// Of three connections, the bad one is named, with those who use it.
#[test]
fn status_failed_connection_is_named_with_its_drivers() {
    let named = |name: &str, ready, drivers: &[&str]| Connection {
        name: name.into(),
        drivers: drivers.iter().map(|driver| (*driver).to_owned()).collect(),
        ..connection(ready, "the password has expired")
    };
    let reported = |connections: Vec<Connection>| {
        let report = Report {
            connections,
            ..Report::default()
        };
        let status = fold(&VDOConfigStatus::default(), &report, &at(0));
        let found = Conditions::find(&status.conditions, ConditionType::ConnectionsReady).expect("a condition");
        format!("{} {}", found.status, found.message)
    };
    let good = || named("vc1", Some(true), &[CPI, CSI]);
    assert_eq!(
        reported(vec![
            good(),
            named("vc2", Some(false), &[CPI, CSI]),
            named("vc3", Some(true), &[CPI])
        ]),
        "False vSphere connection vc2 (vcenter.example.com), used by CPI and CSI: the password has expired"
    );
    assert_eq!(
        reported(vec![good(), named("vc2", None, &[CSI]), named("vc3", Some(false), &[CPI])]),
        "False vSphere connection vc3 (vcenter.example.com), used by CPI: the password has expired; other connections that are not \
         verified: vc2"
    );
}

/// Of many repairs the newest ten are kept, the newest last, over one report and over several.
#[test]
fn status_drift_keeps_newest_ten_entries() {
    let drift = |number: usize| Drift {
        id: ObjectId::new("", "ConfigMap", "n", format!("c{number}")),
        path: "data.x".into(),
        wanted: "1".into(),
        found: "2".into(),
        manager: "kubectl-edit".into(),
        at: None,
    };
    let report = |numbers: std::ops::Range<usize>| Report {
        drift: numbers.map(drift).collect(),
        ..Report::default()
    };
    let names = |status: &VDOConfigStatus| -> Vec<String> { status.drift.iter().map(|entry| entry.object.clone()).collect() };
    let expected = |numbers: std::ops::Range<usize>| -> Vec<String> { numbers.map(|number| format!("ConfigMap n/c{number}")).collect() };
    let first = fold(&VDOConfigStatus::default(), &report(0..12), &at(0));
    assert_eq!(names(&first), expected(2..12));
    let second = fold(&first, &report(12..15), &at(1));
    assert_eq!(names(&second), expected(5..15));
}

#[test]
fn status_fresh_install_is_progressing() {
    let status = fold(&new(), &installing(), &at(0));
    insta::assert_yaml_snapshot!(status);
}

#[test]
fn status_waiting_for_nodes_names_them() {
    let mut report = installing();
    report.cluster = Some(cluster(3));
    report.drivers[0].health = health(
        false,
        Reason::WaitingForNodes,
        "1 of 4 nodes are not yet initialised by the cloud provider: w-3",
        (1, 1),
    );
    report.waiting = vec![wait(
        CSI,
        Reason::WaitingForNodes,
        "CSI waits for initialised nodes: 3 of 4 are initialised (w-3 waits for providerID)",
    )];
    insta::assert_yaml_snapshot!(fold(&new(), &report, &at(0)));
}

#[test]
fn status_all_healthy_is_ready() {
    insta::assert_yaml_snapshot!(settled());
}

#[test]
fn status_same_report_later_is_unchanged() {
    assert_eq!(fold(&settled(), &healthy(), &at(60)), settled());
}

#[test]
fn status_unready_driver_without_waits_is_not_ready() {
    let mut report = healthy();
    report.drivers[1].health = health(false, Reason::WaitingForPods, "Deployment x has 0 of 1 pods ready", (6, 7));
    let status = fold(&settled(), &report, &at(60));
    assert_eq!(
        Conditions::find(&status.conditions, ConditionType::Ready).map(|c| c.status.as_str()),
        Some("False")
    );
}

/// While another version rolls out, both are reported: what is desired, and what works until it does.
#[test]
fn status_rollout_shows_wanted_and_running_version() {
    let csi = |version: &str, installed: Option<&str>, ready: bool| DriverReport {
        version: version.into(),
        installed: installed.map(Into::into),
        ..driver(CSI, health(ready, Reason::WaitingForPods, "rolling", (3, 7)))
    };
    let mut status = new();
    for (what, report, expected) in [
        ("nothing is there", csi("3.6.3", None, false), ("3.6.3", "")),
        ("its pods start", csi("3.6.3", Some("3.6.3"), false), ("3.6.3", "")),
        ("it works", csi("3.6.3", Some("3.6.3"), true), ("3.6.3", "3.6.3")),
        ("another one is chosen", csi("3.7.3", Some("3.6.3"), true), ("3.7.3", "3.6.3")),
        ("it is written", csi("3.7.3", Some("3.7.3"), false), ("3.7.3", "3.6.3")),
        ("it works", csi("3.7.3", Some("3.7.3"), true), ("3.7.3", "3.7.3")),
        ("it falls ill", csi("3.7.3", Some("3.7.3"), false), ("3.7.3", "3.7.3")),
    ] {
        let report = Report {
            drivers: vec![report],
            ..healthy()
        };
        status = fold(&status, &report, &at(0));
        let reported = &status.drivers[0];
        assert_eq!((reported.version.as_str(), reported.running.as_str()), expected, "{what}");
    }
}

#[test]
fn status_connection_failed_and_unknown_are_distinct() {
    let mut report = healthy();
    report.connections = vec![connection(Some(false), "the certificate has another thumbprint")];
    let refused = fold(&settled(), &report, &at(60));
    report.connections = vec![connection(None, "the vCenter did not answer within 10 s")];
    let unknown = fold(&settled(), &report, &at(60));
    insta::assert_yaml_snapshot!([lines(&refused), lines(&unknown)]);
    assert_eq!(unknown.health, Some(Health::Healthy), "an outage degrades nothing that runs");
}

/// A precondition is reported as it is; what runs is still Healthy, and one that was not checked stays as it was.
#[test]
fn status_precondition_failed_keeps_running_driver_healthy() {
    let kind = ConditionType::VSphereSupported;
    let say = |holds: Option<bool>| {
        let entry = Precondition {
            kind,
            holds,
            reason: if holds == Some(true) {
                Reason::Healthy
            } else {
                Reason::VSphereNotSupported
            },
            message: "vCenter 8.0.3".into(),
        };
        let mut report = healthy();
        report.preconditions = vec![Precondition::holds(kind, "an answer that is not the worst"), entry];
        report
    };
    let mut old = settled();
    for holds in [Some(true), Some(false), None] {
        let status = fold(&old, &say(holds), &at(60));
        let found = Conditions::find(&status.conditions, kind).expect("a condition").clone();
        assert_eq!(found.status, holds.map_or("Unknown", |holds| if holds { "True" } else { "False" }));
        assert_eq!(status.health, Some(Health::Healthy), "{holds:?}");
        let later = fold(&status, &healthy(), &at(61));
        assert_eq!(Conditions::find(&later.conditions, kind), Some(&found), "not looked at again");
        old = status;
    }
}

#[test]
fn status_precondition_not_checked_is_unknown() {
    for kind in ConditionType::PRECONDITIONS {
        assert!(Conditions::find(&fold(&new(), &Report::default(), &at(0)).conditions, *kind).is_some_and(|c| c.status == "Unknown"));
    }
}

#[test]
fn status_without_connections_forgets_earlier_ones() {
    let report = Report {
        generation: Some(4),
        failures: vec![failure(Class::Wait, Reason::NoConnections, "there is no vSphere connection")],
        ..Report::default()
    };
    let status = fold(&settled(), &report, &at(60));
    assert_eq!(
        Conditions::find(&status.conditions, ConditionType::ConnectionsReady).map(|c| c.reason.as_str()),
        Some("NoConnections")
    );
}

#[test]
fn status_cloud_provider_not_requested_is_shown() {
    let mut report = healthy();
    report.drivers.remove(0);
    insta::assert_yaml_snapshot!(lines(&fold(&new(), &report, &at(0))));
}

#[test]
fn status_uninstall_is_deleting_until_drivers_are_gone() {
    let mut report = Report {
        deleting: true,
        waiting: vec![wait(
            CSI,
            Reason::Deleting,
            "DaemonSet vmware-system-csi/vsphere-csi-node is being deleted",
        )],
        ..healthy()
    };
    let first = fold(&settled(), &report, &at(60));
    (report.drivers, report.waiting) = (Vec::new(), Vec::new());
    let last = fold(&first, &report, &at(61));
    insta::assert_yaml_snapshot!([lines(&first), lines(&last)]);
    assert!(last.drivers.is_empty());
}

#[test]
fn status_json_contains_no_secret() {
    let text = serde_json::to_string(&settled()).expect("JSON");
    assert!(!text.contains("never shown") && text.contains("vc1"), "{text}");
}
