//! apply: carries a plan out. It decides nothing (effect).

use super::survey::Survey;
use super::{World, erase, keep};
use crate::cluster::ClusterError;
use crate::manifest::Object;
use crate::plan::{Change, Plan, Step};
use futures::StreamExt;
use futures::stream;
use std::collections::BTreeSet;

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

/// Carries out the steps in order. Steps of one wave run side by side. Where one fails, the later waves of its driver are left
/// to the next run, and so is the narrowing of the inventory; the other drivers do not depend on it and go on.
pub async fn execute(plan: &Plan, world: &World, place: &Place<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut failed: BTreeSet<Branch> = BTreeSet::new();
    let sweeps = place.chunked || keep::outgrows(plan, place);
    let mut steps = plan.steps.as_slice();
    while let Some(first) = steps.first() {
        let group = steps.iter().take_while(|step| rank(step) == rank(first)).count();
        let (now, later) = steps.split_at(group);
        steps = later;
        let blocked =
            |branch: &Branch| failed.contains(branch) || failed.contains(&Branch::All) || (*branch == Branch::All && !failed.is_empty());
        let open: Vec<Step> = now.iter().filter(|step| !blocked(&branch(step))).cloned().collect();
        let branches: Vec<Branch> = open.iter().map(branch).collect();
        let results: Vec<Result<(), ClusterError>> = stream::iter(open)
            .map(|step| one(step, world, place, sweeps))
            .buffered(CONCURRENCY)
            .collect()
            .await;
        for (result, branch) in results.into_iter().zip(branches) {
            match result {
                Ok(()) => outcome.writes += 1,
                Err(error) => {
                    outcome.failures.push(error);
                    failed.insert(branch);
                }
            }
        }
    }
    outcome
}

/// What a failure stops: everything that comes after it in the same branch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Branch {
    /// The inventory, and removals, which need all that came before.
    All,
    /// One driver.
    Driver(String),
}

fn branch(step: &Step) -> Branch {
    match step {
        Step::Apply { driver, .. } | Step::Replace { driver, .. } => Branch::Driver(driver.clone()),
        Step::Record(_) | Step::Delete { .. } | Step::Release { .. } | Step::Commit(_) => Branch::All,
    }
}

/// Steps of the same rank do not depend on each other.
fn rank(step: &Step) -> (u8, u8) {
    match step {
        Step::Record(_) => (0, 0),
        Step::Apply { wave, .. } | Step::Replace { wave, .. } => (1, *wave),
        Step::Delete { .. } | Step::Release { .. } => (2, 0),
        Step::Commit(_) => (3, 0),
    }
}

async fn one(step: Step, world: &World, place: &Place<'_>, sweeps: bool) -> Result<(), ClusterError> {
    match step {
        Step::Record(inventory) | Step::Commit(inventory) => keep::store(&inventory, world, place, sweeps).await?,
        Step::Apply { object, change, take, .. } => {
            if matches!(change, Change::Adopt(_)) {
                world.writer.hand_over(&object).await?;
            }
            let live = world.writer.apply(&object, take).await?;
            remember(world, &object, &live);
        }
        Step::Replace {
            id,
            api_version,
            uid,
            keep_pods,
            ..
        } => erase::delete(world, place.apply_set, &api_version, &id, &uid, keep_pods).await?,
        Step::Delete { id, api_version, uid } => erase::delete(world, place.apply_set, &api_version, &id, &uid, false).await?,
        Step::Release { id, api_version, uid } => erase::release(world, &api_version, &id, &uid).await?,
    }
    Ok(())
}

/// The next reconcile may come before the watch shows what was written.
pub(super) fn remember(world: &World, wanted: &Object, live: &Object) {
    if let Some(cache) = world.reader.cache() {
        cache.applied(wanted, live);
    }
}
