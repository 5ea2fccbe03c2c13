// SPDX-License-Identifier: Apache-2.0
//! Tests of `status_screen.rs`: marks, folded problems, width, pins, and a status without an operator.
use super::super::super::operator_running::Silence;
use super::super::super::wrap::fit;
use super::super::read_status::{Config, Operator, Picture};
use super::*;
use serde_json::json;
use vdo_api::api::VDOConfigStatus;

fn picture(health: Health, conditions: &[(&str, &str, &str, &str)], silence: bool) -> Picture {
    let since = "2026-01-01T00:00:00Z";
    let of = |(kind, status, reason, message): &(&str, &str, &str, &str)| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since});
    let driver = json!({"name": "vsphere-csi", "version": "3.7.3", "running": "3.6.3", "available": "3.7.3", "chart": "", "objects": 17,
        "pods": "5/5", "updated": "2/5", "ready": "False", "because": ""});
    let mut status: VDOConfigStatus = serde_json::from_value(json!({
        "conditions": conditions.iter().map(of).collect::<Vec<_>>(), "drivers": [driver],
        "drift": [{"object": "Deployment n/c", "path": "spec.replicas", "by": "kubectl", "repaired": "2026-01-01T00:57:00Z"}],
    }))
    .expect("a status");
    status.health = Some(health);
    let connection = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig", "metadata": {"name": "vc1"},
        "spec": {"vcIp": "vcenter.example.com", "credentials": "x"},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "Healthy", "message": "", "lastTransitionTime": since},
            {"type": "NodesFound", "status": "False", "reason": "NodeNotFound", "lastTransitionTime": since,
                "message": "node w-9: no virtual machine that the user can see has the UUID, name or address of the node"}],
            "about": {"version": "8.0.3", "build": "24022515", "apiType": "", "instanceUuid": ""},
            "probes": {"last": "2026-01-01T00:58:00Z"}}});
    Picture {
        cluster: "demo".into(),
        server: "https://kubernetes.example.com:6443".into(),
        kubernetes: "v1.34.4".into(),
        nodes: Some(5),
        operator: None,
        operator_visible: true,
        doubt: None,
        config: Some(Config {
            id: "n/vdo".into(),
            current: true,
            deleting: false,
            stuck: None,
            kept: Vec::new(),
            upgrade_pins: Default::default(),
            pins: Vec::new(),
            paused: health == Health::Paused,
            paused_drivers: Vec::new(),
            windows: Vec::new(),
            silence: silence.then(|| Silence {
                since: "2026-01-01T00:57:00Z".parse().ok(),
                why: "Lease kube-system/vdo-operator was released".into(),
                remedy: "Start it.".into(),
                person: true,
            }),
            status,
        }),
        defined: true,
        connections: vec![serde_json::from_value(connection).expect("a connection")],
    }
}

fn drawn(picture: &Picture, columns: Option<usize>) -> String {
    let now = "2026-01-01T01:00:00Z".parse().expect("a time");
    let layout = Layout { columns, wide: false };
    anstream::adapter::strip_str(&fit(&draw(&picture.view(now), layout, now), columns)).to_string()
}

const STARTS: (&str, &str, &str, &str) = (
    "StorageReady",
    "False",
    "WaitingForPods",
    "CSI 3.7.3 has 2 of 5 pods at its newest revision",
);

