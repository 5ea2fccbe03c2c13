// SPDX-License-Identifier: Apache-2.0
//! Computes the conditions of the connections and of each driver; `ready.rs` has Ready, `preconditions.rs` the preconditions.

use super::{DriverReport, Report};
use crate::drivers::{self, short};
use vdo_api::api::{ConditionType, Conditions, Reason};

pub(super) fn connections(conditions: &mut Conditions, report: &Report) -> Option<bool> {
    let all = &report.connections;
    if let Some(none) = report.failures.iter().find(|t| t.reason == Reason::NoConnections) {
        conditions.set(ConditionType::ConnectionsReady, Some(false), none.reason, none.message.clone());
        return Some(false);
    }
    if all.is_empty() {
        conditions.keep(
            ConditionType::ConnectionsReady,
            Reason::NotChecked,
            "no vSphere connection has been checked yet",
        );
        return None;
    }
    let bad = all
        .iter()
        .find(|c| c.ready == Some(false))
        .or_else(|| all.iter().find(|c| c.ready.is_none()));
    match bad {
        Some(c) => {
            let drivers: Vec<&str> = c.drivers.iter().map(|driver| short(driver)).collect();
            let users = if drivers.is_empty() {
                String::new()
            } else {
                format!(", used by {}", drivers.join(" and "))
            };
            let others: Vec<&str> = all
                .iter()
                .filter(|o| o.name != c.name && o.ready != Some(true))
                .map(|o| o.name.as_str())
                .collect();
            let also = if others.is_empty() {
                String::new()
            } else {
                format!("; other connections that are not verified: {}", others.join(", "))
            };
            let message = format!("vSphere connection {} ({}){users}: {}{also}", c.name, c.server, c.message);
            conditions.set(ConditionType::ConnectionsReady, c.ready, Reason::ConnectionNotReady, message);
            c.ready
        }
        None => {
            let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
            conditions.set(
                ConditionType::ConnectionsReady,
                Some(true),
                Reason::Healthy,
                format!("all vSphere connections are verified: {}", names.join(", ")),
            );
            Some(true)
        }
    }
}

/// One condition for each driver of the table.
pub(super) fn drivers(conditions: &mut Conditions, report: &Report) {
    for known in drivers::KNOWN {
        match driver(known.name, report) {
            Some((holds, reason, message)) => conditions.set(known.condition, holds, reason, message),
            None => conditions.keep(known.condition, Reason::NotChecked, "not checked yet"),
        }
    }
}

/// How a driver is; `None` when that was not found out.
pub(super) fn driver(name: &str, report: &Report) -> Option<(Option<bool>, Reason, String)> {
    let short = short(name);
    let wait = report.waiting.iter().find(|w| w.driver == name);
    let removing = report.removing.iter().any(|removing| removing == name);
    let failure = report.failures.iter().find(|failure| failure.drivers.contains(name));
    let ready = |d: &DriverReport| d.health.as_ref().is_some_and(|h| h.ready);
    Some(match report.drivers.iter().find(|d| d.name == name) {
        None if report.uninstalling() => (Some(false), Reason::Deleting, format!("{short} is removed")),
        None if removing => (
            None,
            Reason::Removed,
            format!("{short} is removed, because its managementState is Removed"),
        ),
        None => match failure {
            Some(failure) => (Some(false), failure.reason, failure.message.clone()),
            None if report.drivers.is_empty() => return None,
            None => (None, Reason::NotRequested, format!("{short} is not requested")),
        },
        Some(_) if removing => {
            let message = wait.map_or_else(|| format!("{short} is being removed"), |wait| wait.message.clone());
            (Some(false), Reason::Deleting, message)
        }
        Some(d) if report.unrequested.iter().any(|kept| kept == name) => {
            let (_, message) = state(d);
            (Some(ready(d)), Reason::NotRequested, format!("{message}; {}", unrequested(name)))
        }
        Some(d) => match (&d.health, wait) {
            (None, Some(wait)) => (Some(false), wait.reason, wait.message.clone()),
            _ => {
                let (reason, message) = state(d);
                (Some(ready(d)), reason, message)
            }
        },
    })
}

/// What there is to do about a driver that is installed and not asked for.
pub(super) fn unrequested(driver: &str) -> String {
    let field = drivers::field(driver);
    format!(
        "the driver is not requested, but stays installed: set {field} to manage the driver, or set {field}.managementState to Removed to \
         remove the driver"
    )
}

/// How a driver is, as a reason and a sentence.
pub(super) fn state(driver: &DriverReport) -> (Reason, String) {
    let name = short(&driver.name);
    match &driver.health {
        None => (Reason::Progressing, format!("{name} {} is not installed yet", driver.version)),
        Some(health) => (health.reason, format!("{name} {}: {}", driver.version, health.message)),
    }
}
