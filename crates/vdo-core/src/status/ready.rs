// SPDX-License-Identifier: Apache-2.0
//! The conditions Ready, Reconciling and Stalled, and the health word of a VDOConfig: which failure, wait or driver is reported first.

use super::conditions::state;
use super::preconditions::hindrance;
use super::rows::tri;
use super::{DriverReport, Failure, Report};
use crate::drivers::short;
use crate::plan::Wait;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use vdo_api::api::{Class, ConditionType, Conditions, Health, Reason, VDOConfigStatus};

/// The Ready condition and the one word.
pub(super) struct Summary {
    pub ready: Option<bool>,
    pub health: Health,
    pub reason: Reason,
    pub message: String,
}

pub(super) fn summary(report: &Report, failure: Option<&Failure>, connections: Option<bool>, running: bool) -> Summary {
    // A failure is reported first, then what the specification asks for, then what is waited for, then what runs.
    failure
        .map(|failure| failed(failure, running))
        .or_else(|| asked(report))
        .or_else(|| waiting(report))
        .or_else(|| disconnected(report, connections))
        .or_else(|| unhealthy(report))
        .unwrap_or_else(|| healthy(report))
}

/// Reconciling and Stalled, of which never both are True. What is stuck is so by a failure, or for want of an approval.
pub(super) fn activity(
    conditions: &mut Conditions,
    report: &Report,
    (failure, approval): (Option<&Failure>, Option<&Wait>),
    summary: &Summary,
    over: Option<&Time>,
) {
    let (working, stuck) = (ConditionType::Reconciling, ConditionType::Stalled);
    let terminal = failure.filter(|t| t.class == Class::Terminal);
    if let Some(wait) = approval {
        conditions.set(working, Some(false), wait.reason, wait.message.clone());
    } else if report.paused.is_some() {
        conditions.set(working, Some(false), Reason::Paused, "management is paused; nothing is written");
    } else if summary.ready != Some(true) && terminal.is_none() && over.is_none() {
        conditions.set(working, Some(true), summary.reason, summary.message.clone());
    } else {
        conditions.set(working, Some(false), Reason::Idle, "no change is in progress");
    }
    let known = terminal
        .map(|t| (t.reason, &t.message))
        .or(approval.map(|w| (w.reason, &w.message)));
    match (known, over) {
        (Some((reason, message)), _) => conditions.set(stuck, Some(true), reason, message.clone()),
        (None, Some(since)) => {
            let message = format!("no progress since {}: {}", since.0, summary.message);
            conditions.set(stuck, Some(true), Reason::DeadlineExceeded, message);
        }
        (None, None) => conditions.set(stuck, Some(false), Reason::Idle, "nothing is stuck"),
    }
}

fn not_ready(health: Health, reason: Reason, message: String) -> Summary {
    Summary {
        ready: Some(false),
        health,
        reason,
        message,
    }
}

/// A failure to learn something is not a statement about what runs.
fn failed(failure: &Failure, running: bool) -> Summary {
    let (reason, message) = (failure.reason, failure.message.clone());
    match failure.class {
        Class::Terminal => not_ready(Health::Blocked, reason, message),
        Class::Retry if running => Summary {
            ready: None,
            health: Health::Unknown,
            reason,
            message,
        },
        Class::Retry | Class::Wait => {
            let health = if running { Health::Degraded } else { Health::Blocked };
            not_ready(health, reason, message)
        }
    }
}

