// SPDX-License-Identifier: Apache-2.0
//! Uninstalls all drivers in reverse order and removes the finalizer of the VDOConfig (effect).

use super::apply::delete::{is_current, outdated};
use super::apply::{StateLocation, apply};
use super::dry_run::rightless;
use super::error::ReconcileError;
use super::observe::deletion_guards::look_up;
use super::observe::recover_inventory;
use super::observe::recover_inventory::Recorded;
use super::observe::{ClusterState, observe};
use super::phase::{Collect, Phase};
use super::{Ports, ReconcileInput, blocked};
use kube::ResourceExt;
use std::collections::BTreeSet;
use vdo_api::api::{DeletionPolicy, FINALIZER, ManagementState, VDOConfig};
use vdo_core::plan::{self, Input, Last, NO_RECORD, Observed, Plan, Step};
use vdo_core::status::Failure;

/// Whether the drivers are to be uninstalled: the VDOConfig is being deleted, or its managementState is Removed.
#[must_use]
pub fn is_uninstalled(config: &VDOConfig) -> bool {
    config.metadata.deletion_timestamp.is_some() || config.spec.management_state == ManagementState::Removed
}

/// Deletes one more wave of objects; after the last wave, removes the finalizer of the VDOConfig. For managementState Removed always; for a
/// deleted VDOConfig as its deletionPolicy says.
pub(super) async fn uninstall(input: &ReconcileInput<'_>, ports: &Ports) -> Phase<()> {
    let config = input.config;
    let state = observe(&ports.reader, config, input.kubernetes.clone()).await?;
    let mut found = state.findings();
    if !config.finalizers().iter().any(|f| f == FINALIZER) {
        found.gone = true;
        found.removed = true;
        return Ok(((), found));
    }
    found.deleting = true;
    let orphans = policy(input) == DeletionPolicy::Orphan;
    if state.recovered.is_some() && !orphans {
        let recorded = recover_inventory::record(config, ports, &state).await;
        // Where nothing can be stored any more, what is left is found by its labels in each run.
        if !matches!(recorded, Ok((Recorded::Terminating, _))) {
            found.take(recorded)?;
            return Ok(((), found));
        }
    }
    let none = BTreeSet::new();
    let observed = found.or_stop(observe_guards(input, ports, &state, &none).await)?;
    let plan_input = plan_input(input, &state, &observed, &none);
    let plan = plan::plan(&plan_input);
    let steps = plan.run(&plan_input, &Last::new());
    found.or_stop(plan::check(&steps, &[], &state.inventory))?;
    found.waiting.clone_from(&plan.waiting);
    found.waiting.extend(plan::deleting(&steps));
    found.skipped.clone_from(&plan.skipped);
    found.failures.extend(blocked(&plan));
    for skip in &plan.skipped {
        tracing::info!(object = %skip.id, "{}", skip.message);
    }
    if steps.is_empty() {
        return Ok(((), found));
    }
    if !found.or_stop(is_current(config, ports).await)? {
        found.waiting.push(outdated(config));
        return Ok(((), found));
    }
    let finishes = steps.iter().any(|step| matches!(step, Step::Finish));
    if orphans {
        tracing::info!(
            objects = state.inventory.objects.len(),
            "the drivers are kept, because deletionPolicy is Orphan"
        );
    } else if !finishes {
        let missing = found.or_stop(missing_rights(ports, &plan).await)?;
        if !missing.is_empty() {
            found.failures.extend(missing);
            return Ok(((), found));
        }
    }
    let outcome = apply(&steps, ports, &StateLocation::of(&state, config)).await;
    found.failures.extend(outcome.failures.iter().map(Failure::from));
    if finishes && outcome.failures.is_empty() {
        found.gone = true;
        found.removed = true;
    }
    Ok(((), found))
}

/// What becomes of the drivers.
fn policy(input: &ReconcileInput<'_>) -> DeletionPolicy {
    match input.config.metadata.deletion_timestamp {
        Some(_) => input.config.spec.deletion_policy,
        None => DeletionPolicy::Delete,
    }
}

fn plan_input<'a>(input: &ReconcileInput<'_>, state: &'a ClusterState, observed: &'a Observed, none: &'a BTreeSet<String>) -> Input<'a> {
    Input {
        apply_set: &state.apply_set,
        desired: &[],
        observed,
        inventory: &state.inventory,
        cluster_id: None,
        approved: None,
        rules: &[],
        kept: none,
        record: &NO_RECORD,
        unhealthy: &[],
        store: None,
        finalizer: true,
        uninstall: Some(policy(input)),
    }
}

/// What is there, with what has to be looked up before it is deleted.
async fn observe_guards(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    none: &BTreeSet<String>,
) -> Result<Observed, ReconcileError> {
    let mut observed = Observed {
        live: state.live.clone(),
        at: input.now,
        timeout: input.timeout,
        ..Observed::default()
    };
    if policy(input) == DeletionPolicy::Delete {
        let lookups = plan::lookups(&plan_input(input, state, &observed, none));
        look_up(ports, input.config, &state.apply_set, lookups, &mut observed).await?;
    }
    Ok(observed)
}

/// The whole uninstallation, for people who ask; it is never carried out.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn uninstallation(input: &ReconcileInput<'_>, ports: &Ports) -> Result<(ClusterState, Plan), ReconcileError> {
    let state = observe(&ports.reader, input.config, input.kubernetes.clone()).await?;
    let none = BTreeSet::new();
    let observed = observe_guards(input, ports, &state, &none).await?;
    let plan = plan::plan(&plan_input(input, &state, &observed, &none));
    Ok((state, plan))
}

/// What of everything that is going to be deleted may not be deleted: the first object is not deleted while the right for the last is
/// missing. Asked once for each uninstallation.
async fn missing_rights(ports: &Ports, plan: &Plan) -> Result<Vec<Failure>, ReconcileError> {
    let Some(memory) = &ports.dry_runs else {
        return Ok(Vec::new());
    };
    let missing = rightless(ports, memory, &plan.writes().collect::<Vec<_>>()).await?;
    if !missing.is_empty() {
        // Nothing is deleted, so the next attempt begins before the first step again.
        memory.retain(&Plan::default());
    }
    Ok(missing.iter().map(|(_, error)| Failure::from(error)).collect())
}
