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
mod cluster_id;
pub mod connection;
mod decide;
mod definitions;
mod desired;
mod drift;
mod dry_run;
mod erase;
mod error;
mod evidence;
mod foreign;
mod gates;
mod gather;
mod images;
mod keep;
mod look_up;
mod matrix_source;
mod newer;
mod node;
mod phase;
mod preconditions;
mod prerequisites;
mod record;
mod recover;
mod rehearsals;
mod report;
mod rights;
mod rollback;
mod select;
mod served;
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
pub use gather::{configs, connection_objects, connections_watch, inventory_name, neighbours, nodes, port, trust, vcenter_version};
pub use keep::inventory;
pub use matrix_source::{CONTENTS, PART, named, supply};
pub use phase::{Phase, Stopped};
pub use prerequisites::lacking;
pub use rehearsals::{Refusal, Rehearsals};
pub use report::{Next, due, publish};
pub use rights::{Permitted, Rights, RightsError, more_rights, rights};
pub use select::{Asked, Failure, Failures, asked};
pub use served::unserved_kinds;
pub use survey::{Survey, survey};
pub use uninstall::uninstallation;
pub use upgrade::hold_upgrades;

use apply::{Place, apply};
use phase::Collect;
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
    /// The charts that the operator has the rights for.
    pub permitted: Permitted,
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

/// Runs one increment and says what is to be reported, whatever stops it.
pub async fn reconcile(occasion: &Occasion<'_>, world: &World) -> Report {
    let config = occasion.config;
    let generation = config.metadata.generation;
    if config.name_any() != occasion.acting {
        return Report {
            generation,
            troubles: vec![not_active(occasion.acting)],
            ..Report::default()
        };
    }
    if let Some(memory) = &world.rehearsals {
        memory.only_of(config.metadata.uid.as_deref().unwrap_or_default());
    }
    let result = match definitions::check(&world.reader).await {
        Err(error) => Err(error.into()),
        Ok(()) if is_uninstalled(config) => uninstall::uninstall(occasion, world).await,
        Ok(()) => advance(occasion, world).await,
    };
    let mut report = result.map_or_else(Stopped::into_report, |((), found)| found);
    report.generation = generation;
    report.gone &= config.metadata.deletion_timestamp.is_some();
    evidence::added(world, report).await // effect: reads logs
}

fn not_active(acting: &str) -> Trouble {
    Trouble {
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

async fn advance(occasion: &Occasion<'_>, world: &World) -> Phase<()> {
    let config = occasion.config;
    let mut watch = Stopwatch::start();
    let survey = survey(&world.reader, config, occasion.kubernetes.clone()).await?; // effect: reads
    let mut found = survey.findings();
    found.stages.push(watch.lap("observe"));
    found.drivers = survey.reports();
    let paused = config.spec.management_state == ManagementState::Paused;
    if survey.recovered && !paused {
        found.take(recover::record(config, world, &survey).await)?;
        return Ok(((), found));
    }
    let mut decision = found.take(decide(occasion, world, &survey).await)?; // effects: reads; pure: resolve, render, plan, gate
    if paused {
        found.paused = Some(decision.plan.steps.len());
        found.waiting.append(&mut decision.plan.waiting);
        return Ok(((), found));
    }
    found.troubles.extend(blocked(&decision.plan));
    let mut tried = None;
    if decision.plan.is_transition() {
        let dry_run = found.check(dry_run(world, &survey, &mut decision, Scope::Transitions(occasion)).await)?; // effect: tries, writes nothing
        found
            .troubles
            .extend(dry_run.refusals.iter().map(|(_, refusal)| Trouble::from(refusal.as_ref())));
        found.plan = approval::approve(config, &survey, &mut decision); // pure
        tried = Some(dry_run);
    }
    let (mut given_up, look_again) = rollback::given_up(config, &survey, &decision, tried.as_ref(), occasion.now); // pure
    found.look_again = look_again;
    found.check(served::check(world, &mut given_up).await)?; // effect: reads
    found.troubles.extend(rollback::give_up(given_up, &mut decision)); // pure
    found.waiting.append(&mut decision.plan.waiting);
    found.fights = decision.plan.pause_contended(occasion.history, occasion.now); // pure
    found.troubles.extend(found.fights.iter().map(contended));
    let mut steps = decision.run(&survey); // pure
    found.check(plan::check(&steps, &decision.desired, &survey.inventory))?; // pure
    found.check(fits(&steps, &survey))?; // pure
    found.waiting.extend(plan::deleting(&steps));
    if steps.iter().any(Step::removes) && !found.check(erase::is_current(config, world).await)? {
        found.waiting.push(erase::outdated(config));
        return Ok(((), found));
    }
    let drift = drift::found(world, &mut steps).await; // effect: reads
    if !steps.iter().any(|step| !matches!(step, Step::SetFinalizer)) {
        return Ok(((), found));
    }
    let mut watch = Stopwatch::start();
    let outcome = apply(&steps, world, &Place::of(&survey, config)).await; // effect: every write
    if let Some(memory) = world.rehearsals.as_ref().filter(|_| outcome.failures.is_empty()) {
        memory.forget(&steps);
    }
    if let Some(memory) = &world.rehearsals {
        // The server has changed its mind, and is asked again before the next write.
        memory.forget(outcome.refused.iter().map(|step| &steps[*step]));
    }
    found.stages.push(watch.lap("apply"));
    found.troubles.extend(outcome.failures.iter().map(Trouble::from));
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
