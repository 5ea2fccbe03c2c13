// SPDX-License-Identifier: Apache-2.0
//! Computes the next status of a VDOConfig from the last one and a report, with drift, Upgradeable, OptionsSupported and UpgradeAvailable.

use super::Report;
use super::conditions::{connections, drivers};
use super::confirmed::last_confirmed;
use super::preconditions::preconditions;
use super::progress_deadline::{is_over, waiting_since};
use super::ready::{activity, running, summary};
use super::rows::{count, driver, nodes, vcenter};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use vdo_api::api::{
    Class, ConditionType, Conditions, DriftStatus, Health, InventoryStatus, KubernetesStatus, NextAttempt, Reason, VDOConfigStatus,
};

/// The next status. Parts that this reconcile did not reach keep what the last one knew.
#[must_use]
pub fn fold(old: &VDOConfigStatus, report: &Report, now: &Time) -> VDOConfigStatus {
    let mut conditions = Conditions::new(old.conditions.clone(), report.generation, now.clone());
    let failure = report.failures.first();
    let connections = connections(&mut conditions, report);
    drivers(&mut conditions, report);
    preconditions(&mut conditions, report);
    upgradeable(&mut conditions, report);
    newer(&mut conditions, old, report);
    if let Some(window) = &report.window {
        conditions.set(window.kind, window.holds, window.reason, window.message.clone());
    }
    if let Some(back) = report.failures.iter().find(|failure| failure.reason == Reason::RolledBack) {
        conditions.set(ConditionType::RolledBack, Some(true), back.reason, back.message.clone());
    }
    options(&mut conditions, old, report);
    let mut next = parts(old, report, now);
    let mut summary = summary(report, failure, connections, running(old, report));
    let approval = report
        .waiting
        .first()
        .filter(|w| w.reason == Reason::ApprovalRequired && failure.is_none());
    // What waits for a person is not late.
    let waits = summary.ready == Some(false) && failure.is_none() && report.paused.is_none() && approval.is_none();
    next.waiting_since = waits.then(|| waiting_since(old, &next, now));
    let over = next.waiting_since.clone().filter(|since| is_over(since, now, report.deadline));
    if over.is_some() && summary.health == Health::Progressing {
        summary.health = Health::Blocked;
    }
    conditions.set(ConditionType::Ready, summary.ready, summary.reason, summary.message.clone());
    activity(&mut conditions, report, (failure, approval), &summary, over.as_ref());
    next.health = Some(summary.health);
    next.conditions = conditions.finish();
    next.last_confirmed = last_confirmed(old, &next, now);
    next
}

/// Everything but the conditions and what follows from them.
fn parts(old: &VDOConfigStatus, report: &Report, now: &Time) -> VDOConfigStatus {
    let failure = report.failures.first();
    VDOConfigStatus {
        observed_generation: report.generation,
        last_handled_reconcile_at: report.reconcile_at.clone(),
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
        drivers: if report.drivers.is_empty() && !report.uninstalling() {
            old.drivers.clone()
        } else {
            report.drivers.iter().map(|d| driver(d, report, old)).collect()
        },
        nodes: report
            .cluster
            .as_ref()
            .map(|c| nodes(&c.nodes, &report.drivers))
            .or_else(|| old.nodes.clone()),
        plan: report.plan.clone().or_else(|| old.plan.clone().filter(|_| failure.is_some())),
        inventory: report
            .inventory
            .clone()
            .map(|(name, objects)| InventoryStatus {
                name,
                objects: count(objects),
            })
            .or_else(|| old.inventory.clone().filter(|_| !report.removed)),
        cluster_id: report
            .cluster_id
            .clone()
            .or_else(|| old.cluster_id.clone().filter(|_| !report.removed)),
        drift: drift(old, report, now),
        next_attempt: failure.filter(|t| t.class == Class::Retry).and_then(|t| {
            Some(NextAttempt {
                at: report.next_attempt.clone()?,
                because: t.reason.as_str().into(),
            })
        }),
        ..VDOConfigStatus::default()
    }
}

fn upgradeable(conditions: &mut Conditions, report: &Report) {
    match &report.upgradeable {
        Some(next) => conditions.set(ConditionType::Upgradeable, Some(next.fits), next.reason, next.message.clone()),
        None => conditions.keep(ConditionType::Upgradeable, Reason::NotChecked, "not checked yet"),
    }
}

/// Whether the operator knows every option that is set.
fn options(conditions: &mut Conditions, old: &VDOConfigStatus, report: &Report) {
    const OPTIONS: ConditionType = ConditionType::OptionsSupported;
    match &report.ignored {
        Some(ignored) if ignored.is_empty() => {}
        Some(ignored) => conditions.set(OPTIONS, Some(false), Reason::OptionNotSupported, ignored.join("; ")),
        None if Conditions::find(&old.conditions, OPTIONS).is_none() => {}
        None => conditions.keep(OPTIONS, Reason::NotChecked, "not checked yet"),
    }
}

/// UpgradeAvailable, while that is so.
fn newer(conditions: &mut Conditions, old: &VDOConfigStatus, report: &Report) {
    const AVAILABLE: ConditionType = ConditionType::UpgradeAvailable;
    match report.newer.as_deref() {
        Some([]) => {}
        Some([first, rest @ ..]) => {
            let all = rest
                .iter()
                .fold(first.message.clone(), |all, next| format!("{all}; {}", next.message));
            conditions.set(AVAILABLE, Some(true), first.reason, all);
        }
        None if report.uninstalling() || Conditions::find(&old.conditions, AVAILABLE).is_none() => {}
        None => conditions.keep(AVAILABLE, Reason::NotChecked, "not checked yet"),
    }
}

/// How many changes by others are kept.
const DRIFT_KEPT: usize = 10;

/// What was brought back, the newest last.
fn drift(old: &VDOConfigStatus, report: &Report, now: &Time) -> Vec<DriftStatus> {
    let new = report.drift.iter().map(|drift| DriftStatus {
        object: drift.id.to_string(),
        path: drift.path.clone(),
        wanted: drift.wanted.clone(),
        found: drift.found.clone(),
        by: drift.manager.clone(),
        changed: drift.at.map(Time),
        repaired: now.clone(),
    });
    let all: Vec<DriftStatus> = old.drift.iter().cloned().chain(new).collect();
    all[all.len().saturating_sub(DRIFT_KEPT)..].to_vec()
}
