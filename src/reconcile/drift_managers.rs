// SPDX-License-Identifier: Apache-2.0
//! Finds out which field manager made the changes that a plan repairs, from managedFields (effect: reads).

use super::Ports;
use crate::cluster::{ClusterError, with_managers};
use futures::StreamExt;
use futures::stream;
use std::collections::BTreeSet;
use vdo_api::types::ObjectId;
use vdo_core::manifest::{Difference, Object};
use vdo_core::plan::{Change, Drift, Step, attribute, is_own_spelling};

/// Objects whose record of field managers is read before they are repaired. When more have changed at once it is one cause, and
/// the first of them tell it.
const BLAMED: usize = 20;
/// How many are read side by side.
const CONCURRENCY: usize = 8;

/// What was changed by whom, of everything that a plan repairs. It has to be read before: a repair makes the field ours. What turns out
/// to be changed by no one, but written by the API server in its own way, leaves the plan.
pub(super) async fn found(ports: &Ports, steps: &mut Vec<Step>) -> Vec<Drift> {
    let repairs: Vec<(Object, Option<Vec<Difference>>)> = steps
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
            return Ok(LiveDifference::Changed(vec![Drift::deleted(id)]));
        };
        // Without the record the change is still repaired, and no one is named.
        let live = with_managers(&ports.client, wanted.api_version(), &id).await?;
        if let Some(live) = live.as_ref().filter(|live| is_own_spelling(&fields, live)) {
            if let Some(cache) = ports.reader.cache() {
                cache.in_sync().settle(&wanted, live);
            }
            return Ok(LiveDifference::Spelled(id));
        }
        Ok::<_, ClusterError>(LiveDifference::Changed(attribute(&id, &fields, live.as_ref().unwrap_or(&wanted))))
    });
    let all: Vec<Result<LiveDifference, ClusterError>> = all.buffered(CONCURRENCY).collect().await;
    let mut changed = Vec::new();
    let mut server_normalized = BTreeSet::new();
    for found in all {
        match found {
            Ok(LiveDifference::Changed(drift)) => changed.extend(drift),
            Ok(LiveDifference::Spelled(id)) => {
                server_normalized.insert(id);
            }
            Err(error) => tracing::debug!(%error, "who changed an object is not known"),
        }
    }
    steps.retain(|step| {
        let repair = matches!(
            step,
            Step::Apply {
                change: Change::Repair(_),
                ..
            }
        );
        !repair || step.id().is_none_or(|id| !server_normalized.contains(&id))
    });
    changed
}

enum LiveDifference {
    Changed(Vec<Drift>),
    Spelled(ObjectId),
}
