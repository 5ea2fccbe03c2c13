//! The fold that turns whatever a reconcile found, did or failed at into the status of a VDOConfig. It runs on every path.
//!
//! Layer 1: may use `types`, `api`, `facts`, `health` and `plan`. Errors of other rooms arrive as [`Trouble`].

use crate::api::{
    Class, ConditionType, Conditions, DriverStatus, Failure, Health, InventoryStatus, KubernetesStatus, MatrixStatus, NextAttempt,
    NodesStatus, PlanStatus, Reason, VDOConfigStatus, VcenterStatus, WaitingNode, chain,
};
use crate::facts::{Cluster, Connection, Node};
use crate::health::DriverHealth;
use crate::plan::{Skip, Wait};
use crate::types::{CPI, CSI};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A failure, reduced to what is published of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The reason of the condition.
    pub reason: Reason,
    /// What can be done about it.
    pub class: Class,
    /// What object, what happened, what to do.
    pub message: String,
}

impl<F: Failure> From<&F> for Trouble {
    fn from(failure: &F) -> Self {
        Self {
            reason: failure.reason(),
            class: failure.class(),
            message: chain(failure),
        }
    }
}

/// A driver that is asked for or still there.
#[derive(Debug, Clone)]
pub struct DriverReport {
    /// Its name in the matrix.
    pub name: String,
    /// The version that is installed, or about to be.
    pub version: String,
    /// The newest version that would fit.
    pub available: String,
    /// The digest of its chart.
    pub chart: String,
    /// Why this version.
    pub because: String,
    /// How many objects it has.
    pub objects: usize,
    /// How it is; `None` while nothing of it exists.
    pub health: Option<DriverHealth>,
}

/// Whether the next Kubernetes minor fits, in the words of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgradeable {
    /// Whether it fits.
    pub fits: bool,
    /// Why not.
    pub reason: Reason,
    /// The sentence.
    pub message: String,
}

/// Everything a reconcile has to say. Parts that were not reached stay empty.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The generation that was acted upon.
    pub generation: Option<i64>,
    /// The cluster.
    pub cluster: Option<Cluster>,
    /// The connections in use.
    pub connections: Vec<Connection>,
    /// The matrix in use.
    pub matrix: Option<MatrixStatus>,
    /// Whether the next Kubernetes minor fits.
    pub upgradeable: Option<Upgradeable>,
    /// The drivers asked for.
    pub drivers: Vec<DriverReport>,
    /// What is waited for.
    pub waiting: Vec<Wait>,
    /// What was left alone.
    pub skipped: Vec<Skip>,
    /// What is about to be changed.
    pub plan: Option<PlanStatus>,
    /// Name and size of the inventory.
    pub inventory: Option<(String, usize)>,
    /// The identity under which volumes are registered.
    pub cluster_id: Option<String>,
    /// What went wrong, worst first.
    pub troubles: Vec<Trouble>,
    /// The object is being removed.
    pub deleting: bool,
    /// Management is paused; this many writes would be made.
    pub paused: Option<usize>,
    /// The drivers are removed, and that is what is asked for.
    pub removed: bool,
    /// The object was let go: there is nothing left to report on.
    pub gone: bool,
    /// When the next attempt is made, where that is known.
    pub next_attempt: Option<Time>,
}

impl Report {
    /// Whether the drivers go, or are gone, because that is what is asked for.
    fn leaving(&self) -> bool {
        self.deleting || self.removed
    }
}

