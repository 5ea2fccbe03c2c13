//! What a VDOConfig says of itself in every situation, and that docs/errors.md explains every reason.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use proptest::prelude::*;
use std::path::Path;
use vdo::api::{Class, ConditionType, Conditions, Health, MatrixStatus, Reason, VDOConfigStatus};
use vdo::facts::{Cluster, Connection, Credentials, Node};
use vdo::health::{DriverHealth, Pods};
use vdo::plan::Wait;
use vdo::status::{DriverReport, Precondition, Report, Trouble, fold};
use vdo::types::{CPI, CSI, Secret, Trust};

fn at(second: i64) -> Time {
    Time(jiff::Timestamp::from_second(1_800_000_000 + second).expect("a time"))
}

fn node(name: &str, initialized: bool) -> Node {
    let provider_id = if initialized { format!("vsphere://{name}") } else { String::new() };
    Node {
        name: name.into(),
        control_plane: name == "cp-1",
        provider_id,
        uninitialized: !initialized,
        linux: true,
        csi_registered: initialized,
        ..Node::default()
    }
}

fn cluster(initialized: usize) -> Cluster {
    let nodes = ["cp-1", "w-1", "w-2", "w-3"]
        .iter()
        .enumerate()
        .map(|(i, name)| node(name, i < initialized))
        .collect();
    Cluster {
        version: "v1.34.4".parse().expect("a version"),
        uid: "0c4e".into(),
        nodes,
    }
}

fn connection(ready: Option<bool>, message: &str) -> Connection {
    Connection {
        name: "vc1".into(),
        server: "vcenter.example.com".into(),
        port: 443,
        datacenters: Vec::new(),
        trust: Trust::SystemRoots,
        version: Some("8.0.3".parse().expect("a version")),
        build: Some("24022515".into()),
        ready,
        message: message.into(),
        credentials: Credentials {
            user: "k8s@vsphere.local".into(),
            password: Secret::new("never shown"),
        },
        blocked: None,
        drivers: Vec::new(),
        lamed: Vec::new(),
    }
}

/// Of three connections, the bad one is named, with those who use it.
#[test]
fn a_bad_connection_is_named_with_its_drivers() {
    let named = |name: &str, ready, drivers: &[&str]| Connection {
        name: name.into(),
        drivers: drivers.iter().map(|driver| (*driver).to_owned()).collect(),
        ..connection(ready, "the password has expired")
    };
    let told = |connections: Vec<Connection>| {
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
        told(vec![
            good(),
            named("vc2", Some(false), &[CPI, CSI]),
            named("vc3", Some(true), &[CPI])
        ]),
        "False vSphere connection vc2 (vcenter.example.com), used by CPI and CSI: the password has expired"
    );
    assert_eq!(
        told(vec![good(), named("vc2", None, &[CSI]), named("vc3", Some(false), &[CPI])]),
        "False vSphere connection vc3 (vcenter.example.com), used by CPI: the password has expired; not ready either: vc2"
    );
}

fn health(ready: bool, reason: Reason, message: &str, pods: (i64, i64)) -> Option<DriverHealth> {
    Some(DriverHealth {
        ready,
        reason,
        message: message.into(),
        pods: Pods {
            ready: pods.0,
            wanted: pods.1,
        },
        trouble: None,
    })
}

fn driver(name: &str, health: Option<DriverHealth>) -> DriverReport {
    let (version, because) = if name == CPI {
        ("1.34.0", "CPI minor must equal Kubernetes 1.34")
    } else {
        ("3.7.3", "newest that fits")
    };
    DriverReport {
        name: name.into(),
        version: version.into(),
        installed: health.is_some().then(|| version.into()),
        available: version.into(),
        chart: "sha256:4f".into(),
        because: because.into(),
        objects: 7,
        health,
    }
}

fn wait(driver: &str, reason: Reason, message: &str) -> Wait {
    Wait {
        driver: driver.into(),
        reason,
        message: message.into(),
    }
}

fn trouble(class: Class, reason: Reason, message: &str) -> Trouble {
    Trouble {
        reason,
        class,
        message: message.into(),
    }
}

