//! What of a plan repairs what somebody else has done: who it was, and whether to go on (effect).

use super::World;
use crate::cluster::{ClusterError, with_managers};
use crate::plan::{Change, Drift, Plan, Step, blame};
use futures::StreamExt;
use futures::stream;

/// Objects whose record of field managers is read before they are repaired. When more have changed at once it is one cause, and
/// the first of them tell it.
const BLAMED: usize = 20;
/// How many are read side by side.
const CONCURRENCY: usize = 8;

/// What was changed by whom, of everything that a plan repairs. It has to be read before: a repair makes the field ours.
pub(super) async fn found(world: &World, plan: &Plan) -> Vec<Drift> {
    let repairs: Vec<_> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Apply { object, change, .. } => match change {
                Change::Repair(fields) => Some((object.clone(), Some(fields.clone()))),
                Change::Restore => Some((object.clone(), None)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let all = stream::iter(repairs.into_iter().take(BLAMED)).map(|(wanted, fields)| async move {
        let id = wanted.id();
        let Some(fields) = fields else {
            return Ok(vec![Drift::deleted(id)]);
        };
        // Without the record the change is repaired all the same, and nobody is named.
        let live = with_managers(&world.client, wanted.api_version(), &id).await?;
        Ok::<_, ClusterError>(blame(&id, &fields, live.as_ref().unwrap_or(&wanted)))
    });
    let all: Vec<Result<Vec<Drift>, ClusterError>> = all.buffered(CONCURRENCY).collect().await;
    all.into_iter()
        .filter_map(|found| {
            found
                .inspect_err(|error| tracing::debug!(%error, "who changed an object is not known"))
                .ok()
        })
        .flatten()
        .collect()
}
