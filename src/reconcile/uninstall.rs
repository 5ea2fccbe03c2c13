//! Uninstall: everything of ours is deleted, in reverse order, and then the finalizer is removed (effect).

use super::apply::{Place, apply};
use super::dry_run::rightless;
use super::erase::{is_current, outdated};
use super::error::ReconcileError;
use super::look_up::look_up;
use super::phase::{Collect, Phase};
use super::recover::Recorded;
use super::survey::{Survey, survey};
use super::{Occasion, World, blocked, recover};
use crate::api::{DeletionPolicy, FINALIZER};
use crate::plan::{self, Input, Last, NO_RECORD, Observed, Plan, Step};
use crate::status::Trouble;
use kube::ResourceExt;
use std::collections::BTreeSet;

/// Deletes one more wave, or lets the VDOConfig go.
pub(super) async fn uninstall(occasion: &Occasion<'_>, world: &World) -> Phase<()> {
    let config = occasion.config;
    let survey = survey(&world.reader, config, occasion.kubernetes.clone()).await?;
    let mut found = survey.findings();
    if !config.finalizers().iter().any(|f| f == FINALIZER) {
        found.gone = true;
        found.removed = true;
        return Ok(((), found));
    }
    found.deleting = true;
    let orphans = policy(occasion) == DeletionPolicy::Orphan;
    if survey.recovered && !orphans {
        let recorded = recover::record(config, world, &survey).await;
        // Where nothing can be stored any more, what is left is found by its labels in each run.
        if !matches!(recorded, Ok((Recorded::Terminating, _))) {
            found.take(recorded)?;
            return Ok(((), found));
        }
    }
    let none = BTreeSet::new();
    let observed = found.check(observe(occasion, world, &survey, &none).await)?;
    let input = input(occasion, &survey, &observed, &none);
    let plan = plan::plan(&input);
    let steps = plan.run(&input, &Last::new());
    found.check(plan::check(&steps, &[], &survey.inventory))?;
    found.waiting.clone_from(&plan.waiting);
    found.waiting.extend(plan::deleting(&steps));
    found.skipped.clone_from(&plan.skipped);
    found.troubles.extend(blocked(&plan));
    for skip in &plan.skipped {
        tracing::info!(object = %skip.id, "{}", skip.message);
    }
    if steps.is_empty() {
        return Ok(((), found));
    }
    if !found.check(is_current(config, world).await)? {
        found.waiting.push(outdated(config));
        return Ok(((), found));
    }
    let finishes = steps.iter().any(|step| matches!(step, Step::Finish));
    if orphans {
        tracing::info!(objects = survey.inventory.objects.len(), "the drivers stay, as deletionPolicy says");
    } else if !finishes {
        let missing = found.check(missing_rights(world, &plan).await)?;
        if !missing.is_empty() {
            found.troubles.extend(missing);
            return Ok(((), found));
        }
    }
    let outcome = apply(&steps, world, &Place::of(&survey, config)).await;
    found.troubles.extend(outcome.failures.iter().map(Trouble::from));
    if finishes && outcome.failures.is_empty() {
        found.gone = true;
        found.removed = true;
    }
    Ok(((), found))
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
        record: &NO_RECORD,
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

/// What of everything that is going to be deleted may not be deleted: the first object is not deleted while the right for the last is
/// missing. Asked once for each uninstallation.
async fn missing_rights(world: &World, plan: &Plan) -> Result<Vec<Trouble>, ReconcileError> {
    let Some(memory) = &world.rehearsals else {
        return Ok(Vec::new());
    };
    let missing = rightless(world, memory, &plan.writes().collect::<Vec<_>>()).await?;
    if !missing.is_empty() {
        // Nothing is deleted, so the next attempt begins before the first step again.
        memory.retain(&Plan::default());
    }
    Ok(missing.iter().map(|(_, error)| Trouble::from(error)).collect())
}
