//! apply: carries a plan out. It decides nothing (effect).

use super::survey::Survey;
use super::{World, erase, keep};
use crate::cluster::ClusterError;
use crate::manifest::Object;
use crate::plan::{Change, Plan, Schedule, Step};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::collections::BTreeMap;

/// Writes that are under way at the same time. The API server's default limit for one client is far above this.
const CONCURRENCY: usize = 8;

/// What carrying out a plan led to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many writes were made.
    pub writes: usize,
    /// What went wrong, in the order of the steps.
    pub failures: Vec<ClusterError>,
}

/// Where the inventory is kept.
pub struct Place<'a> {
    /// The namespace of the ConfigMap.
    pub namespace: &'a str,
    /// The name of the ConfigMap.
    pub name: &'a str,
    /// The id of the apply set.
    pub apply_set: &'a str,
    /// Whether it is kept in several ConfigMaps now.
    pub chunked: bool,
}

impl<'a> Place<'a> {
    /// Where a survey found it, or would have.
    pub(super) fn of(survey: &'a Survey, namespace: &'a str) -> Self {
        Self {
            namespace,
            name: &survey.inventory_name,
            apply_set: &survey.apply_set,
            chunked: survey.chunked,
        }
    }
}

/// Carries out the steps, each as soon as what it waits for is done. Where one fails, the later waves of its driver are left to the
/// next run, and so is the narrowing of the inventory; the other drivers do not depend on it and go on. What is under way is always
/// awaited.
pub async fn execute(plan: &Plan, world: &World, place: &Place<'_>) -> Outcome {
    let sweeps = place.chunked || keep::outgrows(plan, place);
    let mut schedule = Schedule::of(&plan.steps);
    let mut under_way = FuturesUnordered::new();
    let (mut writes, mut failures) = (0, BTreeMap::new());
    loop {
        while under_way.len() < CONCURRENCY
            && let Some(step) = schedule.start()
        {
            under_way.push(async move { (step, one(&plan.steps[step], world, place, sweeps).await) });
        }
        match under_way.next().await {
            Some((step, Ok(()))) => {
                writes += 1;
                schedule.done(step);
            }
            Some((step, Err(error))) => {
                schedule.failed(step);
                failures.insert(step, error);
            }
            None => break,
        }
    }
    Outcome {
        writes,
        failures: failures.into_values().collect(),
    }
}

async fn one(step: &Step, world: &World, place: &Place<'_>, sweeps: bool) -> Result<(), ClusterError> {
    match step {
        Step::Record(inventory) | Step::Commit(inventory) => keep::store(inventory, world, place, sweeps).await?,
        Step::Apply { object, change, take, .. } => {
            if matches!(change, Change::Adopt(_)) {
                world.writer.hand_over(object).await?;
            }
            let live = world.writer.apply(object, *take).await?;
            remember(world, object, &live);
        }
        Step::Replace {
            id,
            api_version,
            uid,
            keep_pods,
            ..
        } => erase::delete(world, place.apply_set, api_version, id, uid, *keep_pods).await?,
        Step::Delete { id, api_version, uid } => erase::delete(world, place.apply_set, api_version, id, uid, false).await?,
        Step::Release { id, api_version, uid } => erase::release(world, api_version, id, uid).await?,
    }
    Ok(())
}

/// The next reconcile may come before the watch shows what was written.
pub(super) fn remember(world: &World, wanted: &Object, live: &Object) {
    if let Some(cache) = world.reader.cache() {
        cache.applied(wanted, live);
    }
}
