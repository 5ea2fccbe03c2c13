// SPDX-License-Identifier: Apache-2.0
//! Asks the API server whether it still serves the kinds of a revision, before a rollback restores it (effect: reads).

use super::driver_run::DriverRuns;
use super::observe::ClusterState;
use super::rollback::GivenUp;
use super::{Ports, ReconcileError};
use crate::cluster::{ClusterError, unserved};
use kube::Client;
use vdo_core::plan::{Revision, needed_kinds};

/// What the API server does not serve of a revision, as a sentence; `None` when it serves everything.
///
/// # Errors
/// When it cannot be asked.
pub async fn unserved_kinds(client: &Client, revision: &Revision) -> Result<Option<String>, ClusterError> {
    let kinds = needed_kinds(&revision.objects.objects());
    let missing = unserved(client, kinds.keys()).await?;
    let lost: Vec<String> = missing
        .iter()
        .map(|kind| format!("{} of {} ({})", kind.1, kind.0, kinds[kind]))
        .collect();
    Ok((!lost.is_empty()).then(|| format!("the cluster does not serve {}", lost.join(", "))))
}

/// Takes out the revisions that cannot be brought back. Those that are applied already are not asked about.
pub(super) async fn keep_served(ports: &Ports, state: &ClusterState, runs: &mut DriverRuns) -> Result<(), ReconcileError> {
    for run in runs.iter_mut() {
        let Some(back) = run.back() else { continue };
        let newest = state.inventory.history.get(&run.name).and_then(|all| all.last());
        if newest.is_some_and(|newest| newest.number == back.revision.number) {
            continue;
        }
        if let Some(problem) = unserved_kinds(&ports.client, &back.revision).await? {
            let error = ReconcileError::RevisionUnusable {
                driver: run.name.clone(),
                revision: back.rollback.to.to_string(),
                problem,
            };
            run.source = None;
            run.fail(error);
        }
    }
    Ok(())
}

/// Finds out, before a change is given up, that its way back is none.
pub(super) async fn check(ports: &Ports, all: &mut [GivenUp<'_>]) -> Result<(), ReconcileError> {
    for one in all.iter_mut().filter(|one| one.unusable.is_none()) {
        one.unusable = unserved_kinds(&ports.client, one.back).await?;
    }
    Ok(())
}
