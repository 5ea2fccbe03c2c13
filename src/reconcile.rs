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
//!
//! Layer 3: may use everything below; not `controller`, `cli` or `runtime`.

mod ahead;
mod apply;
mod approval;
mod attached;
mod basis;
mod choose;
pub mod connection;
mod decide;
mod desired;
mod drift;
mod dry_run;
mod erase;
mod error;
mod evidence;
mod foreign;
mod gates;
mod gather;
mod keep;
mod look_up;
mod node;
mod preconditions;
mod prerequisites;
mod recover;
mod rehearsals;
mod report;
mod rights;
mod select;
pub mod snapshots;
mod stopwatch;
mod survey;
mod uninstall;
mod upgrade;
pub mod webhook;

pub use attached::hold_attached;
pub use choose::policy;
pub use decide::{Decision, decide};
pub use desired::Renders;
pub use dry_run::{DryRun, Scope, dry_run};
pub use error::ReconcileError;
pub use evidence::Evidence;
pub use gather::{configs, connection_objects, connections_watch, inventory_name, neighbours, nodes, vcenter_version};
pub use prerequisites::lacking;
pub use rehearsals::{Refusal, Rehearsals};
pub use report::{Next, due, publish};
pub use rights::{Rights, RightsError, rights};
pub use select::{Asked, Failure, Failures, asked};
pub use survey::{Survey, survey};
pub use uninstall::uninstallation;
pub use upgrade::hold_upgrades;

use apply::{Place, apply};
use stopwatch::Stopwatch;

use crate::api::{Class, ManagementState, Reason, VDOConfig};
use crate::cluster::{Reader, Writer};
use crate::fetch::Library;
use crate::plan::{self, Fight, History, Plan, Step, Wait};
use crate::status::{Report, Trouble};
use crate::types::{KubernetesVersion, ObjectId, count};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};
use std::collections::BTreeSet;
use std::time::Duration;

/// The ports that a reconcile reaches the world through.
pub struct World {
    /// For reads that no watch can answer.
    pub client: Client,
    /// For everything else that is read.
    pub reader: Reader,
    /// For writes.
    pub writer: Writer,
    /// Where charts and the matrix come from.
    pub library: Library,
    /// The objects that were made last.
    pub renders: Renders,
    /// What containers that fail said last.
    pub evidence: Evidence,
    /// What the server has said in rehearsals; `None` when nothing is rehearsed.
    pub rehearsals: Option<Rehearsals>,
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
pub struct Occasion<'a> {
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
    /// The repairs of the past, which tell a fight from a slip.
    pub history: &'a History,
    /// Drivers that do not get well and are due to be applied once more.
    pub suspect: &'a BTreeSet<String>,
    /// How long a deletion may take before the status says what blocks it.
    pub patience: Duration,
    /// Whether the next attempt is due that the last status promised; before that nobody asks again for what was refused.
    pub due: bool,
}

/// Runs one increment and says what is to be reported. Every path ends in a report.
pub async fn reconcile(occasion: &Occasion<'_>, world: &World) -> Report {
    let config = occasion.config;
    let mut report = Report {
        generation: config.metadata.generation,
        ..Report::default()
    };
    if config.name_any() != occasion.acting {
        report.troubles.push(Trouble {
            reason: Reason::NotActive,
            class: Class::Wait,
            message: format!(
                "VDOConfig {} is older and acts for this cluster; delete one of the two",
                occasion.acting
            ),
        });
        return report;
    }
    if let Some(memory) = &world.rehearsals {
        memory.only_of(config.metadata.uid.as_deref().unwrap_or_default());
    }
    let result = match is_uninstalled(config) {
        true => uninstall::uninstall(occasion, world, &mut report).await,
        false => advance(occasion, world, &mut report).await,
    };
    report.gone &= config.metadata.deletion_timestamp.is_some();
    if let Err(error) = result {
        report.troubles.push(Trouble::from(&error));
    }
    evidence::add(world, &mut report).await;
    report
}

