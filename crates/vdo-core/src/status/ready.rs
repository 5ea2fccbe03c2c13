use super::conditions::state;
use super::preconditions::hindrance;
use super::rows::tri;
use super::{Failure, Report};
use crate::drivers::short;
use vdo_api::api::{Class, Health, Reason, VDOConfigStatus};

/// The Ready condition and the one word.
pub(super) struct Summary {
    pub ready: Option<bool>,
    pub health: Health,
    pub reason: Reason,
    pub message: String,
}

pub(super) fn summary(report: &Report, failure: Option<&Failure>, connections: Option<bool>, running: bool) -> Summary {
    let not_ready = |health, reason, message: String| Summary {
        ready: Some(false),
        health,
        reason,
        message,
    };
    if let Some(t) = failure {
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
    if report.paused.is_some()
        && let Some((reason, message)) = report.drivers.iter().map(state).find(|(reason, _)| is_fault(*reason))
    {
        let message = format!("{message}; management is paused, so it is not repaired");
        return not_ready(Health::Degraded, reason, message);
    }
    if let Some(writes) = report.paused.filter(|writes| *writes > 0) {
        let changes = vdo_api::types::count(writes, "change");
        let message = format!("management is paused, and {changes} would be made; see vdoctl diff, and set managementState to Managed");
        return not_ready(Health::Paused, Reason::Paused, message);
    }
    if report.deleting {
        let message = report
            .waiting
            .first()
            .map_or_else(|| "the drivers are being removed".into(), |w| w.message.clone());
        return not_ready(Health::Progressing, Reason::Deleting, message);
    }
    let starting = |reason: Reason| matches!(reason, Reason::WaitingForPods | Reason::Progressing | Reason::WaitingForDriver);
    let hindered = |reason: Reason| hindrance(report).filter(|_| starting(reason));
    if let Some(wait) = report.waiting.first() {
        let failing = report.waiting.iter().find(|w| w.reason == Reason::PodsFailing);
        let wait = failing.unwrap_or(wait);
        if let Some(cause) = hindered(wait.reason) {
            return not_ready(Health::Progressing, cause.reason, cause.message);
        }
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
        if let Some(cause) = hindered(reason) {
            return not_ready(Health::Progressing, cause.reason, cause.message);
        }
        let health = if is_fault(reason) { Health::Degraded } else { Health::Progressing };
        return not_ready(health, reason, message);
    }
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
    matches!(reason, Reason::PodsFailing | Reason::WorkloadMissing)
}

/// Whether all drivers work, as far as that is known: a reconcile that failed before it looked changes nothing about it.
pub(super) fn running(old: &VDOConfigStatus, report: &Report) -> bool {
    if report.drivers.is_empty() && !report.uninstalling() {
        return !old.drivers.is_empty() && old.drivers.iter().all(|d| d.ready == tri(Some(true)));
    }
    !report.drivers.is_empty() && report.drivers.iter().all(|d| d.health.as_ref().is_some_and(|h| h.ready))
}
