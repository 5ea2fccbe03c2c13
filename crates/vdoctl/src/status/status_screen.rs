// SPDX-License-Identifier: Apache-2.0
//! Prints the screen of `vdoctl status` for people: heading, vCenters, table of drivers, problems and last lines.

use super::super::ages::{ago, counted_from};
use super::super::style::{bad, columns, faint, good, head, table, warn, width};
use super::super::views::status::{DriverView, OperatorView, StatusView, VcenterView};
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
            &format!("{}; the lines below show the last report of the operator", silence.what(now)),
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
            lines.push_str(&format!("      {command}\n"));
        }
        for below in view.problems.iter().filter(|other| other.follows(problem)) {
            lines.push_str(&format!(
                "      {}\n",
                faint(&format!("follows from the problem above: {}", counted_from(&below.message, now)))
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
        heading.extend(["OBJECTS", "REASON"]);
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

/// The desired version with the mark of a pin, and before them the version that runs meanwhile.
pub(super) fn versions(driver: &DriverView) -> String {
    let pin = if driver.pinned { " (pinned)" } else { "" };
    match &driver.running {
        Some(running) if *running != driver.version => format!("{running} → {}{pin}", driver.version),
        _ => format!("{}{pin}", driver.version),
    }
}

#[cfg(test)]
mod tests;