fn healthy() -> Report {
    Report {
        generation: Some(3),
        cluster: Some(cluster(4)),
        connections: vec![connection(Some(true), "ok")],
        matrix: Some(MatrixStatus {
            source: "embedded".into(),
            version: 1,
            digest: "sha256:aa".into(),
        }),
        upgradeable: Some(vdo::status::Upgradeable {
            fits: false,
            reason: Reason::NoCompatibleVersion,
            message: "Kubernetes 1.36 does not fit: no CSI version fits it".into(),
        }),
        drivers: vec![
            driver(CPI, health(true, Reason::Healthy, "all 1 pods are ready", (1, 1))),
            driver(CSI, health(true, Reason::Healthy, "all 7 pods are ready", (7, 7))),
        ],
        inventory: Some(("vdo-inventory".into(), 31)),
        cluster_id: Some("0c4e".into()),
        ..Report::default()
    }
}

fn installing() -> Report {
    Report {
        cluster: Some(cluster(0)),
        drivers: vec![driver(CPI, None), driver(CSI, None)],
        waiting: vec![wait(CSI, Reason::WaitingForNodes, "CSI waits for initialised nodes: 0 of 4 are")],
        ..healthy()
    }
}

fn new() -> VDOConfigStatus {
    VDOConfigStatus::default()
}

/// The status after a healthy report at second 0.
fn settled() -> VDOConfigStatus {
    fold(&new(), &healthy(), &at(0))
}

/// The conditions as one line each, without the times.
fn lines(status: &VDOConfigStatus) -> Vec<String> {
    let line = |c: &Condition| format!("{} {} {}: {}", c.type_, c.status, c.reason, c.message);
    std::iter::once(format!("{:?}", status.health))
        .chain(status.conditions.iter().map(line))
        .collect()
}

#[test]
fn fresh_install_in_progress() {
    let status = fold(&new(), &installing(), &at(0));
    insta::assert_yaml_snapshot!(status);
}

#[test]
fn waiting_for_nodes() {
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
        "CSI waits for initialised nodes: 3 of 4 are (w-3 waits for providerID)",
    )];
    insta::assert_yaml_snapshot!(fold(&new(), &report, &at(0)));
}

#[test]
fn all_is_well() {
    insta::assert_yaml_snapshot!(settled());
}

#[test]
fn the_same_report_later_changes_nothing() {
    assert_eq!(fold(&settled(), &healthy(), &at(60)), settled());
}

#[test]
fn pods_that_fail_are_named_first() {
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

#[test]
fn a_driver_that_is_not_well_is_never_called_healthy_even_if_nothing_waits() {
    let mut report = healthy();
    report.drivers[1].health = health(false, Reason::WaitingForPods, "Deployment x has 0 of 1 pods ready", (6, 7));
    let status = fold(&settled(), &report, &at(60));
    assert_eq!(
        Conditions::find(&status.conditions, ConditionType::Ready).map(|c| c.status.as_str()),
        Some("False")
    );
}

/// While another version rolls out, both are told: what is wanted, and what works until it does.
#[test]
fn the_version_that_works_is_told_beside_the_one_that_is_wanted() {
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
        let told = &status.drivers[0];
        assert_eq!((told.version.as_str(), told.running.as_str()), expected, "{what}");
    }
}

/// Whatever a reconcile ran into, and however far it had come, the status says so: the reason, one word, what comes next.
#[test]
fn every_class_of_failure_is_told_wherever_it_happened() {
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
            troubles: vec![trouble(class, Reason::ApplyFailed, "what happened")],
            next_attempt: Some(at(90)),
            ..report
        };
        let status = fold(&old, &report, &at(60));
        let condition = |kind| Conditions::find(&status.conditions, kind).expect("it is there");
        let told = condition(ConditionType::Ready);
        let what = format!("{class:?} {:?}", status.health);
        assert_eq!((told.status.as_str(), told.reason.as_str()), (ready, "ApplyFailed"), "{what}");
        assert_eq!(told.message, "what happened", "{what}");
        assert_eq!((status.observed_generation, status.health), (Some(3), Some(health)), "{what}");
        assert_eq!(condition(ConditionType::Stalled).status, stalled, "{what}");
        let next = status.next_attempt.clone().map(|next| (next.at, next.because));
        assert_eq!(next, again.then(|| (at(90), "ApplyFailed".to_owned())), "{what}");
    }
}

