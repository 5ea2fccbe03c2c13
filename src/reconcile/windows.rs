// SPDX-License-Identifier: Apache-2.0
//! Holds automatic changes of installed drivers until one of `spec.maintenanceWindows` opens; reports MaintenanceWindow (pure).
//!
//! A user requests a change by a pin, by a field that the installed version cannot honour, and by a retry of a failed change; such changes
//! do not wait. With `spec.approval: Manual` nothing waits for a window: the approval is the request. A change that has started is
//! completed: what is kept is the state that was applied last.

use super::driver_run::{DriverRuns, Source};
use super::planned::Planned;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::{Approval, ConditionType, RETRY_AT, Reason, VDOConfig};
use vdo_api::types::{Digest, DriverName, DriverVersion, Remedy as _};
use vdo_core::chart::Chart;
use vdo_core::drivers::short;
use vdo_core::matrix::{self, DriverRequest, Held, Index, Pick, Query, Rejected, Rejection};
use vdo_core::plan::{Inventory, Revision, Wait};
use vdo_core::status::{Precondition, Report};
use vdo_core::window_schedule::{Standing, standing};
use vdo_source::fetch::ChartRepository;

/// No window is open, or one of them cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Closed {
    /// Which of the two.
    pub reason: Reason,
    /// Until when automatic changes wait, as the end of "waits".
    pub waits: String,
}

/// What automatic changes wait for; `None` where they do not.
pub(super) fn closed(config: &VDOConfig, now: Timestamp) -> Option<Closed> {
    if config.spec.approval == Approval::Manual {
        return None;
    }
    match standing(&config.spec.maintenance_windows, now) {
        Ok(None | Some(Standing::Open { .. })) => None,
        Ok(Some(Standing::Closed { window, opens })) => Some(Closed {
            reason: Reason::OutsideMaintenanceWindow,
            waits: format!("until {opens}, when the maintenance window {window} opens"),
        }),
        Err(error) => Some(Closed {
            reason: Reason::MaintenanceWindowInvalid,
            waits: format!("until the maintenance windows are corrected: {error}"),
        }),
    }
}

/// Reports how the windows are, and when that changes.
pub fn report_windows(config: &VDOConfig, now: Timestamp, report: &mut Report) {
    const KIND: ConditionType = ConditionType::MaintenanceWindow;
    let none = match config.spec.approval {
        Approval::Manual => "; no change waits for a window, because spec.approval is Manual",
        Approval::Automatic => "",
    };
    report.window = match standing(&config.spec.maintenance_windows, now) {
        Ok(None) => return,
        Ok(Some(standing)) => {
            let changes = standing.changes();
            report.look_again = report.look_again.into_iter().chain([changes]).min();
            Some(match standing {
                Standing::Open { window, until } => Precondition {
                    reason: Reason::WindowOpen,
                    ..Precondition::holds(KIND, format!("the maintenance window {window} is open until {until}"))
                },
                Standing::Closed { window, opens } => {
                    let message = format!("the next maintenance window, {window}, opens at {opens}{none}");
                    Precondition::fails(KIND, Reason::OutsideMaintenanceWindow, message)
                }
            })
        }
        Err(error) => {
            let remedy = error.remedy().unwrap_or_default();
            let message = format!(
                "the maintenance windows cannot be used: {error}; no driver changes automatically until the windows are corrected{none}. {remedy}"
            );
            Some(Precondition::unknown(KIND, Reason::MaintenanceWindowInvalid, message))
        }
    };
}

/// The request with the versions that stay although others would be chosen; `None` where nothing is held.
pub(super) fn hold(
    closed: &Closed,
    (config, inventory, runs): (&VDOConfig, &Inventory, &DriverRuns),
    index: &Index,
    query: &Query<'_>,
) -> Option<BTreeMap<DriverName, DriverRequest>> {
    let chosen = matrix::resolve(index, query).ok()?;
    let mut drivers = query.drivers.clone();
    for (driver, pick) in chosen.picks {
        let paused = runs.get(&driver).is_some_and(|run| run.is_paused());
        let newest = newest(inventory, &driver).filter(|newest| !paused && !is_retried(config, newest));
        let at = newest.and_then(|newest| newest.about.version.parse::<DriverVersion>().ok());
        let (Some(at), Some(request)) = (at, drivers.get_mut(&driver)) else {
            continue;
        };
        if at != pick.version && request.pin.is_none() && !is_needed(&pick) {
            request.held = Some(Held {
                at,
                before: pick.version,
                waits: closed.waits.clone(),
            });
        }
    }
    Some(drivers)
}

