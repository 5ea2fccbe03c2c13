// SPDX-License-Identifier: Apache-2.0
//! Sends the dry-run request for a step: apply, delete, or recreation after a deletion (effect).

use super::cache::DryRunCache;
use super::pods;
use crate::cluster::{ClusterError, DryRunResult};
use crate::reconcile::Ports;
use crate::reconcile::observe::ClusterState;
use crate::reconcile::planned::Planned;
use futures::StreamExt;
use futures::stream;
use vdo_api::types::ObjectId;
use vdo_core::manifest::{Object, is_installer, successor};
use vdo_core::plan::{Change, Observed, Ownership, Step, ownership};

/// Requests that are under way at the same time.
const CONCURRENCY: usize = 8;

/// Each step with what the server answers to it.
pub(super) type Answers = Vec<(Step, Result<Option<DryRunResult>, ClusterError>)>;

/// What steps are tried with.
pub(super) struct Tried<'a> {
    pub ports: &'a Ports,
    pub memory: &'a DryRunCache,
    pub state: &'a ClusterState,
    pub planned: &'a Planned,
}

impl Tried<'_> {
    /// Each of these steps with the answer.
    pub async fn ask_all(&self, steps: Vec<Step>) -> Answers {
        let asked = stream::iter(steps).map(|step| async move {
            let answer = self.ask(&step).await;
            (step, answer)
        });
        asked.buffered(CONCURRENCY).collect().await
    }

    async fn ask(&self, step: &Step) -> Result<Option<DryRunResult>, ClusterError> {
        let (writer, observed) = (&self.ports.writer, &self.planned.observed);
        if let Some(foreign) = foreign(step, self.state, observed) {
            return Err(foreign);
        }
        match step {
            Step::Apply { object, change, take, .. } => {
                let answer = self.ask_apply(object, change, *take).await?;
                self.ask_pod(&answer.object, observed.live.get(&object.id())).await?;
                Ok(Some(answer))
            }
            Step::Replace { id, api_version, uid, .. } => {
                writer.dry_run_delete(api_version, id, uid).await?;
                self.ask_successor(id).await
            }
            Step::Delete { id, api_version, uid, .. } => writer.dry_run_delete(api_version, id, uid).await.map(|()| None),
            Step::Store { object, .. } => writer.dry_run(object, true).await.map(Some),
            Step::Release { .. } | Step::SetFinalizer | Step::Record(_) | Step::Commit(_) | Step::Finish => Ok(None),
        }
    }

    async fn ask_pod(&self, next: &Object, live: Option<&Object>) -> Result<(), ClusterError> {
        pods::try_pod(self.ports, self.memory, (next, self.is_early(next)), live).await
    }

    /// Whether the ServiceAccount of a workload is created by this plan, so that no pod could have it yet.
    fn is_early(&self, workload: &Object) -> bool {
        let account = workload.text("/spec/template/spec/serviceAccountName");
        self.planned.plan.writes().any(|step| {
            let Step::Apply {
                object,
                change: Change::Create,
                ..
            } = step
            else {
                return false;
            };
            object.kind() == "ServiceAccount" && (object.namespace(), object.name()) == (workload.namespace(), account)
        })
    }

    async fn ask_apply(&self, object: &Object, change: &Change, take: bool) -> Result<DryRunResult, ClusterError> {
        let writer = &self.ports.writer;
        if matches!(change, Change::Adopt(_)) {
            writer.dry_run_hand_over(object).await?;
        }
        match (change, writer.dry_run(object, take).await) {
            (Change::Adopt(_), Err(ClusterError::Conflict { id, mut fields })) => {
                // What installers own is handed over before the apply, and is no conflict then.
                fields.retain(|field| !is_installer(&field.manager));
                if !fields.is_empty() {
                    return Err(writer.dated(object, ClusterError::Conflict { id, fields }).await);
                }
                writer.dry_run(object, true).await
            }
            (_, answer) => answer,
        }
    }

    /// Tries what comes after a deletion. The server would not accept it beside its predecessor, so it is tried in a form that it does: of what
    /// differs between the two, only admission control could be against.
    async fn ask_successor(&self, id: &ObjectId) -> Result<Option<DryRunResult>, ClusterError> {
        let planned = self.planned;
        let desired = planned.desired.iter().find(|desired| desired.object.identity() == id);
        let (Some(desired), Some(live)) = (desired, planned.observed.live.get(id)) else {
            return Ok(None);
        };
        if let Some(next) = successor(&desired.object, live)
            && let Err(denied @ ClusterError::Denied { .. }) = self.ports.writer.dry_run(&next, true).await
        {
            return Err(denied);
        }
        self.ask_pod(&desired.object, Some(live)).await?;
        Ok(None)
    }
}

/// An object to be taken over whose owner is alive and would not let go of it.
fn foreign(step: &Step, state: &ClusterState, observed: &Observed) -> Option<ClusterError> {
    let (
        id,
        Step::Apply {
            change: Change::Adopt(_), ..
        },
    ) = (step.id()?, step)
    else {
        return None;
    };
    match ownership(observed.live.get(&id)?, &state.apply_set) {
        Ownership::Foreign { who } => Some(ClusterError::NotOurs { id, who }),
        Ownership::Ours | Ownership::Adoptable { .. } => None,
    }
}