#[test]
fn terminal_failure_with_drivers_running() {
    let report = Report {
        troubles: vec![trouble(
            Class::Terminal,
            Reason::UnknownVersion,
            "CSI 3.9.9 is not in the matrix; the newest that fits is 3.7.3",
        )],
        ..healthy()
    };
    insta::assert_yaml_snapshot!(fold(&settled(), &report, &at(60)));
}

#[test]
fn retry_failure_with_drivers_running() {
    let report = Report {
        troubles: vec![trouble(
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
fn retry_failure_before_anything_was_looked_at() {
    let report = Report {
        generation: Some(4),
        troubles: vec![trouble(
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
fn what_belongs_to_an_installed_version_outlives_a_failed_choice() {
    let mut report = Report {
        troubles: vec![trouble(Class::Terminal, Reason::MatrixInvalid, "the matrix cannot be read")],
        matrix: None,
        ..healthy()
    };
    for driver in &mut report.drivers {
        (driver.available, driver.chart, driver.because) = (String::new(), String::new(), "installed".into());
    }
    assert_eq!(fold(&settled(), &report, &at(60)).drivers, settled().drivers);
}

#[test]
fn connection_false_and_unknown() {
    let mut report = healthy();
    report.connections = vec![connection(Some(false), "the certificate has another thumbprint")];
    let refused = fold(&settled(), &report, &at(60));
    report.connections = vec![connection(None, "the vCenter did not answer within 10 s")];
    let unknown = fold(&settled(), &report, &at(60));
    insta::assert_yaml_snapshot!([lines(&refused), lines(&unknown)]);
    assert_eq!(unknown.health, Some(Health::Healthy), "an outage degrades nothing that runs");
}

/// A precondition is told as it is; what runs is Healthy all the same, and one that nobody looked at stays as it was.
#[test]
fn preconditions_are_true_false_or_unknown_and_degrade_nothing_that_runs() {
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
    for kind in ConditionType::PRECONDITIONS {
        assert!(Conditions::find(&fold(&new(), &Report::default(), &at(0)).conditions, *kind).is_some_and(|c| c.status == "Unknown"));
    }
}

/// That pods are not ready is the effect; the cause is what Ready tells.
#[test]
fn a_failing_precondition_is_told_as_the_cause_of_pods_that_wait() {
    let mut report = healthy();
    report.drivers[1].health = health(false, Reason::WaitingForPods, "Deployment x has 0 of 1 pods ready", (6, 7));
    report.waiting = vec![wait(CSI, Reason::WaitingForPods, "Deployment x has 0 of 1 pods ready")];
    let nodes = &mut report.cluster.as_mut().expect("a cluster").nodes;
    nodes[2].network = Some("KubeletNotReady: cni plugin not initialized".into());
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
fn what_never_gets_ready_is_called_stalled_and_recovers() {
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
        // Words that change are no progress; a pod more is.
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
    // A failure is told as such, and says itself what comes next.
    let failed = Report {
        troubles: vec![trouble(Class::Retry, Reason::ApiUnavailable, "no answer")],
        ..waiting(6)
    };
    assert_eq!(fold(&status, &failed, &at(6000)).waiting_since, None);
}

#[test]
fn no_connection_is_not_the_last_one_remembered() {
    let report = Report {
        generation: Some(4),
        troubles: vec![trouble(Class::Wait, Reason::NoConnections, "there is no vSphere connection")],
        ..Report::default()
    };
    let status = fold(&settled(), &report, &at(60));
    assert_eq!(
        Conditions::find(&status.conditions, ConditionType::ConnectionsReady).map(|c| c.reason.as_str()),
        Some("NoConnections")
    );
}

#[test]
fn cloud_provider_not_asked_for() {
    let mut report = healthy();
    report.drivers.remove(0);
    insta::assert_yaml_snapshot!(lines(&fold(&new(), &report, &at(0))));
}

#[test]
fn deleting() {
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
fn nothing_secret_is_in_a_status() {
    let text = serde_json::to_string(&settled()).expect("JSON");
    assert!(!text.contains("never shown") && text.contains("vc1"), "{text}");
}

fn any_reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(Reason::ALL)
}

fn any_health() -> impl Strategy<Value = Option<DriverHealth>> {
    prop::option::of((any::<bool>(), any_reason()).prop_map(|(ready, reason)| DriverHealth {
        ready,
        reason,
        message: "m".into(),
        pods: Pods { ready: 1, wanted: 1 },
        trouble: None,
    }))
}

fn any_trouble() -> impl Strategy<Value = Trouble> {
    (any_reason(), prop::sample::select(vec![Class::Wait, Class::Retry, Class::Terminal]))
        .prop_map(|(reason, class)| trouble(class, reason, "t"))
}

prop_compose! {
    fn any_report()(
        initialized in prop::option::of(0..5usize),
        connections in prop::collection::vec(prop::option::of(any::<bool>()), 0..3),
        drivers in prop::collection::vec(any_health(), 0..3),
        troubles in prop::collection::vec(any_trouble(), 0..3),
        waiting in prop::collection::vec((prop::sample::select(vec![CPI, CSI]), any_reason()), 0..3),
        deleting in any::<bool>(),
        generation in 1..9i64,
    ) -> Report {
        Report {
            generation: Some(generation),
            cluster: initialized.map(cluster),
            connections: connections.into_iter().map(|ready| connection(ready, "")).collect(),
            drivers: [CPI, CSI].iter().zip(drivers).map(|(name, health)| driver(name, health)).collect(),
            troubles,
            waiting: waiting.into_iter().map(|(driver, reason)| wait(driver, reason, "w")).collect(),
            deleting,
            ..Report::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_condition_is_complete_and_keeps_its_time(reports in prop::collection::vec(any_report(), 1..5)) {
        let mut old = new();
        for (i, report) in reports.iter().enumerate() {
            let now = at(i64::try_from(i).expect("small"));
            let status = fold(&old, report, &now);
            prop_assert_eq!(status.observed_generation, report.generation);
            let mut seen = Vec::new();
            for c in &status.conditions {
                prop_assert!(!seen.contains(&&c.type_), "{} twice", c.type_);
                seen.push(&c.type_);
                prop_assert!(c.observed_generation.is_some(), "{:?}", c);
                prop_assert!(!c.message.is_empty(), "{:?}", c);
                prop_assert!(Reason::ALL.iter().any(|reason| reason.as_str() == c.reason), "{:?}", c);
                prop_assert!(["True", "False", "Unknown"].contains(&c.status.as_str()));
                let before = old.conditions.iter().find(|b| b.type_ == c.type_);
                let since = before.filter(|b| b.status == c.status).map_or(&now, |b| &b.last_transition_time);
                prop_assert_eq!(&c.last_transition_time, since, "{:?}", c);
            }
            let is = |kind| Conditions::is_true(&status.conditions, kind);
            prop_assert!(!(is(ConditionType::Ready) && (is(ConditionType::Reconciling) || is(ConditionType::Stalled))));
            prop_assert!(!(is(ConditionType::Reconciling) && is(ConditionType::Stalled)));
            prop_assert!(!is(ConditionType::Ready) || (report.troubles.is_empty() && !report.deleting));
            prop_assert_eq!(is(ConditionType::Ready), status.health == Some(Health::Healthy));
            prop_assert_eq!(fold(&status, report, &at(99)), status.clone(), "the same report once more");
            old = status;
        }
    }
}

#[test]
fn every_reason_is_explained() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md");
    let text = std::fs::read_to_string(path).expect("docs/errors.md");
    let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(
        headings, reasons,
        "docs/errors.md has one heading for each reason, in the order of src/api/reason.rs"
    );
    for entry in text.split("\n### ").skip(1) {
        for part in ["**Cause.**", "**Shown in.**", "**Remedy.**"] {
            assert!(
                entry.contains(part),
                "{}: {part} is missing",
                entry.lines().next().unwrap_or_default()
            );
        }
    }
}
