// SPDX-License-Identifier: Apache-2.0
//! The entries of single vCenters, drivers and nodes in the status of a VDOConfig.

use super::{DriverReport, Report, conditions};
use crate::drivers::{Driver, KNOWN, known};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::api::{ApartNode, DriverStatus, NodesStatus, VDOConfigStatus, VcenterStatus, WaitingNode};
use vdo_api::facts::{Connection, Node, due};
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
        nodes: report
            .health
            .as_ref()
            .and_then(|health| health.nodes.done)
            .map(|(done, all)| format!("{done}/{all}"))
            .unwrap_or_default(),
        because: because.clone(),
        reason: said.as_ref().map(|(_, reason, _)| reason.as_str().to_owned()).unwrap_or_default(),
        message: said.map(|(_, _, message)| message).unwrap_or_default(),
    }
}

/// As many nodes as each list of the status names.
const NAMED: usize = 20;

/// The nodes, and what those wait for that these drivers have not done yet.
pub(super) fn nodes(nodes: &[Arc<Node>], drivers: &[DriverReport]) -> NodesStatus {
    let of = |driver: &Driver| drivers.iter().find(|report| report.name == driver.name);
    let counted = KNOWN
        .into_iter()
        .filter(|driver| driver.role == DriverRole::CloudProvider || of(driver).is_some());
    let mut lacking: BTreeMap<&str, &'static str> = BTreeMap::new();
    for driver in counted {
        match of(driver)
            .and_then(|report| report.health.as_ref())
            .filter(|health| health.nodes.done.is_some())
        {
            Some(health) => {
                for (node, what) in &health.nodes.waiting {
                    lacking.entry(node).or_insert(what);
                }
            }
            None => {
                for node in due(nodes.iter().map(|node| &**node)) {
                    if let Some(what) = (driver.on_nodes.waits_for)(node, &BTreeSet::new()) {
                        lacking.entry(&node.name).or_insert(what);
                    }
                }
            }
        }
    }
    let waiting = nodes.iter().filter_map(|node| {
        Some(WaitingNode {
            name: node.name.clone(),
            waits_for: (*lacking.get(node.name.as_str())?).to_owned(),
        })
    });
    let apart = nodes.iter().filter_map(|node| {
        Some(ApartNode {
            name: node.name.clone(),
            because: node.apart()?,
        })
    });
    NodesStatus {
        total: count(nodes.len()),
        initialized: count(nodes.iter().filter(|n| n.is_initialized()).count()),
        csi_registered: count(nodes.iter().filter(|n| n.csi_registered).count()),
        of_other_providers: count(nodes.iter().filter(|n| n.other_provider().is_some()).count()),
        waiting: waiting.take(NAMED).collect(),
        apart: apart.take(NAMED).collect(),
    }
}

pub(super) fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
