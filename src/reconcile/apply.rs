// SPDX-License-Identifier: Apache-2.0
//! The phase apply: makes the writes of a plan and reports them (effect).
//!
//! This phase decides no write, and no other place writes to an object of a driver.

pub(super) mod delete;
pub(super) mod former;
pub(super) mod state_secret;

use super::observe::ClusterState;
use super::phase::Phase;
use super::stopwatch::Stopwatch;
use super::{Ports, drift_managers};
use crate::cluster::{ClusterError, Writer};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeMap;
use vdo_api::api::{API_VERSION, FINALIZER, Reason, VDOConfig};
use vdo_api::types::count;
use vdo_core::manifest::Object;
use vdo_core::plan::{Change, Schedule, Step, Wait};
use vdo_core::status::{Failure, Report};

/// Writes that are under way at the same time. The API server's default limit for one client is far above this.
const CONCURRENCY: usize = 8;

/// What carrying out a plan led to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many writes were made.
    pub writes: usize,
    /// What went wrong, in the order of the steps.
    pub failures: Vec<ClusterError>,
    /// The places of the steps that the API server is against.
    pub refused: Vec<usize>,
}

/// Where the inventory is kept.
pub struct StateLocation<'a> {
    /// The namespace of the Secret.
    pub namespace: &'a str,
    /// The identity of the cluster.
    pub cluster: &'a str,
    /// The id of the apply set.
    pub apply_set: &'a str,
    /// The VDOConfig.
    pub config: &'a VDOConfig,
}

impl<'a> StateLocation<'a> {
    /// Where it was found, or would be.
    pub(super) fn of(state: &'a ClusterState, config: &'a VDOConfig) -> Self {
        Self {
            namespace: config.metadata.namespace.as_deref().unwrap_or_default(),
            cluster: &state.cluster.uid,
            apply_set: &state.apply_set,
            config,
        }
    }
}

/// Writes what may be written now.
pub(super) async fn write(config: &VDOConfig, ports: &Ports, state: &ClusterState, mut steps: Vec<Step>) -> Phase<()> {
    let mut found = Report::default();
    let drift = drift_managers::found(ports, &mut steps).await;
    if !steps.iter().any(|step| !matches!(step, Step::SetFinalizer)) {
        return Ok(((), found));
    }
    let mut watch = Stopwatch::start();
    let outcome = apply(&steps, ports, &StateLocation::of(state, config)).await;
    if let Some(memory) = &ports.dry_runs {
        if outcome.failures.is_empty() {
            memory.forget(&steps);
        }
        // The server has changed its mind, and is asked again before the next write.
        memory.forget(outcome.refused.iter().map(|step| &steps[*step]));
    }
    found.stages.push(watch.lap("apply"));
    found.failures.extend(outcome.failures.iter().map(Failure::from));
    if outcome.failures.is_empty() {
        found.drift = drift;
    }
    if steps.iter().any(Step::is_transition) {
        // What was just written has had no effect yet, so nothing that was seen before speaks for it.
        found.waiting.push(Wait {
            driver: String::new(),
            reason: Reason::Progressing,
            message: format!(
                "{} made; the operator waits until the result is visible in the cluster",
                count(outcome.writes, "change")
            ),
        });
    }
    Ok(((), found))
}

/// Makes the writes, each as soon as what it waits for is done. Where one fails, the later waves of its driver are left to the
/// next run, and so is the narrowing of the inventory; the other drivers do not depend on it and go on. What is under way is always
/// awaited.
pub async fn apply(steps: &[Step], ports: &Ports, place: &StateLocation<'_>) -> Outcome {
    let mut schedule = Schedule::of(steps);
    let mut under_way = FuturesUnordered::new();
    let (mut writes, mut failures) = (0, BTreeMap::new());
    loop {
        while under_way.len() < CONCURRENCY
            && let Some(step) = schedule.start()
        {
            under_way.push(async move { (step, one(&steps[step], ports, place).await) });
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
    let lasting = failures.iter().filter(|(_, error): &(&usize, &ClusterError)| error.is_lasting());
    Outcome {
        writes,
        refused: lasting.map(|(step, _)| *step).collect(),
        failures: failures.into_values().collect(),
    }
}

async fn one(step: &Step, ports: &Ports, place: &StateLocation<'_>) -> Result<(), ClusterError> {
    match step {
        Step::SetFinalizer => set_finalizer(place.config, &ports.writer).await?,
        Step::Record(inventory) | Step::Commit(inventory) => state_secret::store(inventory, ports, place).await?,
        Step::Apply { object, change, take, .. } => {
            if matches!(change, Change::Adopt(_)) {
                ports.writer.hand_over(object).await?;
            }
            let live = ports.writer.apply(object, *take).await?;
            remember(ports, object, &live);
        }
        Step::Replace {
            id,
            api_version,
            uid,
            keep_pods,
            ..
        } => delete::delete(ports, place.apply_set, api_version, id, uid, *keep_pods).await?,
        Step::Delete { id, api_version, uid, .. } => delete::delete(ports, place.apply_set, api_version, id, uid, false).await?,
        Step::Release { id, api_version, uid, .. } => delete::release(ports, api_version, id, uid).await?,
        Step::Store { object, .. } => {
            let live = ports.writer.apply(object, true).await?;
            remember(ports, object, &live);
            tracing::info!(object = %object.id(), "the next step of the certificate rotation of the CSI webhook is stored");
        }
        Step::Finish => {
            state_secret::forget(ports, place).await?;
            remove_finalizer(place.config, &ports.writer).await?;
        }
    }
    Ok(())
}

/// The next reconcile may come before the watch shows what was written.
pub(super) fn remember(ports: &Ports, wanted: &Object, live: &Object) {
    if let Some(cache) = ports.reader.cache() {
        cache.applied(wanted, live);
    }
}

/// Sets the finalizer, so that a VDOConfig is deleted only when its drivers are.
async fn set_finalizer(config: &VDOConfig, writer: &Writer) -> Result<(), ClusterError> {
    // Applied, not replaced: what the watch shows may be older than our own last report. With the UID nothing is created again.
    let wanted = json!({
        "apiVersion": API_VERSION,
        "kind": "VDOConfig",
        "metadata": {"name": config.name_any(), "namespace": config.namespace(), "uid": config.uid(), "finalizers": [FINALIZER]},
    });
    #[expect(
        clippy::expect_used,
        reason = "the literal above has a kind, and a VDOConfig from the API server always has a name"
    )]
    let wanted = Object::new(wanted).expect("a VDOConfig");
    writer.apply(&wanted, true).await?;
    Ok(())
}

/// Removes the finalizer, unless the object was changed in between.
async fn remove_finalizer(config: &VDOConfig, writer: &Writer) -> Result<(), ClusterError> {
    let rest: Vec<&String> = config.finalizers().iter().filter(|f| *f != FINALIZER).collect();
    let change = json!({"metadata": {"finalizers": rest, "resourceVersion": config.resource_version()}});
    writer.merge(API_VERSION, &config.id(), &change, false).await?;
    Ok(())
}