/// Keeps the chart that was applied last where the matrix has another one of the same version. What a user changes is still rendered with it.
pub(super) fn keep_charts(closed: &Closed, config: &VDOConfig, repository: &ChartRepository, inventory: &Inventory, runs: &mut DriverRuns) {
    for run in runs.iter_mut().filter(|run| run.source.is_none() && !run.is_paused()) {
        let Some(newest) = newest(inventory, &run.name).filter(|newest| !is_retried(config, newest)) else {
            continue;
        };
        let about = &newest.about;
        let (Some(pick), Ok(digest)) = (&mut run.pick, about.chart.parse::<Digest>()) else {
            continue;
        };
        if pick.version.to_string() != about.version || pick.chart.digest == digest {
            continue;
        }
        // A version that waits says more.
        if !pick
            .waits
            .as_ref()
            .is_some_and(|waits| matches!(waits.reason, Rejection::Held { .. }))
        {
            pick.waits = Some(Rejected {
                version: pick.version.clone(),
                reason: Rejection::Held {
                    waits: closed.waits.clone(),
                },
            });
        }
        run.source = Some(match kept(&digest, repository, inventory) {
            Some(chart) => {
                pick.chart.digest = digest;
                Source::Chart(chart)
            }
            None => Source::LastApplied,
        });
    }
}

/// A chart that the inventory keeps, opened.
fn kept(digest: &Digest, repository: &ChartRepository, inventory: &Inventory) -> Option<Arc<Chart>> {
    let mut stored = [&inventory.matrix, &inventory.embedded].into_iter().flatten();
    let bytes = stored.find_map(|matrix| matrix.charts.get(digest))?;
    repository.restore(digest, bytes)
}

/// The state that was applied last.
fn newest<'a>(inventory: &'a Inventory, driver: &str) -> Option<&'a Revision> {
    inventory.history.get(driver)?.last()
}

/// Whether a user wants a change tried again that failed, and that was not done since.
fn is_retried(config: &VDOConfig, newest: &Revision) -> bool {
    let rollback = newest.about.rollback.as_ref();
    let failed = newest.failure.is_some() || rollback.is_some_and(|rollback| rollback.from.is_some());
    let asked = config.annotations().get(RETRY_AT).and_then(|at| at.parse::<Timestamp>().ok());
    failed && asked.is_some_and(|at| at > newest.time)
}

/// Whether the installed version cannot do what the specification or the connections ask for: a user has changed these.
fn is_needed(pick: &Pick) -> bool {
    matches!(
        pick.leaves,
        Some(
            Rejection::Feature { .. }
                | Rejection::FeatureVsphere { .. }
                | Rejection::OneVcenter { .. }
                | Rejection::Requires { .. }
                | Rejection::RequiresVersion { .. }
        )
    )
}

/// What each driver whose change is held waits for.
pub(super) fn waits(closed: Option<&Closed>, runs: &DriverRuns) -> Vec<Wait> {
    let held = |(driver, pick): (DriverName, &Pick)| {
        let Rejected { version, reason } = pick.waits.as_ref()?;
        let Rejection::Held { .. } = reason else { return None };
        let what = if *version == pick.version { "another chart of " } else { "" };
        Some(Wait {
            message: format!("{what}{} {version} {reason}", short(&driver)),
            driver,
            reason: closed?.reason,
        })
    };
    let picks = runs.iter().filter_map(|run| Some((run.name.clone(), run.pick.as_ref()?)));
    picks.filter_map(held).collect()
}

impl Planned {
    /// What each driver whose change is held until a maintenance window opens waits for.
    #[must_use]
    pub fn held(&self) -> Vec<Wait> {
        waits(self.choice.window.as_ref(), &self.runs)
    }
}

#[cfg(test)]
mod tests;
