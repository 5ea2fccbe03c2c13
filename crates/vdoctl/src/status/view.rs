// SPDX-License-Identifier: Apache-2.0
//! The screen of `status`.

use super::super::style::{ago, bad, columns, counted_from, faint, good, head, table, warn, width};
use super::super::views::status::{DriverView, OperatorView, StatusView, VcenterView};
use super::super::wrap::unbroken;
use super::next::timed;
use super::problem::Severity;
use super::{matrix, nodes};
use k8s_openapi::jiff::Timestamp;
use vdo_api::api::Health;
use vdo_core::drivers::short;

/// How the screen is written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Layout {
    /// How wide the terminal is, where there is one.
    pub columns: Option<usize>,
    /// Whether the table of drivers has more columns.
    pub wide: bool,
}

/// Draws it, as it is at a time.
pub(super) fn draw(view: &StatusView, layout: Layout, now: Timestamp) -> String {
    let first = std::iter::once(cluster(view, now));
    let matrix = view
        .config
        .as_ref()
        .and_then(|config| Some(matrix::row(config.matrix.as_ref()?, now)));
    let first = first.chain(matrix);
    let rows: Vec<_> = first.chain(view.vcenters.iter().map(|one| vcenter(one, now))).collect();
    let mut lines = heading(rows, layout.columns);
    if let Some(installer) = view.operator.as_ref().and_then(|operator| operator.installed_by.as_ref()) {
        lines.push_str(&faint(&format!("operator installed by {}", installer.text())));
        lines.push('\n');
    }
    let Some(config) = &view.config else { return lines };
    let line = |mark: String, text: &str| format!("  {mark} {text}\n");
    if let (Some(silence), None) = (&config.silence, &config.stuck) {
        lines.push_str(&line(
            bad("✗"),
            &format!("{}; the lines below show its last report", silence.what(now)),
        ));
    }
    if !view.drivers.is_empty() && config.stuck.is_none() {
        lines.push_str(&drivers(view, config.silence.is_some(), layout.wide));
    }
    if let (Some(failure), None) = (
        view.operator.as_ref().and_then(|operator| operator.message.as_ref()),
        &config.silence,
    ) {
        lines.push_str(&line(
            warn("!"),
            &format!("the operator is not healthy, so this status may be old: {failure}"),
        ));
    }
    for problem in view.problems.iter().filter(|problem| !problem.is_below(&view.problems)) {
        let mark = match problem.severity() {
            Severity::Fault => bad("✗"),
            Severity::Unknown => warn("?"),
            Severity::Notice => warn("!"),
            Severity::Progress => warn("…"),
        };
        let reason = faint(&format!("({})", problem.cause));
        lines.push_str(&line(mark, &format!("{} {reason}", counted_from(&problem.message, now))));
        if let Some(command) = &problem.command {
            lines.push_str(&format!("      {}\n", unbroken(command)));
        }
        for below in view.problems.iter().filter(|other| other.follows(problem)) {
            lines.push_str(&format!(
                "      {}\n",
                faint(&format!("follows from this problem: {}", counted_from(&below.message, now)))
            ));
        }
    }
    if let Some(apart) = config.nodes.as_ref().and_then(nodes::apart) {
        lines.push_str(&line(warn("!"), &apart));
    }
    if let Some(stuck) = &config.stuck {
        return lines + &line(bad("✗"), &format!("{}.", counted_from(&stuck.message, now))) + &format!("    {}\n", stuck.remedy);
    }
    let timed = if config.silence.is_none() { timed(view, now) } else { Vec::new() };
    for text in view.next.iter().chain(&timed) {
        lines.push_str(&format!("{text}\n"));
    }
    lines
}

/// The place of a server's address in a row of the heading.
const ADDRESS: usize = 2;

/// The rows of the heading. On a narrow terminal with the last cell of each row below it, and then without the addresses of the servers.
fn heading(mut rows: Vec<Vec<String>>, terminal: Option<usize>) -> String {
    let fits = |text: &str| terminal.is_none_or(|columns| text.lines().all(|line| width(line) <= columns));
    let whole = columns(rows.iter());
    if fits(&whole) {
        return whole;
    }
    let last: Vec<String> = rows.iter_mut().filter_map(Vec::pop).collect();
    let mut above = columns(rows.iter());
    if !fits(&above) {
        for row in &mut rows {
            row.remove(ADDRESS);
        }
        above = columns(rows.iter());
    }
    let below = last.iter().map(|cell| format!("  {cell}\n"));
    above.lines().zip(below).map(|(above, below)| format!("{above}\n{below}")).collect()
}

fn cluster(view: &StatusView, now: Timestamp) -> Vec<String> {
    let cluster = &view.cluster;
    let nodes = cluster
        .nodes
        .map(|n| format!(" · {n} node{}", if n == 1 { "" } else { "s" }))
        .unwrap_or_default();
    vec![
        head("CLUSTER"),
        cluster.name.clone(),
        cluster.server.clone(),
        format!("{}{nodes}", cluster.version),
        format!("{}  {}", head("VDO"), product(view, now)),
    ]
}

fn product(view: &StatusView, now: Timestamp) -> String {
    let state = state(view, now);
    if view.config.is_none() {
        return state;
    }
    let operator = match &view.operator {
        None if !view.operator_visible => "operator not visible to you".into(),
        None => "no operator Deployment".into(),
        Some(OperatorView { version, ready: true, .. }) => format!("operator {version}"),
        Some(OperatorView { version, .. }) => format!("operator {version} {}", bad("not ready")),
    };
    format!("{state} ({operator}, vdoctl {})", view.client.version)
}

