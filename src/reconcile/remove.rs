//! The road back: everything of ours goes, in reverse order, and then the finalizer (effect).

use super::erase::{is_current, outdated};
use super::error::ReconcileError;
use super::execute::{Place, execute};
use super::lookups::answered;
use super::rehearse::rightless;
use super::survey::{Survey, survey};
use super::{Occasion, World, erase, keep, recover, set_finalizers, troubles};
use crate::api::{DeletionPolicy, FINALIZER};
use crate::manifest::is_owned;
use crate::plan::{self, Observed, Plan, Step};
use crate::status::{Report, Trouble};
use kube::ResourceExt;

/// Removes one more wave, or lets go.
pub(super) async fn remove(occasion: &Occasion<'_>, world: &World, report: &mut Report) -> Result<(), ReconcileError> {
    let config = occasion.config;
    let survey = survey(&world.reader, config, occasion.kubernetes.clone()).await?;
    survey.tell(report);
    if !config.finalizers().iter().any(|f| f == FINALIZER) {
        report.gone = true;
        report.removed = true;
        return Ok(());
    }
    report.deleting = true;
    let deleted = config.metadata.deletion_timestamp.is_some();
    if deleted && config.spec.deletion_policy == DeletionPolicy::Orphan {
        if !is_current(config, world).await? {
            report.waiting.push(outdated(config));
            return Ok(());
        }
        tracing::info!(objects = survey.inventory.objects.len(), "the drivers stay, as deletionPolicy says");
        release(world, &survey).await?;
        return let_go(occasion, world, &survey, report).await;
    }
    if survey.recovered {
        return recover::record(config, world, &survey, report).await;
    }
    let namespace = config.namespace().unwrap_or_default();
    let (observed, plan) = next(occasion, world, &survey).await?;
    plan::check(&plan, &[], &survey.inventory)?;
    report.waiting.clone_from(&plan.waiting);
    report.skipped.clone_from(&plan.skipped);
    report.troubles.extend(troubles(&plan));
    for skip in &plan.skipped {
        tracing::info!(object = %skip.id, "{}", skip.message);
    }
    if !plan.is_empty() && !is_current(config, world).await? {
        report.waiting.push(outdated(config));
        return Ok(());
    }
    if plan.removes() && !entitled(world, &survey, &observed, report).await? {
        return Ok(());
    }
    if !matches!(plan.steps.as_slice(), [Step::Commit(_)]) {
        let place = Place::of(&survey, &namespace);
        let outcome = execute(&plan, world, &place).await;
        report.troubles.extend(outcome.failures.iter().map(Trouble::from));
        return Ok(());
    }
    release(world, &survey).await?;
    let_go(occasion, world, &survey, report).await
}

/// Takes our marks off what stays: nobody looks after it any more, and marks of nobody would keep others
/// from taking it over.
async fn release(world: &World, survey: &Survey) -> Result<(), ReconcileError> {
    for (id, entry) in &survey.inventory.objects {
        let live = survey
            .live
            .get(id)
            .filter(|live| entry.is(live) && is_owned(live, &survey.apply_set));
        if let Some(live) = live {
            erase::release(world, &entry.api_version, id, live.uid()).await?;
        }
    }
    Ok(())
}

/// The next increment of the removal, with what had to be looked up for it.
async fn next(occasion: &Occasion<'_>, world: &World, survey: &Survey) -> Result<(Observed, Plan), ReconcileError> {
    let observed = Observed {
        live: survey.live.clone(),
        at: occasion.now,
        patience: occasion.patience,
        ..Observed::default()
    };
    answered(world, occasion.config, observed, |observed| {
        plan::remove(&survey.apply_set, observed, &survey.inventory)
    })
    .await
}

/// Every delete that the removal leads to, and what it waits for, for people who ask; it is never carried out.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn removal(occasion: &Occasion<'_>, world: &World) -> Result<(Survey, Plan), ReconcileError> {
    let survey = survey(&world.reader, occasion.config, occasion.kubernetes.clone()).await?;
    let (observed, next) = next(occasion, world, &survey).await?;
    let whole = plan::whole_removal(&survey.apply_set, &observed.without_volumes(), &survey.inventory);
    let plan = Plan {
        waiting: next.waiting,
        blocked: next.blocked,
        ..whole
    };
    Ok((survey, plan))
}

/// Whether everything that is going to be removed may be removed: the first thing does not go while the right for the last is
/// missing. Asked once for each removal.
async fn entitled(world: &World, survey: &Survey, observed: &Observed, report: &mut Report) -> Result<bool, ReconcileError> {
    let Some(memory) = &world.rehearsals else { return Ok(true) };
    let whole = plan::whole_removal(&survey.apply_set, observed, &survey.inventory);
    let missing = rightless(world, memory, &whole.steps.iter().collect::<Vec<_>>()).await?;
    if !missing.is_empty() {
        // Nothing is removed, so the next attempt begins before the first step again.
        memory.retain(&Plan::default());
    }
    report.troubles.extend(missing.iter().map(|(_, error)| Trouble::from(error)));
    Ok(missing.is_empty())
}

/// Forgets the inventory and releases the VDOConfig.
async fn let_go(occasion: &Occasion<'_>, world: &World, survey: &Survey, report: &mut Report) -> Result<(), ReconcileError> {
    let config = occasion.config;
    let namespace = config.namespace().unwrap_or_default();
    let place = Place::of(survey, &namespace);
    keep::forget(world, &place).await?;
    let rest: Vec<String> = config.finalizers().iter().filter(|f| *f != FINALIZER).cloned().collect();
    set_finalizers(config, &world.writer, &rest).await?;
    report.gone = true;
    report.removed = true;
    Ok(())
}