/// The next status. Parts that this reconcile did not reach keep what the last one knew.
#[must_use]
pub fn fold(old: &VDOConfigStatus, report: &Report, now: &Time) -> VDOConfigStatus {
    let mut conditions = Conditions::new(old.conditions.clone(), report.generation, now.clone());
    let trouble = report.troubles.first();
    let connections = connections(&mut conditions, report);
    drivers(&mut conditions, report);
    nodes_condition(&mut conditions, report);
    match &report.upgradeable {
        Some(next) => conditions.set(ConditionType::Upgradeable, Some(next.fits), next.reason, next.message.clone()),
        None => conditions.keep(ConditionType::Upgradeable, Reason::NotChecked, "not looked at yet"),
    }
    let summary = summary(report, trouble, connections, running(old, report));
    conditions.set(ConditionType::Ready, summary.ready, summary.reason, summary.message.clone());
    let working = summary.ready != Some(true) && trouble.is_none_or(|t| t.class != Class::Terminal);
    let approval = report
        .waiting
        .first()
        .filter(|w| w.reason == Reason::ApprovalRequired && trouble.is_none());
    if let Some(wait) = approval {
        conditions.set(ConditionType::Reconciling, Some(false), wait.reason, wait.message.clone());
    } else if report.paused.is_some() {
        conditions.set(
            ConditionType::Reconciling,
            Some(false),
            Reason::Paused,
            "management is paused; nothing is written",
        );
    } else if working {
        conditions.set(ConditionType::Reconciling, Some(true), summary.reason, summary.message.clone());
    } else {
        conditions.set(ConditionType::Reconciling, Some(false), Reason::Idle, "nothing is under way");
    }
    let stuck = trouble.filter(|t| t.class == Class::Terminal).map(|t| (t.reason, &t.message));
    match stuck.or(approval.map(|w| (w.reason, &w.message))) {
        Some((reason, message)) => conditions.set(ConditionType::Stalled, Some(true), reason, message.clone()),
        None => conditions.set(ConditionType::Stalled, Some(false), Reason::Idle, "nothing is stuck"),
    }
    VDOConfigStatus {
        observed_generation: report.generation,
        health: Some(summary.health),
        conditions: conditions.finish(),
        kubernetes: report
            .cluster
            .as_ref()
            .map(|c| KubernetesStatus {
                version: c.version.raw().to_owned(),
            })
            .or_else(|| old.kubernetes.clone()),
        vcenters: if report.connections.is_empty() {
            old.vcenters.clone()
        } else {
            report.connections.iter().map(vcenter).collect()
        },
        matrix: report.matrix.clone().or_else(|| old.matrix.clone()),
        drivers: if report.drivers.is_empty() && !report.leaving() {
            old.drivers.clone()
        } else {
            report.drivers.iter().map(|d| driver(d, old)).collect()
        },
        nodes: report
            .cluster
            .as_ref()
            .map(|c| nodes(&c.nodes, report.drivers.iter().any(|d| d.name == CSI)))
            .or_else(|| old.nodes.clone()),
        plan: report.plan.clone().or_else(|| old.plan.clone().filter(|_| trouble.is_some())),
        inventory: report
            .inventory
            .clone()
            .map(|(name, objects)| InventoryStatus {
                name,
                objects: count(objects),
            })
            .or_else(|| old.inventory.clone().filter(|_| !report.removed)),
        cluster_id: report.cluster_id.clone().or_else(|| old.cluster_id.clone()),
        next_attempt: trouble.filter(|t| t.class == Class::Retry).and_then(|t| {
            Some(NextAttempt {
                at: report.next_attempt.clone()?,
                because: t.reason.as_str().into(),
            })
        }),
    }
}

struct Summary {
    ready: Option<bool>,
    health: Health,
    reason: Reason,
    message: String,
}