/// Whether the drivers are to be uninstalled: the VDOConfig is being deleted, or its managementState is Removed.
#[must_use]
pub fn is_uninstalled(config: &VDOConfig) -> bool {
    config.metadata.deletion_timestamp.is_some() || config.spec.management_state == ManagementState::Removed
}

async fn advance(occasion: &Occasion<'_>, world: &World, report: &mut Report) -> Result<(), ReconcileError> {
    let config = occasion.config;
    let mut watch = Stopwatch::start();
    let survey = survey(&world.reader, config, occasion.kubernetes.clone()).await?; // effect: reads
    watch.lap(report, "observe");
    survey.tell(report);
    let paused = config.spec.management_state == ManagementState::Paused;
    if survey.recovered && !paused {
        return recover::record(config, world, &survey, report).await;
    }
    let mut decision = decide(occasion, world, &survey, report).await?; // effects: reads; pure: resolve, render, plan
    if paused {
        report.paused = Some(decision.plan.steps.len());
        return Ok(());
    }
    report.troubles.extend(blocked(&decision.plan));
    if decision.plan.is_transition() {
        let dry_run = dry_run(world, &survey, &mut decision, Scope::Transitions(occasion)).await?; // effect: tries, writes nothing
        report.waiting.clone_from(&decision.plan.waiting);
        report
            .troubles
            .extend(dry_run.refusals.iter().map(|(_, refusal)| Trouble::from(refusal.as_ref())));
        approval::approve(config, &survey, &mut decision, report); // pure
    }
    report.fights = decision.plan.pause_contended(occasion.history, occasion.now); // pure
    report.troubles.extend(report.fights.iter().map(contended));
    let mut steps = decision.run(&survey); // pure
    plan::check(&steps, &decision.desired, &survey.inventory)?; // pure
    fits(&steps, &survey)?; // pure
    report.waiting.extend(plan::deleting(&steps));
    if steps.iter().any(Step::removes) && !erase::is_current(config, world).await? {
        report.waiting.push(erase::outdated(config));
        return Ok(());
    }
    let drift = drift::found(world, &mut steps).await; // effect: reads
    if !steps.iter().any(|step| !matches!(step, Step::SetFinalizer)) {
        return Ok(());
    }
    let mut watch = Stopwatch::start();
    let outcome = apply(&steps, world, &Place::of(&survey, config)).await; // effect: every write
    if let Some(memory) = world.rehearsals.as_ref().filter(|_| outcome.failures.is_empty()) {
        memory.forget(&steps);
    }
    watch.lap(report, "apply");
    report.troubles.extend(outcome.failures.iter().map(Trouble::from));
    if outcome.failures.is_empty() {
        report.drift = drift;
    }
    if steps.iter().any(Step::is_transition) {
        // What was just written has had no effect yet, so nothing that was seen before speaks for it.
        report.waiting.push(Wait {
            driver: String::new(),
            reason: Reason::Progressing,
            message: format!("{} made; waiting for the effect", count(outcome.writes, "change")),
        });
    }
    Ok(())
}

/// Whether the API server would take the inventory that is about to be written.
fn fits(steps: &[Step], survey: &Survey) -> Result<(), ReconcileError> {
    for step in steps {
        if let Step::Record(inventory) | Step::Commit(inventory) = step {
            inventory.fits(&survey.inventory_name)?;
        }
    }
    Ok(())
}

fn contended(fight: &Fight) -> Trouble {
    Trouble {
        reason: Reason::DriftFight,
        class: Class::Wait,
        message: fight.to_string(),
    }
}

/// What of a plan cannot go on before a person does something.
fn blocked(plan: &Plan) -> impl Iterator<Item = Trouble> {
    plan.blocked.iter().map(|wait| Trouble {
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
        crate::api::GROUP,
        "VDOConfig",
        config.namespace().unwrap_or_default(),
        config.name_any(),
    )
}