/// Removal and pause, as managementState has them.
fn asked(report: &Report) -> Option<Summary> {
    if report.removed {
        return Some(Summary {
            ready: Some(true),
            health: Health::Healthy,
            reason: Reason::Removed,
            message: "the drivers are removed, because managementState is Removed".into(),
        });
    }
    if report.paused.is_some()
        && let Some((reason, message)) = report.drivers.iter().map(state).find(|(reason, _)| is_fault(*reason))
    {
        let message = format!("{message}; management is paused, so the operator does not repair the driver");
        return Some(not_ready(Health::Degraded, reason, message));
    }
    if let Some(writes) = report.paused.filter(|writes| *writes > 0) {
        let changes = vdo_api::types::count(writes, "change");
        let message = format!(
            "management is paused, and {changes} would be made; vdoctl diff shows the changes; to make the changes, set \
             managementState to Managed"
        );
        return Some(not_ready(Health::Paused, Reason::Paused, message));
    }
    let first = report.waiting.first();
    let message = || first.map_or_else(|| "the drivers are being removed".into(), |wait| wait.message.clone());
    report.deleting.then(|| not_ready(Health::Progressing, Reason::Deleting, message()))
}

/// What keeps from starting what has this reason.
fn hindered(report: &Report, reason: Reason) -> Option<Summary> {
    let starting = matches!(reason, Reason::WaitingForPods | Reason::Progressing | Reason::WaitingForDriver);
    let cause = hindrance(report).filter(|_| starting)?;
    Some(not_ready(Health::Progressing, cause.reason, cause.message))
}

/// What is waited for; pods that fail come before anything else.
fn waiting(report: &Report) -> Option<Summary> {
    let failing = report.waiting.iter().find(|wait| wait.reason == Reason::PodsFailing);
    let wait = failing.or(report.waiting.first())?;
    let summary = || {
        let health = match wait.reason {
            Reason::PodsFailing => Health::Degraded,
            Reason::ApprovalRequired | Reason::NodesOfOtherProvider => Health::Blocked,
            Reason::NoEligibleNode => Health::Degraded,
            _ => Health::Progressing,
        };
        not_ready(health, wait.reason, wait.message.clone())
    };
    Some(hindered(report, wait.reason).unwrap_or_else(summary))
}

/// A vSphere connection that does not work.
fn disconnected(report: &Report, connections: Option<bool>) -> Option<Summary> {
    if connections != Some(false) {
        return None;
    }
    let bad = report.connections.iter().find(|c| c.ready == Some(false));
    let message = bad.map(|c| format!("vSphere connection {}: {}", c.name, c.message));
    Some(not_ready(Health::Degraded, Reason::ConnectionNotReady, message.unwrap_or_default()))
}

/// The first driver that is not healthy.
fn unhealthy(report: &Report) -> Option<Summary> {
    let unhealthy = |d: &&DriverReport| d.health.as_ref().is_none_or(|h| !h.ready);
    let (reason, message) = state(report.drivers.iter().find(unhealthy)?);
    let health = if is_fault(reason) { Health::Degraded } else { Health::Progressing };
    Some(hindered(report, reason).unwrap_or_else(|| not_ready(health, reason, message)))
}

fn healthy(report: &Report) -> Summary {
    if report.drivers.is_empty() {
        return not_ready(Health::Progressing, Reason::Progressing, "no driver has been chosen yet".into());
    }
    let names: Vec<String> = report.drivers.iter().map(|d| format!("{} {}", short(&d.name), d.version)).collect();
    Summary {
        ready: Some(true),
        health: if report.paused.is_some() { Health::Paused } else { Health::Healthy },
        reason: Reason::Healthy,
        message: format!("{} installed and healthy", names.join(" and ")),
    }
}

/// Whether a driver with this reason fails, and does not only come up.
fn is_fault(reason: Reason) -> bool {
    matches!(reason, Reason::PodsFailing | Reason::WorkloadMissing | Reason::NoEligibleNode)
}

/// Whether all drivers work, as far as that is known: a reconcile that failed before it looked changes nothing about it.
pub(super) fn running(old: &VDOConfigStatus, report: &Report) -> bool {
    if report.drivers.is_empty() && !report.uninstalling() {
        return !old.drivers.is_empty() && old.drivers.iter().all(|d| d.ready == tri(Some(true)));
    }
    !report.drivers.is_empty() && report.drivers.iter().all(|d| d.health.as_ref().is_some_and(|h| h.ready))
}
