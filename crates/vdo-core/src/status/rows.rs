use super::{DriverReport, Report, conditions};
use crate::drivers::{Driver, KNOWN, known};
use std::sync::Arc;
use vdo_api::api::{DriverStatus, NodesStatus, VDOConfigStatus, VcenterStatus, WaitingNode};
use vdo_api::facts::{Connection, Node};
use vdo_api::types::DriverRole;

pub(super) fn vcenter(connection: &Connection) -> VcenterStatus {
    VcenterStatus {
        connection: connection.name.clone(),
        version: connection.version.as_ref().map(|v| v.raw().to_owned()),
        build: connection.build.clone(),
        ready: tri(connection.ready).into(),
    }
}

pub(super) fn tri(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    }
}

/// Why a version, where nothing was chosen.
pub(crate) const INSTALLED: &str = "installed";

pub(super) fn driver(report: &DriverReport, all: &Report, old: &VDOConfigStatus) -> DriverStatus {
    let same = old.drivers.iter().find(|d| d.name == report.name && d.version == report.version);
    // A report that ended before the choice does not know these; they belong to the version and are still true.
    let (available, chart, because) = match same.filter(|_| report.chart.is_empty() && report.because == INSTALLED) {
        Some(old) => {
            let newer = Some(&report.available).filter(|available| !available.is_empty());
            (newer.unwrap_or(&old.available), &old.chart, &old.because)
        }
        None => (&report.available, &report.chart, &report.because),
    };
    let works = report.health.as_ref().is_some_and(|health| health.ready);
    let before = || old.drivers.iter().find(|d| d.name == report.name).map(|d| d.running.clone());
    // The drivers of the table have a condition that says it.
    let said = known(&report.name)
        .is_none()
        .then(|| conditions::driver(&report.name, all))
        .flatten();
    DriverStatus {
        name: report.name.clone(),
        version: report.version.clone(),
        running: report.installed.clone().filter(|_| works).or_else(before).unwrap_or_default(),
        revision: report.revision.and_then(|number| i64::try_from(number).ok()),
        available: available.clone(),
        chart: chart.clone(),
        objects: count(report.objects),
        pods: report.health.as_ref().map(|h| h.pods.to_string()).unwrap_or_default(),
        updated: report.health.as_ref().and_then(|h| h.pods.rollout()).unwrap_or_default(),
        ready: tri(report.health.as_ref().map(|h| h.ready)).into(),
        because: because.clone(),
        reason: said.as_ref().map(|(_, reason, _)| reason.as_str().to_owned()).unwrap_or_default(),
        message: said.map(|(_, _, message)| message).unwrap_or_default(),
    }
}

/// The nodes, and what those wait for that these drivers have not done yet.
pub(super) fn nodes(nodes: &[Arc<Node>], drivers: &[DriverReport]) -> NodesStatus {
    let is_there = |driver: &&Driver| drivers.iter().any(|report| report.name == driver.name);
    let counted: Vec<&Driver> = KNOWN
        .into_iter()
        .filter(|driver| driver.role == DriverRole::CloudProvider || is_there(driver))
        .collect();
    let lacking = |n: &Node| counted.iter().find_map(|driver| (driver.on_nodes.waits_for)(n));
    NodesStatus {
        total: count(nodes.len()),
        initialized: count(nodes.iter().filter(|n| n.lacks().is_none()).count()),
        csi_registered: count(nodes.iter().filter(|n| n.csi_registered).count()),
        waiting: nodes
            .iter()
            .filter_map(|n| {
                Some(WaitingNode {
                    name: n.name.clone(),
                    waits_for: lacking(n)?.to_owned(),
                })
            })
            .take(20)
            .collect(),
    }
}

pub(super) fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