#[test]
fn status_screen_marks_and_footer_follow_health() {
    let eligible = (
        "ControlPlaneEligible",
        "False",
        "NoEligibleNode",
        "the controller may run on 0 of 4 nodes",
    );
    let paused = ("Ready", "False", "Paused", "management is paused, and 3 changes would be made");
    for (health, conditions, shown, hidden) in [
        (
            Health::Progressing,
            vec![STARTS],
            vec![
                "5/5, 2/5 updated",
                "3.6.3 → 3.7.3",
                "  … CSI 3.7.3 has",
                "✗ vSphere connection vc1: node w-9",
                "ok, checked 2m ago",
            ],
            vec!["Nothing to do", "ok for"],
        ),
        (
            Health::Progressing,
            vec![eligible],
            vec![
                "✗ the controller may run",
                "Fix the problems marked ✗",
                "vdoctl explain NoEligibleNode",
                "The operator then continues",
            ],
            vec!["Nothing to do"],
        ),
        (
            Health::Healthy,
            vec![],
            vec![
                "! vSphere connection vc1: node w-9",
                "Last drift: Deployment n/c: spec.replicas was changed by kubectl, and repaired 3m ago.",
            ],
            vec!["✗", "Fix the problems", "is available"],
        ),
        (
            Health::Healthy,
            vec![(
                "UpgradeAvailable",
                "True",
                "UpdatePolicy",
                "CSI 3.7.4 is available, but 3.7.3 stays installed: spec.updatePolicy is Compatible; set it to Latest",
            )],
            vec!["\nCSI 3.7.4 is available, but 3.7.3 stays installed: spec.updatePolicy is Compatible; set it to Latest.\n"],
            vec!["✗", "Fix the problems"],
        ),
        (
            Health::Paused,
            vec![paused],
            vec![
                "VDO  paused",
                "! management is paused",
                "Management is paused",
                "To continue: vdoctl resume",
            ],
            vec!["✗", "Fix the problems"],
        ),
    ] {
        let text = drawn(&picture(health, &conditions, false), None);
        shown
            .iter()
            .for_each(|word| assert!(text.contains(word), "{word:?} is not in:\n{text}"));
        hidden
            .iter()
            .for_each(|word| assert!(!text.contains(word), "{word:?} is in:\n{text}"));
    }
}

#[test]
fn status_screen_without_operator_begins_with_that() {
    let text = drawn(&picture(Health::Healthy, &[], true), None);
    assert!(text.contains("VDO  operator not running for 3m"), "{text}");
    let reported = text
        .lines()
        .position(|line| line.starts_with("  ✗ no operator has run for 3m (Lease kube-system/vdo-operator was released); the lines below"));
    assert_eq!(reported, Some(2), "{text}");
    assert!(
        text.contains("LAST KNOWN") && text.ends_with("Start it.\nvdoctl doctor checks everything now, without the operator.\n"),
        "{text}"
    );
}

#[test]
fn status_screen_eighty_columns_fits() {
    for columns in [80, 100] {
        let text = drawn(&picture(Health::Progressing, &[STARTS], true), Some(columns));
        text.lines()
            .for_each(|line| assert!(width(line) <= columns, "{} columns: {line}\n{text}", width(line)));
        assert!(
            text.contains("vc1") && text.contains("vcenter.example.com") && text.contains("https://"),
            "{text}"
        );
    }
    let text = drawn(&picture(Health::Progressing, &[STARTS], true), Some(60));
    assert!(text.contains("vc1") && !text.contains("vcenter.example.com"), "{text}");
}

/// A version that does not follow the matrix has a mark: one that the specification names, and one of a revision that a user keeps.
#[test]
fn status_screen_marks_a_pinned_version() {
    type Pins = Vec<(String, String)>;
    let of = |driver: &str, value: &str| -> Pins { vec![(driver.to_owned(), value.to_owned())] };
    for (pins, kept, marked) in [
        (Vec::new(), Vec::new(), false),
        (of("vsphere-csi", "3.7.3"), Vec::new(), true),
        (Vec::new(), of("vsphere-csi", "4"), true),
        (of("vsphere-cpi", "1.34.0"), Vec::new(), false),
    ] {
        let mut picture = picture(Health::Progressing, &[STARTS], false);
        let config = picture.config.as_mut().expect("a VDOConfig");
        (config.pins, config.kept) = (pins, kept);
        let text = drawn(&picture, Some(80));
        assert_eq!(text.contains("3.6.3 → 3.7.3 (pinned)  3.7.3"), marked, "{text}");
        text.lines().for_each(|line| assert!(width(line) <= 80, "{line}"));
    }
}

