//! Uninstall: everything of ours is deleted, in reverse order, and then the finalizer is removed (effect).

use super::apply::{Place, apply};
use super::dry_run::rightless;
use super::erase::{is_current, outdated};
use super::error::ReconcileError;
use super::look_up::look_up;
use super::survey::{Survey, survey};
use super::{Occasion, World, blocked, recover};
use crate::api::{DeletionPolicy, FINALIZER};
use crate::plan::{self, Input, Last, Observed, Plan, Step};
use crate::status::{Report, Trouble};
use kube::ResourceExt;
use std::collections::BTreeSet;

/// Deletes one more wave, or lets the VDOConfig go.
pub(super) async fn uninstall(occasion: &Occasion<'_>, world: &World, report: &mut Report) -> Result<(), ReconcileError> {
    let config = occasion.config;
    let survey = survey(&world.reader, config, occasion.kubernetes.clone()).await?;
    survey.tell(report);
    if !config.finalizers().iter().any(|f| f == FINALIZER) {
        report.gone = true;
        report.removed = true;
        return Ok(());
    }
    report.deleting = true;
    let orphans = policy(occasion) == DeletionPolicy::Orphan;
    if survey.recovered && !orphans {
        return recover::record(config, world, &survey, report).await;
    }
    let none = BTreeSet::new();
    let observed = observe(occasion, world, &survey, &none).await?;
    let input = input(occasion, &survey, &observed, &none);
    let plan = plan::plan(&input);
    let steps = plan.run(&input, &Last::new());
    plan::check(&steps, &[], &survey.inventory)?;
    report.waiting.clone_from(&plan.waiting);
    report.waiting.extend(plan::deleting(&steps));
    report.skipped.clone_from(&plan.skipped);
    report.troubles.extend(blocked(&plan));
    for skip in &plan.skipped {
        tracing::info!(object = %skip.id, "{}", skip.message);
    }
    if steps.is_empty() {
        return Ok(());
    }
    if !is_current(config, world).await? {
        report.waiting.push(outdated(config));
        return Ok(());
    }
    let finishes = steps.iter().any(|step| matches!(step, Step::Finish));
    if orphans {
        tracing::info!(objects = survey.inventory.objects.len(), "the drivers stay, as deletionPolicy says");
    } else if !finishes && !may_delete(world, &plan, report).await? {
        return Ok(());
    }
    let outcome = apply(&steps, world, &Place::of(&survey, config)).await;
    report.troubles.extend(outcome.failures.iter().map(Trouble::from));
    if finishes && outcome.failures.is_empty() {
        report.gone = true;
        report.removed = true;
    }
    Ok(())
}

/// What becomes of the drivers.
fn policy(occasion: &Occasion<'_>) -> DeletionPolicy {
    match occasion.config.metadata.deletion_timestamp {
        Some(_) => occasion.config.spec.deletion_policy,
        None => DeletionPolicy::Delete,
    }
}

fn input<'a>(occasion: &Occasion<'_>, survey: &'a Survey, observed: &'a Observed, none: &'a BTreeSet<String>) -> Input<'a> {
    Input {
        apply_set: &survey.apply_set,
        desired: &[],
        observed,
        inventory: &survey.inventory,
        cluster_id: None,
        approved: None,
        rules: &[],
        kept: none,
        unhealthy: &[],
        store: None,
        finalizer: true,
        uninstall: Some(policy(occasion)),
    }
}

/// What is there, with what has to be looked up before it is deleted.
async fn observe(occasion: &Occasion<'_>, world: &World, survey: &Survey, none: &BTreeSet<String>) -> Result<Observed, ReconcileError> {
    let mut observed = Observed {
        live: survey.live.clone(),
        at: occasion.now,
        patience: occasion.patience,
        ..Observed::default()
    };
    if policy(occasion) == DeletionPolicy::Delete {
        let lookups = plan::lookups(&input(occasion, survey, &observed, none));
        look_up(world, occasion.config, lookups, &mut observed).await?;
    }
    Ok(observed)
}

/// The whole uninstallation, for people who ask; it is never carried out.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn uninstallation(occasion: &Occasion<'_>, world: &World) -> Result<(Survey, Plan), ReconcileError> {
    let survey = survey(&world.reader, occasion.config, occasion.kubernetes.clone()).await?;
    let none = BTreeSet::new();
    let observed = observe(occasion, world, &survey, &none).await?;
    let plan = plan::plan(&input(occasion, &survey, &observed, &none));
    Ok((survey, plan))
}

/// Whether everything that is going to be deleted may be deleted: the first object is not deleted while the right for the last is
/// missing. Asked once for each uninstallation.
async fn may_delete(world: &World, plan: &Plan, report: &mut Report) -> Result<bool, ReconcileError> {
    let Some(memory) = &world.rehearsals else { return Ok(true) };
    let missing = rightless(world, memory, &plan.writes().collect::<Vec<_>>()).await?;
    if !missing.is_empty() {
        // Nothing is deleted, so the next attempt begins before the first step again.
        memory.retain(&Plan::default());
    }
    report.troubles.extend(missing.iter().map(|(_, error)| Trouble::from(error)));
    Ok(missing.is_empty())
}
