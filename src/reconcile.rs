// SPDX-License-Identifier: Apache-2.0
//! One reconcile: calls the phases below in order, from the observed to the desired state. `vdoctl` runs the same phases and stops earlier.
//!
//! ```text
//! observe  effect  cluster, inventory, live objects, health of what is installed         -> ClusterState
//! site     effect  vSphere connections, cluster id; what is asked for, driver by driver   -> Site, DriverRuns
//! choose   effect  matrix × cluster × vCenters × specification                            -> each run's version
//!          pure    changes that no one asked for × maintenance windows                    -> versions that stay
//!          pure    history × specification                                                -> revisions instead of versions
//!          pure    a chart that changed × maintenance windows                             -> charts that stay
//! load     effect  charts by digest                                                       -> each run's chart
//! webhook  effect  the certificate of an admission webhook                                -> its values
//! render   pure    charts × values, patched, stamped                                      -> each run's objects
//! permit   effect  rights, what an administrator brings, other managers                   -> runs that fail or wait
//! keep     pure    what was applied last of every other driver that is installed          -> its objects
//! look     effect  live objects that are not in the inventory yet                         -> Observed
//! plan     pure    desired × live × inventory, with every gate                            -> Plan
//! content  effect  objects × what the drivers' charts let them have                       -> runs that wait
//! dry run  effect  the whole plan, tried on the server before its first write             -> Plan
//! approve  pure    which steps wait for a person                                          -> Plan
//! check    pure    what may be written now, held against the rules                        -> steps
//! apply    effect  the only writes there are
//! report   pure    on every path; then one effect
//! ```
//!
//! `found.take(phase)?` gives the value of a phase and joins what the phase has to report.

mod acting_config;
mod apply;
mod approval;
mod chart_content_check;
mod choose;
mod cluster_id;
pub mod connection;
mod drift_managers;
mod driver_rights_missing;
mod driver_run;
mod dry_run;
mod error;
mod gates;
mod history_record;
mod live_objects;
mod load;
mod lost_settings;
mod matrix_fallback;
mod matrix_source;
mod observe;
mod permit;
mod phase;
mod planned;
mod preconditions;
mod render;
mod requests;
mod requeue_after;
mod rights;
mod rollback;
mod upgradeable_kubernetes;
#[cfg(test)]
mod scripts {
    mod tests;
}
mod change_affects_volumes;
mod config_used_by_workloads;
mod revision_kinds_served;
mod risky_changes;
mod site;
mod stopwatch;
mod uninstall;
mod upgrade_available;
pub mod webhook;
mod windows;

pub use acting_config::acting;
pub use apply::state_secret::inventory;
pub use chart_content_check::SoundContents;
pub use choose::policy;
pub use driver_rights_missing::lacking;
pub use driver_run::{DriverFailure, DriverRun, DriverRuns};
pub use dry_run::cache::{DryRunCache, Refusal};
pub use dry_run::{DryRun, Scope, dry_run};
pub use error::ReconcileError;
pub use matrix_source::{CONTENTS, PART, named, supply};
pub use observe::cluster::{apply_set, configs, nodes};
pub use observe::connections::{connection_objects, connections_watch, neighbours, port, trust, vcenter_version};
pub use observe::crash_logs::CrashLogs;
pub use observe::installed::{attributed, static_pods};
pub use observe::{ClusterState, Recovered, observe};
pub use phase::{Phase, Stopped};
pub use planned::Planned;
pub use preconditions::foreign_drivers::rivals;
pub use preconditions::shared_volumes::hold_attached;
pub use preconditions::snapshot_controller;
pub use preconditions::upgrade::hold_upgrades;
pub use render::RenderCache;
pub use requests::asked;
pub use requeue_after::{NextRun, Pacing, next_run};
pub use revision_kinds_served::unserved_kinds;
pub use rights::{Account, Permitted, Rights, RightsError, Versions, add_missing, more_rights, rights, rights_without_policy};
pub use risky_changes::{TakenAway, taken_away};
pub use uninstall::{is_uninstalled, uninstallation};
pub use windows::report_windows;

use acting_config::not_active;
use apply::{delete, former};
use observe::{crash_logs, definitions, recover_inventory};
use phase::Collect;
use preconditions::images;
use render::RenderInput;
use stopwatch::Stopwatch;

