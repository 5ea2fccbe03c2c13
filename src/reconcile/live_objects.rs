// SPDX-License-Identifier: Apache-2.0
//! The phase look: reads live objects that are desired but not in the inventory yet, and the guards of deletions (effect: reads).

use super::error::ReconcileError;
use super::observe::deletion_guards::look_up;
use super::observe::{ClusterState, watches};
use super::planned::Planned;
use super::{Ports, ReconcileInput};
use std::sync::Arc;
use vdo_api::types::ById;
use vdo_core::drivers::STORAGE;
use vdo_core::manifest::{Object, is_owned, remember_configuration, start_early};
use vdo_core::plan::{self, Desired, Observed};

/// Looks at the objects that are not in the inventory yet, and at what must be known before something is deleted. What a workload should be depends on what is found in two things: with which
/// configuration its pods began, and whether they could run before the nodes were initialised.
pub(super) async fn look(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    planned: &mut Planned,
) -> Result<(), ReconcileError> {
    let mut live = state.live.clone();
    let new: Vec<_> = state
        .inventory
        .unlisted(&planned.desired)
        .map(|o| (o.identity(), o.api_version()))
        .collect();
    if !new.is_empty() {
        let found = ports.reader.live(&new, watches(&new, &state.apply_set)).await?;
        Arc::make_mut(&mut live).extend(found);
    }
    let salt = &state.cluster.uid;
    remember_adopted(&mut planned.desired, &live, state);
    let after_nodes = planned.is_after_nodes();
    for d in planned.desired.iter_mut().filter(|d| d.object.pod_spec().is_some()) {
        let there = live.get(d.object.identity());
        if *d.driver == *STORAGE.name {
            let last = there.is_none().then(|| last_applied(state, d)).flatten();
            start_early(&mut d.object, there.or(last.as_ref()), !after_nodes, salt);
        }
        if let Some(live) = there.filter(|live| is_owned(live, &state.apply_set)) {
            remember_configuration(&mut d.object, live, salt);
        }
    }
    let pairs = planned
        .desired
        .iter()
        .filter_map(|d| Some((&d.object, live.get(d.object.identity())?)));
    let in_sync = ports.reader.cache().map(|cache| cache.in_sync().among(pairs)).unwrap_or_default();
    planned.observed = Observed {
        live,
        in_sync,
        force_reapply: input.force_reapply.clone(),
        at: input.now,
        timeout: input.timeout,
        ..Observed::default()
    };
    let lookups = plan::lookups(&planned.input(state));
    look_up(ports, input.config, &state.apply_set, lookups, &mut planned.observed).await?;
    Ok(())
}

/// Marks what other tools made.
pub(super) fn remember_adopted(desired: &mut [Desired], live: &ById<Object>, state: &ClusterState) {
    for d in desired {
        if let Some(live) = live.get(d.object.identity()) {
            let known = state.inventory.objects.get(d.object.identity());
            plan::remember_adoption(&mut d.object, live, known, &state.apply_set, &state.cluster.uid);
        }
    }
}

/// What was applied last of an object that is not there.
fn last_applied(state: &ClusterState, desired: &Desired) -> Option<Object> {
    let all = state.inventory.last_applied(&desired.driver, |_| None, &[])?;
    let found = all.into_iter().find(|last| last.object.identity() == desired.object.identity())?;
    Some(found.object)
}
