// SPDX-License-Identifier: Apache-2.0
//! The condition Ready and the one word, over what a report may say.

use super::parts::{condition, with_nodes};
use super::{at, cluster, connection, driver, failure, health, healthy, new, node, settled, wait};
use std::sync::Arc;
use vdo_api::api::{Class, ConditionType, Conditions, Reason, VDOConfigStatus};
use vdo_api::facts::Node;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::status::{Precondition, Report, fold};

/// The one word, and the condition Ready.
fn ready(status: &VDOConfigStatus) -> String {
    format!("{:?}, {}", status.health.expect("a word"), condition(status, ConditionType::Ready))
}

#[test]
fn status_ready_tells_what_matters_most() {
    let base = healthy;
    let pods = |reason| {
        vec![
            driver(CPI, health(true, Reason::Healthy, "", (1, 1))),
            driver(CSI, health(false, reason, "m", (6, 7))),
        ]
    };
    let approval = || vec![wait("", Reason::ApprovalRequired, "approve it")];
    for (report, expected) in [
        (base(), "Healthy, True Healthy: CPI 1.34.0 and CSI 3.7.3 installed and healthy"),
        (
            Report { removed: true, ..base() },
            "Healthy, True Removed: the drivers are removed, because managementState is Removed",
        ),
        (
            Report { paused: Some(0), ..base() },
            "Paused, True Healthy: CPI 1.34.0 and CSI 3.7.3 installed and healthy",
        ),
        (
            Report { paused: Some(1), ..base() },
            "Paused, False Paused: management is paused, and 1 change would be made; vdoctl diff shows the changes; to make the \
             changes, set managementState to Managed",
        ),
        (
            Report { deleting: true, ..base() },
            "Progressing, False Deleting: the drivers are being removed",
        ),
        (
            Report {
                waiting: approval(),
                ..base()
            },
            "Blocked, False ApprovalRequired: approve it",
        ),
        (
            Report {
                drivers: pods(Reason::PodsFailing),
                ..base()
            },
            "Degraded, False PodsFailing: CSI 3.7.3: m",
        ),
        (
            Report {
                drivers: pods(Reason::WaitingForPods),
                ..base()
            },
            "Progressing, False WaitingForPods: CSI 3.7.3: m",
        ),
        (
            Report {
                drivers: Vec::new(),
                ..base()
            },
            "Progressing, False Progressing: no driver has been chosen yet",
        ),
        (
            Report {
                connections: vec![connection(None, "slow"), connection(Some(false), "refused")],
                ..base()
            },
            "Degraded, False ConnectionNotReady: vSphere connection vc1: refused",
        ),
    ] {
        assert_eq!(ready(&fold(&new(), &report, &at(0))), expected);
    }
}

#[test]
fn status_network_is_cause_only_of_what_does_not_start() {
    let lacking = || {
        let mut nodes: Vec<Node> = (0..2).map(|n| Arc::unwrap_or_clone(node(&format!("n{n}"), true))).collect();
        nodes[0].network = Some("no plugin".into());
        with_nodes(nodes)
    };
    let reason = |report: &Report| {
        let status = fold(&new(), report, &at(0));
        Conditions::find(&status.conditions, ConditionType::Ready)
            .map(|c| c.reason.clone())
            .unwrap_or_default()
    };
    for (reported, hindered) in [
        (Reason::WaitingForPods, true),
        (Reason::Progressing, true),
        (Reason::WaitingForDriver, true),
        (Reason::WaitingForNodes, false),
        (Reason::PodsFailing, false),
    ] {
        let expected = if hindered { "NetworkNotReady" } else { reported.as_str() };
        let mut report = lacking();
        report.drivers[1].health = health(false, reported, "m", (0, 1));
        assert_eq!(reason(&report), expected);
        report.waiting = vec![wait(CSI, reported, "m")];
        assert_eq!(reason(&report), expected);
        report.cluster = Some(cluster(4));
        assert_eq!(reason(&report), reported.as_str());
        let kind = ConditionType::ControlPlaneEligible;
        report.preconditions = vec![Precondition::unknown(kind, Reason::NotChecked, "m")];
        assert_eq!(reason(&report), reported.as_str());
    }
}

#[test]
fn status_only_work_under_way_has_a_deadline() {
    let pods = || {
        let mut report = healthy();
        report.drivers[1].health = health(false, Reason::WaitingForPods, "m", (6, 7));
        report
    };
    let failing = || {
        let mut report = healthy();
        report.drivers[1].health = health(false, Reason::PodsFailing, "m", (6, 7));
        report
    };
    let approval = || vec![wait("", Reason::ApprovalRequired, "approve it")];
    let failed = || vec![failure(Class::Wait, Reason::ApplyFailed, "what happened")];
    for (what, report, health, reconciling, stalled) in [
        (
            "it is well",
            healthy(),
            "Healthy",
            "False Idle: no change is in progress",
            "False Idle",
        ),
        (
            "pods start",
            pods(),
            "Blocked",
            "False Idle: no change is in progress",
            "True DeadlineExceeded",
        ),
        (
            "pods fail",
            failing(),
            "Degraded",
            "False Idle: no change is in progress",
            "True DeadlineExceeded",
        ),
        (
            "management is paused",
            Report { paused: Some(3), ..pods() },
            "Paused",
            "False Paused: management is paused; nothing is written",
            "False Idle",
        ),
        (
            "an approval is missing",
            Report {
                waiting: approval(),
                ..pods()
            },
            "Blocked",
            "False ApprovalRequired: approve it",
            "True ApprovalRequired",
        ),
        (
            "something failed, and an approval is missing",
            Report {
                waiting: approval(),
                failures: failed(),
                ..pods()
            },
            "Blocked",
            "True ApplyFailed: what happened",
            "False Idle",
        ),
    ] {
        let first = fold(&new(), &report, &at(0));
        let status = fold(&first, &report, &at(601));
        assert_eq!(format!("{:?}", status.health.expect("a word")), health, "{what}");
        assert_eq!(condition(&status, ConditionType::Reconciling), reconciling, "{what}");
        assert!(condition(&status, ConditionType::Stalled).starts_with(stalled), "{what}");
        assert_eq!(status.waiting_since.is_some(), stalled.contains("DeadlineExceeded"), "{what}");
    }
}

#[test]
fn status_failure_degrades_only_what_runs() {
    let failed = || vec![failure(Class::Wait, Reason::ApplyFailed, "what happened")];
    let early = || Report {
        failures: failed(),
        ..Report::default()
    };
    let mut half = healthy();
    half.drivers[0].health = health(false, Reason::WaitingForPods, "m", (0, 1));
    let half_old = fold(&new(), &half, &at(0));
    for (what, old, report, expected) in [
        ("all run", settled(), early(), "Degraded"),
        ("one runs", half_old.clone(), early(), "Blocked"),
        ("none was there", new(), early(), "Blocked"),
        ("they are gone", settled(), Report { deleting: true, ..early() }, "Blocked"),
        (
            "all run now",
            half_old,
            Report {
                failures: failed(),
                ..healthy()
            },
            "Degraded",
        ),
        (
            "one runs now",
            settled(),
            Report {
                failures: failed(),
                ..half
            },
            "Blocked",
        ),
    ] {
        let status = fold(&old, &report, &at(60));
        assert_eq!(format!("{:?}", status.health.expect("a word")), expected, "{what}");
    }
}