use crate::cluster::{Reader, Writer};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{Client, ResourceExt};
use std::collections::BTreeSet;
use std::time::Duration;
use vdo_api::api::{Class, ManagementState, Reason, STATE, VDOConfig};
use vdo_api::types::KubernetesVersion;
use vdo_core::drivers;
use vdo_core::plan::{self, Contention, Plan, RepairHistory, Step};
use vdo_core::status::{Failure, Report};
use vdo_source::fetch::ChartRepository;

/// The ports of a reconcile.
pub struct Ports {
    /// For reads that no watch can answer.
    pub client: Client,
    /// For everything else that is read.
    pub reader: Reader,
    /// For writes.
    pub writer: Writer,
    /// Where charts and the matrix come from.
    pub repository: ChartRepository,
    /// The objects that were made last.
    pub renders: RenderCache,
    /// The charts that the operator has the rights for.
    pub permitted: Permitted,
    /// The objects that have the content of their charts.
    pub contents: SoundContents,
    /// What containers that fail said last.
    pub evidence: CrashLogs,
    /// What the server answered in dry runs; `None` without dry runs.
    pub dry_runs: Option<DryRunCache>,
}

/// For whom the phases run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The operator, which makes the writes of a plan.
    Operator,
    /// A command, which shows them.
    Command,
}

/// What is known when a reconcile begins.
pub struct ReconcileInput<'a> {
    /// For whom.
    pub mode: Mode,
    /// The object.
    pub config: &'a VDOConfig,
    /// The name of the VDOConfig that acts.
    pub acting: &'a str,
    /// The version of the API server.
    pub kubernetes: KubernetesVersion,
    /// The time.
    pub now: Timestamp,
    /// The repairs of the past, which tell a contention from a slip.
    pub history: &'a RepairHistory,
    /// Drivers that do not get well and are due to be applied once more.
    pub force_reapply: &'a BTreeSet<String>,
    /// How long a deletion may take before the status says what blocks it.
    pub timeout: Duration,
    /// Whether the next attempt is due that the last status promised; before that no one asks again for what was refused.
    pub due: bool,
}

/// Runs one increment and says what is to be reported, whatever stops it.
pub async fn reconcile(input: &ReconcileInput<'_>, ports: &Ports) -> Report {
    let config = input.config;
    let generation = config.metadata.generation;
    if config.name_any() != input.acting {
        return Report {
            generation,
            failures: vec![not_active(input.acting)],
            ..Report::default()
        };
    }
    if let Some(memory) = &ports.dry_runs {
        memory.only_of(config.metadata.uid.as_deref().unwrap_or_default());
    }
    let result = match definitions::check(&ports.reader).await {
        Err(error) => Err(error.into()),
        Ok(()) if is_uninstalled(config) => uninstall::uninstall(input, ports).await,
        Ok(()) => advance(input, ports).await,
    };
    let mut report = result.map_or_else(Stopped::into_report, |((), found)| found);
    report.generation = generation;
    report.deadline = SignedDuration::try_from(config.spec.deadline()).ok();
    report.gone &= config.metadata.deletion_timestamp.is_some();
    crash_logs::added(ports, report).await // effect: reads logs
}

async fn advance(input: &ReconcileInput<'_>, ports: &Ports) -> Phase<()> {
    let config = input.config;
    let mut watch = Stopwatch::start();
    let state = observe(&ports.reader, config, input.kubernetes.clone()).await?;
    let mut found = state.findings();
    found.stages.push(watch.lap("observe"));
    found.drivers = state.reports();
    let paused = config.spec.management_state == ManagementState::Paused;
    if state.recovered.is_some() && !paused {
        found.take(recover_inventory::record(config, ports, &state).await)?;
        return Ok(((), found));
    }
    if state.recovered.is_none() && !state.inventory.objects.is_empty() {
        former::forget(ports, config, &state.apply_set).await;
    }
    let mut planned = found.take(plan_drivers(input, ports, &state).await)?;
    if paused {
        found.paused = Some(planned.plan.steps.len());
        found.waiting.append(&mut planned.plan.waiting);
        return Ok(((), found));
    }
    found.failures.extend(blocked(&planned.plan));
    let tried = found.take(attempt(input, ports, &state, &mut planned).await)?;
    found.take(rollback::give_up(input, ports, &state, &mut planned, tried.as_ref()).await)?;
    found.waiting.append(&mut planned.plan.waiting);
    found.contentions = planned.plan.pause_contended(input.history, input.now);
    found.failures.extend(found.contentions.iter().map(contended));
    let steps = planned.steps(&state);
    found.or_stop(plan::check(&steps, &planned.desired, &state.inventory))?;
    found.or_stop(fits(&steps))?;
    found.waiting.extend(plan::deleting(&steps));
    if steps.iter().any(Step::removes) && !found.or_stop(delete::is_current(config, ports).await)? {
        found.waiting.push(delete::outdated(config));
        return Ok(((), found));
    }
    found.take(apply::write(config, ports, &state, steps).await)?;
    Ok(((), found))
}

