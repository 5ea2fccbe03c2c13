//! One reconcile, from what is to what should be. The operator and every command use the same phases; a command stops earlier.
//!
//! ```text
//! observe (effect)   cluster, inventory, live objects, health of what is installed
//! resolve (pure)     matrix × cluster × vCenters × specification → versions, driver by driver
//! fetch (effect)     charts by digest
//! render (pure)      charts × values → objects, stamped
//! plan (pure)        wanted × live × inventory → the whole way, once
//! gate (pure)        prerequisites, privileges, health: which steps must wait
//! dry run (effect)   the whole plan, tried on the server before its first write
//! approve (pure)     which steps wait for a person
//! check (pure)       what may be written now, held against the rules
//! apply (effect)     the only writes there are
//! report (pure fold, then one effect) on every path
//! ```

mod apply;
mod approval;
mod choose;
mod cluster_id;
pub mod connection;
mod content;
mod decide;
mod drift;
mod dry_run;
mod error;
mod gates;
mod matrix_fallback;
mod matrix_source;
mod observe;
mod phase;
mod preconditions;
mod prerequisites;
mod record;
mod render;
mod requests;
mod rights;
mod rollback;
mod served;
mod stopwatch;
mod uninstall;
mod upgrade_available;
mod upgradeable;
pub mod webhook;
mod write_status;

pub use apply::inventory::inventory;
pub use choose::policy;
pub use content::SoundContents;
pub use decide::{Decision, decide};
pub use dry_run::cache::{DryRunCache, Refusal};
pub use dry_run::{DryRun, Scope, dry_run};
pub use error::ReconcileError;
pub use matrix_source::{CONTENTS, PART, named, supply};
pub use observe::cluster::{apply_set, configs, nodes};
pub use observe::connections::{connection_objects, connections_watch, neighbours, port, trust, vcenter_version};
pub use observe::crash_logs::CrashLogs;
pub use observe::{ClusterState, Recovered, observe};
pub use phase::{Phase, Stopped};
pub use preconditions::shared_volumes::hold_attached;
pub use preconditions::snapshots;
pub use preconditions::upgrade::hold_upgrades;
pub use prerequisites::lacking;
pub use render::RenderCache;
pub use requests::{DriverFailure, DriverFailures, DriverRequests, asked};
pub use rights::{Permitted, Rights, RightsError, more_rights, rights};
pub use served::unserved_kinds;
pub use uninstall::uninstallation;
pub use write_status::{Requeue, due, write_status};

use apply::{Place, apply, delete, former};
use observe::{crash_logs, definitions, recover_inventory};
use phase::Collect;
use stopwatch::Stopwatch;

use crate::cluster::{Reader, Writer};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};
use std::collections::BTreeSet;
use std::time::Duration;
use vdo_api::api::{Class, ManagementState, Reason, STATE, VDOConfig};
use vdo_api::types::{KubernetesVersion, ObjectId, count};
use vdo_core::plan::{self, Contention, Plan, RepairHistory, Step, Wait};
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
    report.gone &= config.metadata.deletion_timestamp.is_some();
    crash_logs::added(ports, report).await // effect: reads logs
}

fn not_active(acting: &str) -> Failure {
    Failure {
        reason: Reason::NotActive,
        class: Class::Wait,
        message: format!("VDOConfig {acting} is older and acts for this cluster; delete one of the two"),
    }
}

/// Whether the drivers are to be uninstalled: the VDOConfig is being deleted, or its managementState is Removed.
#[must_use]
pub fn is_uninstalled(config: &VDOConfig) -> bool {
    config.metadata.deletion_timestamp.is_some() || config.spec.management_state == ManagementState::Removed
}

