//! One increment from what is to what should be. The operator and every command use the same road; a command stops earlier.
//!
//! ```text
//! survey (effect)   cluster, inventory, live objects, health of what runs
//! resolve (pure)    matrix × cluster × vCenters × specification → versions
//! fetch (effect)    charts by digest
//! render (pure)     charts × values → objects, stamped
//! observe (effect)  live objects of everything wanted
//! plan (pure)       wanted × live × inventory → steps, checked
//! rehearse (effect) the whole plan, tried on the server before its first write
//! permit (pure)     whether a person has to approve it
//! execute (effect)  the only writes there are
//! report (pure fold, then one effect) on every path
//! ```
//!
//! Layer 3: may use everything below; not `controller`, `cli` or `runtime`.

mod ahead;
mod approval;
mod attached;
mod basis;
pub mod connection;
mod desired;
mod drift;
mod erase;
mod error;
mod evidence;
mod execute;
mod foreign;
mod gates;
mod gather;
mod keep;
mod lookups;
mod node;
mod preconditions;
mod prepare;
mod prerequisites;
mod recover;
mod refused;
mod rehearsals;
mod rehearse;
mod remove;
mod report;
mod rights;
mod select;
pub mod snapshots;
mod stopwatch;
mod survey;
mod upgrade;
pub mod webhook;

pub use attached::hold_attached;
pub use desired::Renders;
pub use error::ReconcileError;
pub use evidence::Evidence;
pub use gather::{configs, connection_objects, connections_watch, inventory_name, neighbours, nodes, vcenter_version};
pub use prepare::{Prepared, policy, prepare};
pub use prerequisites::lacking;
pub use rehearsals::{Refusal, Rehearsals};
pub use rehearse::{Rehearsal, Scope, rehearse};
pub use remove::removal;
pub use report::{Next, due, publish};
pub use rights::{Rights, RightsError, rights};
pub use select::{Asked, asked};
pub use survey::{Survey, survey};
pub use upgrade::hold_upgrades;

use stopwatch::Stopwatch;

use crate::api::{Class, FINALIZER, ManagementState, Reason, VDOConfig};
use crate::cluster::{ClusterError, Reader, Writer};
use crate::fetch::Library;
use crate::manifest::Object;
use crate::plan::{Fight, History, Wait, hold_fire};
use crate::status::{Report, Trouble};
use crate::types::{KubernetesVersion, ObjectId, count};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};
use serde_json::json;
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

/// What is known when a reconcile begins.
pub struct Occasion<'a> {
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
        true => remove::remove(occasion, world, &mut report).await,
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
    let survey = survey(&world.reader, config, occasion.kubernetes.clone()).await?; // effect
    watch.lap(report, "observe");
    survey.tell(report);
    if survey.recovered && config.spec.management_state != ManagementState::Paused {
        hold_on(config, &world.writer).await?;
        return recover::record(config, world, &survey, report).await;
    }
    let mut prepared = prepare(occasion, world, &survey, report).await?; // effects: reads; pure: resolve, render, plan
    crate::plan::check(&prepared.plan, &prepared.desired, &survey.inventory)?; // pure
    if config.spec.management_state == ManagementState::Paused {
        report.paused = Some(prepared.plan.steps.len());
        return Ok(());
    }
    report.troubles.extend(troubles(&prepared.plan));
    let mut plan = prepared.plan.clone();
    if plan.is_transition() {
        let rehearsal = rehearse(world, &survey, &mut prepared, Scope::Transitions(occasion)).await?; // effect: tries, writes nothing
        report.waiting.clone_from(&prepared.plan.waiting);
        report
            .troubles
            .extend(rehearsal.refusals.iter().map(|(_, refusal)| Trouble::from(refusal.as_ref())));
        let permitted = approval::permit(config, &survey, &mut prepared, report); // pure
        plan = prepared.plan.clone();
        if !permitted {
            plan = plan.maintenance(&survey.inventory);
        }
        crate::plan::check(&plan, &prepared.desired, &survey.inventory)?;
    }
    report.fights = hold_fire(&mut plan, occasion.history, occasion.now); // pure
    report.troubles.extend(report.fights.iter().map(fought));
    if plan.is_empty() {
        return Ok(());
    }
    if plan.removes() && !erase::is_current(config, world).await? {
        report.waiting.push(erase::outdated(config));
        return Ok(());
    }
    let drift = drift::found(world, &mut plan).await; // effect: reads
    if plan.is_empty() {
        return Ok(());
    }
    hold_on(config, &world.writer).await?; // effect: the finalizer, before the first write
    let namespace = config.namespace().unwrap_or_default();
    let place = execute::Place::of(&survey, &namespace);
    let mut watch = Stopwatch::start();
    let outcome = execute::execute(&plan, world, &place).await; // effect
    if let Some(memory) = world.rehearsals.as_ref().filter(|_| outcome.failures.is_empty()) {
        memory.forget(&plan.steps);
    }
    watch.lap(report, "apply");
    report.troubles.extend(outcome.failures.iter().map(Trouble::from));
    if outcome.failures.is_empty() {
        report.drift = drift;
    }
    if plan.is_transition() {
        // What was just written has had no effect yet, so nothing that was seen before speaks for it.
        report.waiting.push(Wait {
            driver: String::new(),
            reason: Reason::Progressing,
            message: format!("{} made; waiting for the effect", count(outcome.writes, "change")),
        });
    }
    Ok(())
}

fn fought(fight: &Fight) -> Trouble {
    Trouble {
        reason: Reason::DriftFight,
        class: Class::Wait,
        message: fight.to_string(),
    }
}

/// What of a plan cannot go on before a person does something.
fn troubles(plan: &crate::plan::Plan) -> impl Iterator<Item = Trouble> {
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

/// Sets the finalizer, so that a VDOConfig is gone only when its drivers are.
async fn hold_on(config: &VDOConfig, writer: &Writer) -> Result<(), ReconcileError> {
    if config.finalizers().iter().any(|f| f == FINALIZER) {
        return Ok(());
    }
    // Applied, not replaced: what the watch shows may be older than our own last report. With the UID nothing is made anew.
    let wanted = Object::new(json!({
        "apiVersion": "vdo.vmware.com/v1alpha1",
        "kind": "VDOConfig",
        "metadata": {"name": config.name_any(), "namespace": config.namespace(), "uid": config.uid(), "finalizers": [FINALIZER]},
    }))?;
    writer.apply(&wanted, true).await?;
    Ok(())
}

/// Replaces the finalizers, unless somebody else has changed the object in between.
async fn set_finalizers(config: &VDOConfig, writer: &Writer, finalizers: &[String]) -> Result<(), ClusterError> {
    let change = json!({"metadata": {"finalizers": finalizers, "resourceVersion": config.resource_version()}});
    writer.merge("vdo.vmware.com/v1alpha1", &id(config), &change, false).await?;
    Ok(())
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
