// SPDX-License-Identifier: Apache-2.0
//! What is said of failures.

use super::{at, cluster, failure, health, healthy, installing, lines, new, settled, wait};
use std::sync::Arc;
use vdo_api::api::{Class, ConditionType, Conditions, Health, Reason, VDOConfigStatus};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::status::{Precondition, Report, fold};

#[test]
fn status_failing_pods_are_named_first() {
    let mut report = healthy();
    report.drivers[1].health = health(
        false,
        Reason::PodsFailing,
        "DaemonSet vmware-system-csi/vsphere-csi-node has 3 of 4 pods ready",
        (6, 7),
    );
    report.waiting = vec![
        wait(CPI, Reason::WaitingForPods, "CPI rolls"),
        wait(
            CSI,
            Reason::PodsFailing,
            "DaemonSet vmware-system-csi/vsphere-csi-node has 3 of 4 pods ready",
        ),
    ];
    insta::assert_yaml_snapshot!(lines(&fold(&settled(), &report, &at(60))));
}

/// Whatever a reconcile ran into, and however far it had come, the status reports it: the reason, one word, what comes next.
#[test]
fn status_each_failure_class_sets_ready_and_stalled() {
    use Health::{Blocked, Degraded, Unknown};
    let early = || Report {
        generation: Some(3),
        ..Report::default()
    };
    for (class, report, old, ready, health, stalled, again) in [
        (Class::Terminal, healthy(), settled(), "False", Blocked, "True", false),
        (Class::Terminal, early(), settled(), "False", Blocked, "True", false),
        (Class::Terminal, early(), new(), "False", Blocked, "True", false),
        (Class::Retry, healthy(), settled(), "Unknown", Unknown, "False", true),
        (Class::Retry, early(), settled(), "Unknown", Unknown, "False", true),
        (Class::Retry, installing(), new(), "False", Blocked, "False", true),
        (Class::Retry, early(), new(), "False", Blocked, "False", true),
        (Class::Wait, healthy(), settled(), "False", Degraded, "False", false),
        (Class::Wait, early(), settled(), "False", Degraded, "False", false),
        (Class::Wait, early(), new(), "False", Blocked, "False", false),
    ] {
        let report = Report {
            failures: vec![failure(class, Reason::ApplyFailed, "what happened")],
            next_attempt: Some(at(90)),
            ..report
        };
        let status = fold(&old, &report, &at(60));
        let condition = |kind| Conditions::find(&status.conditions, kind).expect("it is there");
        let reported = condition(ConditionType::Ready);
        let what = format!("{class:?} {:?}", status.health);
        assert_eq!(
            (reported.status.as_str(), reported.reason.as_str()),
            (ready, "ApplyFailed"),
            "{what}"
        );
        assert_eq!(reported.message, "what happened", "{what}");
        assert_eq!((status.observed_generation, status.health), (Some(3), Some(health)), "{what}");
        assert_eq!(condition(ConditionType::Stalled).status, stalled, "{what}");
        let next = status.next_attempt.clone().map(|next| (next.at, next.because));
        assert_eq!(next, again.then(|| (at(90), "ApplyFailed".to_owned())), "{what}");
    }
}

#[test]
fn status_terminal_failure_with_running_drivers_is_stalled() {
    let report = Report {
        failures: vec![failure(
            Class::Terminal,
            Reason::UnknownVersion,
            "CSI 3.9.9 is not in the matrix; the newest that fits is 3.7.3",
        )],
        ..healthy()
    };
    insta::assert_yaml_snapshot!(fold(&settled(), &report, &at(60)));
}

#[test]
fn status_retry_failure_with_running_drivers_is_unknown() {
    let report = Report {
        failures: vec![failure(
            Class::Retry,
            Reason::ApiUnavailable,
            "the API server did not answer the request to list nodes",
        )],
        next_attempt: Some(at(90)),
        ..healthy()
    };
    insta::assert_yaml_snapshot!(lines(&fold(&settled(), &report, &at(60))));
}