/// Plans every driver, without writing anything: the arrows from the site to the plan. A command stops here.
///
/// # Errors
/// With what concerns all drivers, and what was found until then.
pub async fn plan_drivers(input: &ReconcileInput<'_>, ports: &Ports, state: &ClusterState) -> Phase<Planned> {
    let config = input.config;
    let mut found = Report::default();
    let mut watch = Stopwatch::start();
    let (site, mut runs) = found.take(site::site(input, ports, state).await)?;
    let choice = found.take(choose::choose(input, ports, state, &site, &mut runs).await)?;
    found.stages.push(watch.lap("resolve"));
    load::load(ports, &mut runs).await;
    found.stages.push(watch.lap("fetch"));
    let (webhook, precondition) = webhook::serve(input, ports, state, &mut runs).await;
    found.preconditions.extend(precondition);
    let render_input = RenderInput::of(state, &site, &choice, webhook.as_ref());
    let random = render::render(&render_input, &mut runs, &ports.renders);
    found.ignored = Some(
        runs.iter()
            .filter_map(|run| run.chart())
            .flat_map(|chart| drivers::ignored(&config.spec, chart))
            .collect(),
    );
    found.preconditions.push(images::mirrored(
        &config.spec,
        choice.lock.as_deref(),
        runs.iter().flat_map(|run| &run.objects),
    ));
    found.stages.push(watch.lap("render"));
    found.take(permit::permit(input, ports, state, (&site, &choice), &mut runs).await)?;
    planned::keep(&render_input, state, &mut runs);
    let record = history_record::record(config, (&ports.repository, &ports.renders), state, (&choice, &runs), random);
    let mut planned = Planned::new(config, state, (site, choice, runs), webhook, record);
    found
        .preconditions
        .push(preconditions::control_plane(&planned.desired, &state.cluster.nodes));
    found.or_stop(live_objects::look(input, ports, state, &mut planned).await)?;
    planned.replan(state);
    found.failures.extend(chart_content_check::refuse(ports, state, &mut planned).await);
    planned.describe(&mut found, state);
    found.stages.push(watch.lap("plan"));
    Ok((planned, found))
}

/// Tries a plan that leads to another state on the server, which writes nothing, and asks for approval where that is needed.
async fn attempt(input: &ReconcileInput<'_>, ports: &Ports, state: &ClusterState, planned: &mut Planned) -> Phase<Option<DryRun>> {
    let mut found = Report::default();
    if !planned.plan.is_transition() {
        return Ok((None, found));
    }
    let tried = found.or_stop(dry_run(ports, state, planned, Scope::Transitions(input)).await)?;
    let patched = planned.runs.patched();
    let refusals = tried
        .refusals
        .iter()
        .map(|refusal| chart_content_check::not_accepted(&patched, refusal));
    found.failures.extend(refusals);
    let taken = taken_away(&ports.reader, input.config, state, planned).await;
    let taken = found.or_stop(taken.map_err(ReconcileError::from))?;
    found.plan = approval::approve(input.config, state, planned, &taken);
    Ok((Some(tried), found))
}

/// Whether the API server would take the inventory that is about to be written.
fn fits(steps: &[Step]) -> Result<(), ReconcileError> {
    for step in steps {
        if let Step::Record(inventory) | Step::Commit(inventory) = step {
            inventory.fits(STATE)?;
        }
    }
    Ok(())
}

fn contended(contention: &Contention) -> Failure {
    Failure::new(Reason::DriftFight, Class::Wait, contention.to_string())
}

/// What of a plan cannot go on before a person does something.
fn blocked(plan: &Plan) -> impl Iterator<Item = Failure> {
    plan.blocked.iter().map(|wait| {
        // A watch shows when the last volume is gone; who holds a finalizer cannot be known.
        let class = match wait.reason {
            Reason::VolumesInUse => Class::Wait,
            _ => Class::Terminal,
        };
        Failure::of_wait(wait, class)
    })
}