/// How VDO is in a cluster, and for how long, in a few words.
pub(super) fn state(view: &StatusView, now: Timestamp) -> String {
    let Some(config) = &view.config else {
        return warn(if view.defined { "no VDOConfig" } else { "not deployed" });
    };
    if config.deleting {
        return match config.stuck {
            Some(_) => bad("cannot be deleted"),
            None => warn("being deleted"),
        };
    }
    if let Some(silence) = &config.silence {
        let since = silence.since.map(|since| format!(" for {}", ago(since, now))).unwrap_or_default();
        return format!("{}{since}", bad("operator not running"));
    }
    let since = config
        .since
        .as_ref()
        .map(|since| format!(" {}", ago(since.0, now)))
        .unwrap_or_default();
    let word = match config.health {
        Some(Health::Healthy) => good("healthy"),
        Some(Health::Progressing) => warn("progressing"),
        // Nothing records since when.
        Some(Health::Paused) => return warn("paused"),
        Some(Health::Degraded) => bad("degraded"),
        Some(Health::Blocked) => bad("blocked"),
        Some(Health::Unknown) => warn("unknown"),
        None => warn("not checked yet"),
    };
    format!("{word}{since}")
}

fn vcenter(view: &VcenterView, now: Timestamp) -> Vec<String> {
    let version = match (&view.version, &view.build) {
        (Some(version), Some(build)) => format!("{version} build {build}"),
        _ => "version not known".into(),
    };
    let user = view.user.as_ref().map(|user| format!("user {user}  ")).unwrap_or_default();
    let checked = view.checked.as_ref().map(|at| format!(", checked {} ago", ago(at.0, now)));
    let checked = checked.unwrap_or_default();
    let since = view.since.as_ref().map(|since| format!(" for {}{checked}", ago(since.0, now)));
    let since = since.unwrap_or_default();
    let word = match (&view.reason, view.ready.as_str()) {
        (None, _) => warn("not checked yet"),
        (_, "True") => format!("{}{checked}", good("ok")),
        (Some(reason), "False") => format!("{} {reason}{since}", bad("not ready")),
        (Some(reason), _) => format!("{} {reason}{since}", warn("not known")),
    };
    vec![
        head("VCENTER"),
        view.connection.clone(),
        view.server.clone(),
        version,
        format!("{user}{word}"),
    ]
}

fn drivers(view: &StatusView, silent: bool, wide: bool) -> String {
    let state = if silent { "LAST KNOWN" } else { "STATE" };
    let mut heading = vec!["DRIVER", "VERSION", "NEWEST FIT", "PODS", "NODES", state];
    if wide {
        heading.extend(["OBJECTS", "BECAUSE"]);
    }
    let row = |driver: &DriverView| {
        let state = match driver.state.as_str() {
            "healthy" => good("healthy"),
            "degraded" => bad("degraded"),
            other => warn(other),
        };
        let nodes = driver.nodes.as_ref().map(|nodes| format!("{}/{}", nodes.ready, nodes.total));
        let mut row = vec![
            short(&driver.name).to_owned(),
            versions(driver),
            dash(&driver.newest),
            pods(driver),
            nodes.unwrap_or_else(|| "-".into()),
            state,
        ];
        if wide {
            row.extend([driver.objects.to_string(), driver.because.clone()]);
        }
        row
    };
    table(&heading, &view.drivers.iter().map(row).collect::<Vec<_>>())
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// The pods that are ready and, while they are being replaced, those that are new.
fn pods(driver: &DriverView) -> String {
    match &driver.updated {
        Some(updated) if !driver.pods.is_empty() => format!("{}, {updated} updated", driver.pods),
        _ => dash(&driver.pods),
    }
}

/// The desired version, and before it the one that runs meanwhile.
pub(super) fn versions(driver: &DriverView) -> String {
    match &driver.running {
        Some(running) if *running != driver.version => format!("{running} → {}", driver.version),
        _ => driver.version.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::operator::Silence;
    use super::super::super::wrap::fit;
    use super::super::model::{Config, Operator, Picture};
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
                    "message": "node w-9: no virtual machine that can be seen has its UUID, name or address"}],
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
                    why: "Lease kube-system/vdo-operator released".into(),
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
                    "Fix the lines marked ✗",
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
                vec!["✗", "Fix the lines", "is available"],
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
                vec!["✗", "Fix the lines"],
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
                vec!["✗", "Fix the lines"],
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
        let reported = text.lines().position(|line| {
            line.starts_with("  ✗ operator not running for 3m (Lease kube-system/vdo-operator released); the lines below")
        });
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
      follows from this problem: CSI 3.0.0 supports Kubernetes >=1.20 <1.23
";
        assert!(text.contains(below), "{text}");
        assert!(
            text.contains("  ✗ CPI 1.34.0: DaemonSet n/c is missing (WorkloadMissing)"),
            "{text}"
        );
        assert_eq!(text.matches('✗').count(), 2, "{text}");
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
            "Until the Secret changes, the next attempt is at 2026-01-01T01:14:00Z.",
        );
        let text = drawn(&picture(Health::Degraded, &[locked], false), None);
        assert!(text.contains("the next attempt is in 14m."), "{text}");
        assert!(
            text.contains("the operator goes on when the above is fixed") && !text.contains("keeps trying"),
            "{text}"
        );
        let paused = ("Ready", "True", "Healthy", "healthy");
        let text = drawn(&picture(Health::Paused, &[paused], false), None);
        assert!(text.contains("VDO  paused ("), "{text}");
    }
}
