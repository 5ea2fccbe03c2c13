use super::Report;
use super::conditions::{connections, drivers};
use super::parts::{count, driver, nodes, vcenter};
use super::preconditions::preconditions;
use super::summary::{running, summary};
use crate::api::{Class, ConditionType, Conditions, InventoryStatus, KubernetesStatus, NextAttempt, Reason, VDOConfigStatus};
use crate::types::CSI;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The next status. Parts that this reconcile did not reach keep what the last one knew.
#[must_use]
pub fn fold(old: &VDOConfigStatus, report: &Report, now: &Time) -> VDOConfigStatus {
    let mut conditions = Conditions::new(old.conditions.clone(), report.generation, now.clone());
    let trouble = report.troubles.first();
    let connections = connections(&mut conditions, report);
    drivers(&mut conditions, report);
    preconditions(&mut conditions, report);
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