/// A pin that the matrix lists and that does not fit: the cause has the cross and the command, and what follows from it is below.
#[test]
fn status_screen_begins_with_the_cause_and_folds_what_follows() {
    let unsupported = (
        "KubernetesSupported",
        "False",
        "KubernetesNotSupported",
        "CSI 3.0.0 supports Kubernetes >=1.20 <1.23",
    );
    let pinned = (
        "Ready",
        "False",
        "IncompatiblePin",
        "vsphere-csi is pinned to 3.0.0, which does not fit",
    );
    let of_cpi = (
        "CloudProviderReady",
        "False",
        "WorkloadMissing",
        "CPI 1.34.0: DaemonSet n/c is missing",
    );
    let mut picture = picture(Health::Degraded, &[of_cpi, unsupported, pinned], false);
    picture.connections.clear();
    if let Some(config) = &mut picture.config {
        config.pins = vec![("vsphere-csi".into(), "3.0.0".into())];
    }
    let text = drawn(&picture, None);
    let below = "  ✗ vsphere-csi is pinned to 3.0.0, which does not fit (IncompatiblePin)
      vdoctl configure drivers --set storageProvider.version=null
      follows from the problem above: CSI 3.0.0 supports Kubernetes >=1.20 <1.23
";
    assert!(text.contains(below), "{text}");
    assert!(
        text.contains("  ✗ CPI 1.34.0: DaemonSet n/c is missing (WorkloadMissing)"),
        "{text}"
    );
    assert_eq!(text.matches('✗').count(), 2, "{text}");
}

/// What is missing because of a missing right, a refusal, a plan that waits or a node is no second cause; that of another driver is.
#[test]
fn status_screen_folds_missing_workloads_below_their_cause() {
    for (reason, message) in [
        ("RightsMissing", "vsphere-csi waits for missing rights: ClusterRole r is missing"),
        ("AdmissionDenied", "vsphere-csi: the admission policy refuses Deployment n/c"),
        ("NetworkNotReady", "CSI 3.7.0: node w-1 has no network"),
    ] {
        let missing = ("StorageReady", "False", "WorkloadMissing", "CSI 3.7.0: Deployment n/c is missing");
        let of_cpi = (
            "CloudProviderReady",
            "False",
            "WorkloadMissing",
            "CPI 1.34.0: DaemonSet n/c is missing",
        );
        let text = drawn(
            &picture(Health::Degraded, &[missing, of_cpi, ("Ready", "False", reason, message)], false),
            None,
        );
        assert!(
            text.contains("follows from the problem above: CSI 3.7.0: Deployment n/c is missing"),
            "{text}"
        );
        assert!(text.contains("✗ CPI 1.34.0: DaemonSet n/c is missing (WorkloadMissing)"), "{text}");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is not in:\n{text}"));
        assert!(place(message) < place("Deployment n/c is missing"), "{text}");
    }
}

#[test]
fn status_screen_says_why_no_operator_is_shown_and_why_one_is_not_ready() {
    let mut picture = picture(Health::Healthy, &[], false);
    assert!(drawn(&picture, None).contains("(no operator Deployment, "));
    picture.operator_visible = false;
    assert!(drawn(&picture, None).contains("(operator not visible to you, "));
    picture.operator = Some(Operator {
        version: "0.2.0".into(),
        installed_by: None,
        failure: Some("Deployment n/vdo-operator still has 1 pod of an older revision".into()),
        unready: Some("ImagePullBackOff: no such image".into()),
    });
    let text = drawn(&picture, None);
    let line = "  ! the operator is not healthy, so this status may be old: ImagePullBackOff: no such image\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn status_screen_counts_times_from_now_and_names_no_time_of_a_pause() {
    let locked = (
        "Ready",
        "False",
        "AccountLocked",
        "The next attempt is at 2026-01-01T01:14:00Z, or earlier if the Secret changes.",
    );
    let text = drawn(&picture(Health::Degraded, &[locked], false), None);
    assert!(text.contains("The next attempt is in 14m, or earlier"), "{text}");
    assert!(
        text.contains("the operator continues after the fix") && !text.contains("keeps trying"),
        "{text}"
    );
    let paused = ("Ready", "True", "Healthy", "healthy");
    let text = drawn(&picture(Health::Paused, &[paused], false), None);
    assert!(text.contains("VDO  paused ("), "{text}");
}
