use super::DriverReport;
use crate::api::{DriverStatus, NodesStatus, VDOConfigStatus, VcenterStatus, WaitingNode};
use crate::facts::{Connection, Node};
use crate::types::{CPI, CSI};
use std::sync::Arc;

/// What people call a driver.
#[must_use]
pub fn short(driver: &str) -> &str {
    match driver {
        CPI => "CPI",
        CSI => "CSI",
        other => other,
    }
}

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

pub(super) fn driver(report: &DriverReport, old: &VDOConfigStatus) -> DriverStatus {
    let known = old.drivers.iter().find(|d| d.name == report.name && d.version == report.version);
    // A report that ended before the choice does not know these; they belong to the version and are still true.
    let (available, chart, because) = match known.filter(|_| report.chart.is_empty() && report.because == INSTALLED) {
        Some(old) => (&old.available, &old.chart, &old.because),
        None => (&report.available, &report.chart, &report.because),
    };
    let works = report.health.as_ref().is_some_and(|health| health.ready);
    let before = || old.drivers.iter().find(|d| d.name == report.name).map(|d| d.running.clone());
    DriverStatus {
        name: report.name.clone(),
        version: report.version.clone(),
        running: report.installed.clone().filter(|_| works).or_else(before).unwrap_or_default(),
        available: available.clone(),
        chart: chart.clone(),
        objects: count(report.objects),
        pods: report.health.as_ref().map(|h| h.pods.to_string()).unwrap_or_default(),
        ready: tri(report.health.as_ref().map(|h| h.ready)).into(),
        because: because.clone(),
    }
}

pub(super) fn nodes(nodes: &[Arc<Node>], with_csi: bool) -> NodesStatus {
    let lacking = |n: &Node| {
        n.lacks()
            .or((with_csi && n.linux && !n.csi_registered).then_some("CSI registration"))
    };
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
