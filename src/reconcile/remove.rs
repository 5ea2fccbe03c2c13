//! The road back: everything of ours goes, in reverse order, and then the finalizer (effect).

use super::erase::{is_current, outdated};
use super::error::ReconcileError;
use super::execute::{Place, execute};
use super::lookups::answered;
use super::survey::{Survey, survey};
use super::{Occasion, World, keep, recover, set_finalizers, troubles};
use crate::api::{DeletionPolicy, FINALIZER};
use crate::plan::{self, Observed, Step};
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
        return let_go(occasion, world, &survey, report).await;
    }
    if survey.recovered {
        return recover::record(config, world, &survey, report).await;
    }
    let namespace = config.namespace().unwrap_or_default();
    let observed = Observed {
        live: survey.live.clone(),
        at: occasion.now,
        patience: occasion.patience,
        ..Observed::default()
    };
    let plan = answered(world, config, &survey.apply_set, observed, |observed| {
        plan::remove(&survey.apply_set, observed, &survey.inventory)
    })
    .await?
    .1;
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
    if !matches!(plan.steps.as_slice(), [Step::Commit(_)]) {
        let place = Place {
            namespace: &namespace,
            name: &survey.inventory_name,
            apply_set: &survey.apply_set,
            chunked: survey.chunked,
        };
        let outcome = execute(&plan, world, &place).await;
        report.troubles.extend(outcome.failures.iter().map(Trouble::from));
        return Ok(());
    }
    let_go(occasion, world, &survey, report).await
}

/// Forgets the inventory and releases the VDOConfig.
async fn let_go(occasion: &Occasion<'_>, world: &World, survey: &Survey, report: &mut Report) -> Result<(), ReconcileError> {
    let config = occasion.config;
    let place = Place {
        namespace: &config.namespace().unwrap_or_default(),
        name: &survey.inventory_name,
        apply_set: &survey.apply_set,
        chunked: survey.chunked,
    };
    keep::forget(world, &place).await?;
    let rest: Vec<String> = config.finalizers().iter().filter(|f| *f != FINALIZER).cloned().collect();
    set_finalizers(config, &world.writer, &rest).await?;
    report.gone = true;
    report.removed = true;
    Ok(())
}