fn summary(report: &Report, trouble: Option<&Trouble>, connections: Option<bool>, running: bool) -> Summary {
    let not_ready = |health, reason, message: String| Summary {
        ready: Some(false),
        health,
        reason,
        message,
    };
    if let Some(t) = trouble {
        // A failure to learn something is no statement about what runs.
        return match t.class {
            Class::Terminal => not_ready(Health::Blocked, t.reason, t.message.clone()),
            Class::Retry if running => Summary {
                ready: None,
                health: Health::Unknown,
                reason: t.reason,
                message: t.message.clone(),
            },
            Class::Retry | Class::Wait => {
                let health = if running { Health::Degraded } else { Health::Blocked };
                not_ready(health, t.reason, t.message.clone())
            }
        };
    }
    if report.removed {
        return Summary {
            ready: Some(true),
            health: Health::Healthy,
            reason: Reason::Removed,
            message: "the drivers are removed, as managementState says".into(),
        };
    }
    if let Some(writes) = report.paused.filter(|writes| *writes > 0) {
        let message =
            format!("management is paused, and {writes} writes would be made; see vdoctl diff, and set managementState to Managed");
        return not_ready(Health::Blocked, Reason::Paused, message);
    }
    if report.deleting {
        let message = report
            .waiting
            .first()
            .map_or_else(|| "the drivers are being removed".into(), |w| w.message.clone());
        return not_ready(Health::Progressing, Reason::Deleting, message);
    }
    if let Some(wait) = report.waiting.first() {
        let failing = report.waiting.iter().find(|w| w.reason == Reason::PodsFailing);
        let wait = failing.unwrap_or(wait);
        let health = match wait.reason {
            Reason::PodsFailing => Health::Degraded,
            Reason::ApprovalRequired => Health::Blocked,
            _ => Health::Progressing,
        };
        return not_ready(health, wait.reason, wait.message.clone());
    }
    if connections == Some(false) {
        let bad = report.connections.iter().find(|c| c.ready == Some(false));
        let message = bad
            .map(|c| format!("vSphere connection {}: {}", c.name, c.message))
            .unwrap_or_default();
        return not_ready(Health::Degraded, Reason::ConnectionNotReady, message);
    }
    if let Some(d) = report.drivers.iter().find(|d| d.health.as_ref().is_none_or(|h| !h.ready)) {
        let (reason, message) = state(d);
        let health = if reason == Reason::PodsFailing {
            Health::Degraded
        } else {
            Health::Progressing
        };
        return not_ready(health, reason, message);
    }
    if report.drivers.is_empty() {
        return not_ready(Health::Progressing, Reason::Progressing, "no driver has been chosen yet".into());
    }
    let names: Vec<String> = report.drivers.iter().map(|d| format!("{} {}", short(&d.name), d.version)).collect();
    Summary {
        ready: Some(true),
        health: Health::Healthy,
        reason: Reason::Healthy,
        message: format!("{} installed and healthy", names.join(" and ")),
    }
}

/// What people call a driver.
#[must_use]
pub fn short(driver: &str) -> &str {
    match driver {
        CPI => "CPI",
        CSI => "CSI",
        other => other,
    }
}

fn connections(conditions: &mut Conditions, report: &Report) -> Option<bool> {
    let all = &report.connections;
    if let Some(none) = report.troubles.iter().find(|t| t.reason == Reason::NoConnections) {
        conditions.set(ConditionType::ConnectionsReady, Some(false), none.reason, none.message.clone());
        return Some(false);
    }
    if all.is_empty() {
        conditions.keep(
            ConditionType::ConnectionsReady,
            Reason::NotChecked,
            "no vSphere connection has been looked at yet",
        );
        return None;
    }
    let bad = all
        .iter()
        .find(|c| c.ready == Some(false))
        .or_else(|| all.iter().find(|c| c.ready.is_none()));
    match bad {
        Some(c) => {
            let message = format!("vSphere connection {} ({}): {}", c.name, c.server, c.message);
            conditions.set(ConditionType::ConnectionsReady, c.ready, Reason::ConnectionNotReady, message);
            c.ready
        }
        None => {
            let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
            conditions.set(
                ConditionType::ConnectionsReady,
                Some(true),
                Reason::Healthy,
                format!("verified: {}", names.join(", ")),
            );
            Some(true)
        }
    }
}

/// One condition for each driver.
fn drivers(conditions: &mut Conditions, report: &Report) {
    for (kind, name) in [(ConditionType::CloudProviderReady, CPI), (ConditionType::StorageReady, CSI)] {
        let wait = report.waiting.iter().find(|w| w.driver == name);
        match report.drivers.iter().find(|d| d.name == name) {
            None if report.leaving() => conditions.set(kind, Some(false), Reason::Deleting, format!("{} is removed", short(name))),
            None if report.drivers.is_empty() => conditions.keep(kind, Reason::NotChecked, "not looked at yet"),
            None => conditions.set(kind, None, Reason::NotRequested, format!("{} is not asked for", short(name))),
            Some(d) => match (&d.health, wait) {
                (None, Some(wait)) => conditions.set(kind, Some(false), wait.reason, wait.message.clone()),
                _ => {
                    let (reason, message) = state(d);
                    conditions.set(kind, Some(d.health.as_ref().is_some_and(|h| h.ready)), reason, message);
                }
            },
        }
    }
}

/// How a driver is, as a reason and a sentence.
fn state(driver: &DriverReport) -> (Reason, String) {
    let name = short(&driver.name);
    match &driver.health {
        None => (Reason::Progressing, format!("{name} {} is not installed yet", driver.version)),
        Some(health) => (health.reason, format!("{name} {}: {}", driver.version, health.message)),
    }
}