async fn advance(input: &ReconcileInput<'_>, ports: &Ports) -> Phase<()> {
    let config = input.config;
    let mut watch = Stopwatch::start();
    let state = observe(&ports.reader, config, input.kubernetes.clone()).await?; // effect: reads
    let mut found = state.findings();
    found.stages.push(watch.lap("observe"));
    found.drivers = state.reports();
    let paused = config.spec.management_state == ManagementState::Paused;
    if state.recovered.is_some() && !paused {
        found.take(recover_inventory::record(config, ports, &state).await)?;
        return Ok(((), found));
    }
    if state.recovered.is_none() && !state.inventory.objects.is_empty() {
        forget_former(ports, config, &state).await; // effect: deletes what operators before this one kept
    }
    let mut decision = found.take(decide(input, ports, &state).await)?; // effects: reads; pure: resolve, render, plan, gate
    if paused {
        found.paused = Some(decision.plan.steps.len());
        found.waiting.append(&mut decision.plan.waiting);
        return Ok(((), found));
    }
    found.failures.extend(blocked(&decision.plan));
    let mut tried = None;
    if decision.plan.is_transition() {
        let dry_run = found.check(dry_run(ports, &state, &mut decision, Scope::Transitions(input)).await)?; // effect: tries, writes nothing
        found
            .failures
            .extend(dry_run.refusals.iter().map(|(_, refusal)| Failure::from(refusal.as_ref())));
        found.plan = approval::approve(config, &state, &mut decision); // pure
        tried = Some(dry_run);
    }
    let (mut given_up, look_again) = rollback::given_up(config, &state, &decision, tried.as_ref(), input.now); // pure
    found.look_again = look_again;
    found.check(served::check(ports, &mut given_up).await)?; // effect: reads
    found.failures.extend(rollback::give_up(given_up, &mut decision)); // pure
    found.waiting.append(&mut decision.plan.waiting);
    found.contentions = decision.plan.pause_contended(input.history, input.now); // pure
    found.failures.extend(found.contentions.iter().map(contended));
    let mut steps = decision.run(&state); // pure
    found.check(plan::check(&steps, &decision.desired, &state.inventory))?; // pure
    found.check(fits(&steps))?; // pure
    found.waiting.extend(plan::deleting(&steps));
    if steps.iter().any(Step::removes) && !found.check(delete::is_current(config, ports).await)? {
        found.waiting.push(delete::outdated(config));
        return Ok(((), found));
    }
    let drift = drift::found(ports, &mut steps).await; // effect: reads
    if !steps.iter().any(|step| !matches!(step, Step::SetFinalizer)) {
        return Ok(((), found));
    }
    let mut watch = Stopwatch::start();
    let outcome = apply(&steps, ports, &Place::of(&state, config)).await; // effect: every write
    if let Some(memory) = ports.dry_runs.as_ref().filter(|_| outcome.failures.is_empty()) {
        memory.forget(&steps);
    }
    if let Some(memory) = &ports.dry_runs {
        // The server has changed its mind, and is asked again before the next write.
        memory.forget(outcome.refused.iter().map(|step| &steps[*step]));
    }
    found.stages.push(watch.lap("apply"));
    found.failures.extend(outcome.failures.iter().map(Failure::from));
    if outcome.failures.is_empty() {
        found.drift = drift;
    }
    if steps.iter().any(Step::is_transition) {
        // What was just written has had no effect yet, so nothing that was seen before speaks for it.
        found.waiting.push(Wait {
            driver: String::new(),
            reason: Reason::Progressing,
            message: format!("{} made; waiting for the effect", count(outcome.writes, "change")),
        });
    }
    Ok(((), found))
}

/// That what nothing reads any more cannot be deleted keeps nothing back.
async fn forget_former(ports: &Ports, config: &VDOConfig, state: &ClusterState) {
    if let Err(error) = former::forget(ports, config, &state.apply_set).await {
        tracing::warn!(error = %vdo_api::api::chain(&error), "the ConfigMap with the inventory of before cannot be deleted");
    }
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
    Failure {
        reason: Reason::DriftFight,
        class: Class::Wait,
        message: contention.to_string(),
    }
}

/// What of a plan cannot go on before a person does something.
fn blocked(plan: &Plan) -> impl Iterator<Item = Failure> {
    plan.blocked.iter().map(|wait| Failure {
        reason: wait.reason,
        // A watch shows when the last volume is gone; who holds a finalizer cannot be known.
        class: if wait.reason == Reason::VolumesInUse {
            Class::Wait
        } else {
            Class::Terminal
        },
        message: wait.message.clone(),
    })
}

/// The VDOConfig that acts, of all in the operator's namespace: the oldest, and of equally old ones the first by name.
#[must_use]
pub fn acting<'a>(configs: impl IntoIterator<Item = &'a VDOConfig>) -> Option<&'a VDOConfig> {
    configs
        .into_iter()
        .min_by_key(|c| (c.creation_timestamp().map(|t| t.0), c.name_any()))
}

/// The id of a VDOConfig.
#[must_use]
pub fn id(config: &VDOConfig) -> ObjectId {
    ObjectId::new(
        vdo_api::api::GROUP,
        "VDOConfig",
        config.namespace().unwrap_or_default(),
        config.name_any(),
    )
}