/// A reconcile that failed at its first step knows nothing; what the last one knew stays, and is not called False.
#[test]
fn status_retry_failure_before_observation_keeps_state() {
    let report = Report {
        generation: Some(4),
        failures: vec![failure(
            Class::Retry,
            Reason::ApiUnavailable,
            "the API server did not answer the request to list nodes",
        )],
        next_attempt: Some(at(90)),
        ..Report::default()
    };
    let (old, status) = (settled(), fold(&settled(), &report, &at(60)));
    insta::assert_yaml_snapshot!(lines(&status));
    for kind in [
        ConditionType::ConnectionsReady,
        ConditionType::CloudProviderReady,
        ConditionType::StorageReady,
        ConditionType::NodesInitialized,
    ] {
        assert_eq!(Conditions::find(&status.conditions, kind), Conditions::find(&old.conditions, kind));
    }
    let parts = |s: &VDOConfigStatus| {
        (
            s.kubernetes.clone(),
            s.vcenters.clone(),
            s.matrix.clone(),
            s.drivers.clone(),
            s.nodes.clone(),
            s.inventory.clone(),
            s.cluster_id.clone(),
        )
    };
    assert_eq!(parts(&status), parts(&old));
    let next = status.next_attempt.expect("a time");
    assert_eq!((next.at, next.because.as_str()), (at(90), "ApiUnavailable"));
}

/// A reconcile that failed between looking and choosing knows the installed versions, not why they were chosen.
#[test]
fn status_failed_choice_keeps_installed_version_facts() {
    let mut report = Report {
        failures: vec![failure(Class::Terminal, Reason::MatrixInvalid, "the matrix cannot be read")],
        matrix: None,
        ..healthy()
    };
    for driver in &mut report.drivers {
        (driver.available, driver.chart, driver.because) = (String::new(), String::new(), "installed".into());
    }
    assert_eq!(fold(&settled(), &report, &at(60)).drivers, settled().drivers);
}

/// That pods are not ready is the effect; the cause is what Ready tells.
#[test]
fn status_failed_precondition_is_cause_of_waiting_pods() {
    let mut report = healthy();
    report.drivers[1].health = health(false, Reason::WaitingForPods, "Deployment x has 0 of 1 pods ready", (6, 7));
    report.waiting = vec![wait(CSI, Reason::WaitingForPods, "Deployment x has 0 of 1 pods ready")];
    let nodes = &mut report.cluster.as_mut().expect("a cluster").nodes;
    Arc::make_mut(&mut nodes[2]).network = Some("KubeletNotReady: cni plugin not initialized".into());
    let network = lines(&fold(&settled(), &report, &at(60)));
    report.cluster = Some(cluster(4));
    report.preconditions = vec![Precondition::fails(
        ConditionType::ControlPlaneEligible,
        Reason::NoEligibleNode,
        "Deployment x needs 1 nodes and may run on 0 of 4",
    )];
    let placement = lines(&fold(&settled(), &report, &at(60)));
    insta::assert_yaml_snapshot!([network, placement]);
}

/// Ten minutes without any progress: Stalled, watched as before, nothing rolled back; the first step on ends it.
#[test]
fn status_without_progress_is_stalled_after_timeout_and_recovers() {
    let waiting = |pods: i64| {
        let mut report = healthy();
        report.drivers[1].health = health(false, Reason::WaitingForPods, "Deployment x is not ready", (pods, 7));
        report.waiting = vec![wait(CSI, Reason::WaitingForPods, "Deployment x is not ready")];
        report
    };
    let say = |status: &VDOConfigStatus| {
        let one = |kind| Conditions::find(&status.conditions, kind).map_or_else(String::new, |c| format!("{} {}", c.status, c.reason));
        format!(
            "{:?}; {}; {}; {}",
            status.health.expect("a word"),
            one(ConditionType::Ready),
            one(ConditionType::Reconciling),
            one(ConditionType::Stalled)
        )
    };
    let progressing = "Progressing; False WaitingForPods; True WaitingForPods; False Idle";
    let stalled = "Blocked; False WaitingForPods; False Idle; True DeadlineExceeded";
    let mut status = settled();
    for (second, pods, expected) in [
        (0, 5, progressing),
        (600, 5, progressing),
        (601, 5, stalled),
        (5000, 5, stalled),
        // Words that change are not progress; a pod more is.
        (5001, 6, progressing),
        (5601, 6, progressing),
        (5602, 6, stalled),
    ] {
        status = fold(&status, &waiting(pods), &at(second));
        assert_eq!(say(&status), expected, "after {second} s");
    }
    // Another specification has its own ten minutes.
    let newer = Report {
        generation: Some(4),
        ..waiting(6)
    };
    assert_eq!(say(&fold(&status, &newer, &at(6000))), progressing);
    let well = fold(&status, &healthy(), &at(6000));
    assert_eq!(say(&well), "Healthy; True Healthy; False Idle; False Idle");
    assert_eq!(well.waiting_since, None);
    // A failure is reported as such, and says itself what comes next.
    let failed = Report {
        failures: vec![failure(Class::Retry, Reason::ApiUnavailable, "no answer")],
        ..waiting(6)
    };
    assert_eq!(fold(&status, &failed, &at(6000)).waiting_since, None);
}