/// Whether all drivers work, as far as that is known: a reconcile that failed before it looked changes nothing about it.
fn running(old: &VDOConfigStatus, report: &Report) -> bool {
    if report.drivers.is_empty() && !report.leaving() {
        return !old.drivers.is_empty() && old.drivers.iter().all(|d| d.ready == tri(Some(true)));
    }
    !report.drivers.is_empty() && report.drivers.iter().all(|d| d.health.as_ref().is_some_and(|h| h.ready))
}

fn nodes_condition(conditions: &mut Conditions, report: &Report) {
    let Some(cluster) = &report.cluster else {
        conditions.keep(ConditionType::NodesInitialized, Reason::NotChecked, "not looked at yet");
        return;
    };
    let total = cluster.nodes.len();
    let waiting: Vec<&Node> = cluster.nodes.iter().filter(|n| n.lacks().is_some()).collect();
    match waiting.first() {
        None => conditions.set(
            ConditionType::NodesInitialized,
            Some(true),
            Reason::Healthy,
            format!("all {total} nodes are initialised"),
        ),
        Some(first) => {
            let message = format!(
                "{} of {total} nodes are not initialised; {} waits for {}",
                waiting.len(),
                first.name,
                first.lacks().unwrap_or_default()
            );
            conditions.set(ConditionType::NodesInitialized, Some(false), Reason::WaitingForNodes, message);
        }
    }
}

fn vcenter(connection: &Connection) -> VcenterStatus {
    VcenterStatus {
        connection: connection.name.clone(),
        version: connection.version.as_ref().map(|v| v.raw().to_owned()),
        build: connection.build.clone(),
        ready: tri(connection.ready).into(),
    }
}

fn tri(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    }
}

fn driver(report: &DriverReport, old: &VDOConfigStatus) -> DriverStatus {
    let known = old.drivers.iter().find(|d| d.name == report.name && d.version == report.version);
    // A report that ended before the choice does not know these; they belong to the version and are still true.
    let (available, chart, because) = match known.filter(|_| report.chart.is_empty()) {
        Some(old) => (&old.available, &old.chart, &old.because),
        None => (&report.available, &report.chart, &report.because),
    };
    DriverStatus {
        name: report.name.clone(),
        version: report.version.clone(),
        available: available.clone(),
        chart: chart.clone(),
        objects: count(report.objects),
        pods: report.health.as_ref().map(|h| h.pods.to_string()).unwrap_or_default(),
        ready: tri(report.health.as_ref().map(|h| h.ready)).into(),
        because: because.clone(),
    }
}

fn nodes(nodes: &[Node], with_csi: bool) -> NodesStatus {
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

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Whether two statuses differ in nothing but how far a work under way has come.
#[must_use]
pub fn progress_only(old: &VDOConfigStatus, new: &VDOConfigStatus) -> bool {
    let under_way = |s: &VDOConfigStatus| {
        let ready = Conditions::find(&s.conditions, ConditionType::Ready)?;
        let progress = ready.status == "False" && Reason::PROGRESS.iter().any(|r| r.as_str() == ready.reason);
        let drivers: Vec<(String, String)> = s.drivers.iter().map(|d| (d.name.clone(), d.version.clone())).collect();
        progress.then_some((s.observed_generation, s.health, drivers))
    };
    let (old, new) = (under_way(old), under_way(new));
    old.is_some() && old == new
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether somebody should look.
    pub warning: bool,
    /// The reason, from the closed list.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

/// The events of a transition: becoming ready, ceasing to be, and running into another trouble. Progress makes none.
#[must_use]
pub fn notes(old: &[Condition], new: &[Condition]) -> Vec<Note> {
    let (before, after) = (
        Conditions::find(old, ConditionType::Ready),
        Conditions::find(new, ConditionType::Ready),
    );
    let Some(after) = after else { return Vec::new() };
    let changed = before.is_none_or(|b| b.status != after.status || b.reason != after.reason);
    let working = Conditions::is_true(new, ConditionType::Reconciling) && before.is_none_or(|b| b.status != "True");
    let waits = Reason::PROGRESS.iter().any(|r| r.as_str() == after.reason);
    if !changed || (working && waits) {
        return Vec::new();
    }
    vec![Note {
        warning: after.status != "True",
        reason: after.reason.clone(),
        message: after.message.clone(),
    }]
}
