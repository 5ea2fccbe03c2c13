// SPDX-License-Identifier: Apache-2.0
//! The phase dry run: tries the steps of a plan on the API server before the first write, and holds drivers with a refusal (effect).

mod ask;
pub(super) mod cache;
mod pods;

use super::dry_run::ask::{Answers, Tried};
use super::dry_run::cache::{DryRunCache, Refusal, Refusals, entitled, fingerprint};
use super::error::ReconcileError;
use super::live_objects::remember_adopted;
use super::observe::ClusterState;
use super::planned::Planned;
use super::{Ports, ReconcileInput};
use crate::cluster::{ClusterError, Select, Watch, rights};
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::api::{Classify as _, Reason, chain};
use vdo_api::types::{Digest, DriverName, ObjectId};
use vdo_core::manifest::{Object, changes};
use vdo_core::plan::{Change, Closed, Gate, Needs, Observed, Plan, PlannedStep, Skip, Step, Wait};

/// Which steps have a dry run.
#[derive(Clone, Copy)]
pub enum Scope<'a> {
    /// Those that lead to another state than the one that was reached before, on this input. A driver of which something was
    /// refused is asked for again when the next attempt is due, or when something about it has changed.
    Transitions(&'a ReconcileInput<'a>),
    /// All of them, to know what they would change.
    Everything,
}

impl Scope<'_> {
    fn takes(self, step: &Step) -> bool {
        matches!(self, Self::Everything) || step.is_transition()
    }

    /// Whether a refusal keeps the plan from being carried out. What the operator may is another question than what a user may who
    /// only looks.
    fn counts(self, refusal: &ClusterError) -> bool {
        matches!(self, Self::Transitions(_)) || refusal.reason() != Reason::Forbidden
    }
}

/// What the server said of a whole plan.
#[derive(Debug, Default)]
pub struct DryRun {
    /// What it would not accept, in the order of the steps.
    pub refusals: Vec<Refusal>,
    /// What it could not be asked yet, and why.
    pub deferred: Vec<Skip>,
    answers: BTreeMap<ObjectId, Object>,
}

/// Tries every step of the plan on the server. What is learned goes into the planned: objects that exist although no watch shows them
/// are adopted, fields that cannot be changed make an object be recreated where its kind allows it. A driver of which something is
/// refused is held, with those that must not go on without it. An instance whose definition the plan itself creates is tried when that
/// exists, before anything of its wave is written.
///
/// # Errors
/// When something that exists cannot be read.
pub async fn dry_run(ports: &Ports, state: &ClusterState, planned: &mut Planned, scope: Scope<'_>) -> Result<DryRun, ReconcileError> {
    let mut dry_run = DryRun::default();
    let Some(memory) = &ports.dry_runs else { return Ok(dry_run) };
    let known = match scope {
        Scope::Transitions(input) if !input.due => memory.refused(|| questions(&planned.plan, ports, input)),
        _ => Refusals::new(),
    };
    let needs = planned.needs(state);
    let silent = {
        let mut plan = planned.plan.clone();
        plan.close_all(closed(&known), &needs);
        plan
    };
    let mut first = None;
    // Each round begins with more knowledge, and there are two things to be learned of an object.
    for _ in 0..3 {
        let plan = &planned.plan;
        memory.retain(plan);
        let tried = |at: &usize| {
            let PlannedStep { step, gate, .. } = &plan.steps[*at];
            let apart = matches!(gate, Gate::Kept | Gate::Paused);
            !apart && scope.takes(step) && !silent.waits(step.driver())
        };
        let (deferred, asked): (Vec<usize>, Vec<usize>) = (0..plan.steps.len()).filter(tried).partition(|at| plan.deferral(*at).is_some());
        let unknown = |step: &&Step| {
            let known = step.id().is_some_and(|id| dry_run.answers.contains_key(&id));
            !known && (matches!(scope, Scope::Everything) || !memory.knows(step, &fingerprint(step)))
        };
        let asked: Vec<Step> = asked.iter().map(|at| &plan.steps[*at].step).filter(unknown).cloned().collect();
        let tried = Tried {
            ports,
            memory,
            state,
            planned,
        };
        let answers = tried.ask_all(asked).await;
        dry_run.refusals.clear();
        dry_run.deferred = deferred.iter().filter_map(|at| plan.deferral(*at)).collect();
        let later: Vec<Step> = deferred.iter().map(|at| plan.steps[*at].step.clone()).collect();
        let learned = take_in(ports, &mut planned.observed, &mut dry_run, memory, answers).await?;
        if matches!(scope, Scope::Transitions(_)) {
            let missing = rightless(ports, memory, &later.iter().collect::<Vec<_>>()).await?;
            let missing = missing.into_iter().map(|(id, error)| (id, Arc::new(error)));
            dry_run.refusals.extend(missing);
        }
        if !learned {
            break;
        }
        first.get_or_insert(planned.plan.clone());
        let live = planned.observed.live.clone();
        remember_adopted(&mut planned.desired, &live, state);
        planned.replan(state);
    }
    dry_run.refusals.extend(known.into_values().flatten());
    dry_run.refusals = in_order(&planned.plan, dry_run.refusals);
    if let Scope::Transitions(input) = scope {
        // Every attempt begins with what the first round knows.
        let asked = || questions(first.as_ref().unwrap_or(&planned.plan), ports, input);
        keep(memory, (planned, &needs), asked, &dry_run.refusals);
    }
    let counting = dry_run.refusals.iter().filter(|(_, refusal)| scope.counts(refusal));
    let refused = by_driver(&planned.plan, counting);
    planned.plan.close_all(closed(&refused), &needs);
    planned.plan.close_deferred();
    Ok(dry_run)
}

/// What the server is asked about each driver: the same question has the same answer for a while.
fn questions(plan: &Plan, ports: &Ports, input: &ReconcileInput<'_>) -> BTreeMap<DriverName, Digest> {
    let config = input.config;
    // A person who has fixed something sets an annotation, see `api::RECONCILE_AT`.
    let asked = format!("{:?} {:?}", config.metadata.generation, config.annotations());
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for step in plan.writes().filter(|step| step.is_transition()) {
        let Some(id) = step.id() else { continue };
        let text = texts.entry(step.driver()).or_insert_with(|| asked.clone());
        let found = match step {
            Step::Apply { change, .. } => format!("{change:?}"),
            _ => String::new(),
        };
        // Whether pods are let in hangs on them.
        let home = ObjectId::new("", "Namespace", "", id.namespace.clone());
        let home = ports.reader.cache().and_then(|cache| cache.get(&home));
        let labels = home.map(|home| home.value()["metadata"]["labels"].to_string());
        text.push_str(&format!("\n{id} {} {found} {labels:?}", fingerprint(step)));
    }
    let digests = texts
        .into_iter()
        .map(|(driver, text)| (driver.to_owned(), Digest::of(text.as_bytes())));
    digests.collect()
}

/// Remembers what was refused. Of what is held because of it nothing is written, so the next attempt begins before the first write again.
/// What a server accepted while it was overloaded still counts: else a plan of many steps would hardly ever be accepted as a whole.
fn keep(
    memory: &DryRunCache,
    (planned, needs): (&Planned, &Needs),
    asked: impl Fn() -> BTreeMap<DriverName, Digest>,
    refusals: &[Refusal],
) {
    let about_the_step = |(_, error): &&Refusal| !matches!(error.reason(), Reason::ApiUnavailable | Reason::ApplyFailed);
    let mut refused = by_driver(&planned.plan, refusals.iter().filter(about_the_step));
    let mut plan = planned.plan.clone();
    plan.close_all(closed(&refused), needs);
    memory.forget(plan.writes().filter(|step| plan.waits(step.driver())));
    let asked = if refused.is_empty() { BTreeMap::new() } else { asked() };
    let same = asked.into_iter().filter_map(|(driver, what)| {
        let refusals = refused.remove(&driver)?;
        Some((driver, (what, refusals)))
    });
    memory.refuse(same.collect());
}

/// The refusals of each driver.
fn by_driver<'a>(plan: &Plan, refusals: impl Iterator<Item = &'a Refusal>) -> Refusals {
    let mut drivers = Refusals::new();
    for (id, refusal) in refusals {
        let step = plan.writes().find(|step| step.id().as_ref() == Some(id));
        let driver = step.map_or("", Step::driver).to_owned();
        drivers.entry(driver).or_default().push((id.clone(), refusal.clone()));
    }
    drivers
}

/// Each of these drivers waits until the first of its refusals is taken back.
fn closed(refused: &Refusals) -> Vec<Closed> {
    let wait = |(driver, refusals): (&DriverName, &Vec<Refusal>)| {
        let (_, refusal) = refusals.first()?;
        Some(Closed::refused(Wait {
            driver: driver.clone(),
            reason: refusal.reason(),
            message: chain(refusal.as_ref()),
        }))
    };
    refused.iter().filter_map(wait).collect()
}

/// Refusals in the order of the steps.
fn in_order(plan: &Plan, mut refusals: Vec<Refusal>) -> Vec<Refusal> {
    if refusals.len() > 1 {
        let steps = plan.writes().enumerate();
        let places: BTreeMap<ObjectId, usize> = steps.filter_map(|(place, step)| Some((step.id()?, place))).collect();
        refusals.sort_by_key(|(id, _)| places.get(id).copied());
    }
    refusals
}

/// Sorts the answers; whether planning has to be repeated.
async fn take_in(
    ports: &Ports,
    observed: &mut Observed,
    dry_run: &mut DryRun,
    memory: &DryRunCache,
    answers: Answers,
) -> Result<bool, ReconcileError> {
    let mut learned = false;
    for (step, answer) in answers {
        let Some(id) = step.id() else { continue };
        let creates = matches!(
            &step,
            Step::Apply {
                change: Change::Create,
                ..
            }
        );
        let exists = match &answer {
            Ok(Some(answer)) => !answer.created,
            Err(ClusterError::Conflict { .. }) => true,
            _ => false,
        };
        if let (true, true, Step::Apply { object, .. }) = (creates, exists, &step) {
            let watch = Watch::new(
                object.api_version(),
                object.kind(),
                object.namespace(),
                Select::Name(object.name().to_owned()),
            );
            if let Some(live) = ports.reader.load([watch.clone()]).await?.one(&watch) {
                Arc::make_mut(&mut observed.live).insert(id, live);
                learned = true;
                continue;
            }
        }
        match answer {
            Ok(Some(answer)) => {
                let refused = answer.warnings.iter().find(|warning| warning.contains(POD_SECURITY)).cloned();
                if let (Some(warning), Step::Apply { object, .. }) = (refused, &step)
                    && enforced(&warning, namespace(ports, object.namespace()).await.as_ref())
                {
                    let refusal = ClusterError::pod_security(id.clone(), &warning);
                    dry_run.refusals.push((id, Arc::new(refusal)));
                    continue;
                }
                memory.remember(&step, fingerprint(&step));
                dry_run.answers.insert(id, answer.object);
            }
            Ok(None) => memory.remember(&step, fingerprint(&step)),
            Err(error) => {
                if matches!(error, ClusterError::Immutable { .. }) {
                    learned |= observed.immutable.insert(id.clone());
                }
                dry_run.refusals.push((id, Arc::new(error)));
            }
        }
    }
    Ok(learned)
}

/// What can be said already of steps that cannot be tried: whether we have the rights.
pub(super) async fn rightless(
    ports: &Ports,
    memory: &DryRunCache,
    deferred: &[&Step],
) -> Result<Vec<(ObjectId, ClusterError)>, ClusterError> {
    let mut missing = Vec::new();
    let mut by_namespace: BTreeMap<String, Vec<&Step>> = BTreeMap::new();
    for step in deferred.iter().filter(|step| !memory.knows(step, &entitled())) {
        let namespace = step.id().map(|id| id.namespace.clone()).unwrap_or_default();
        by_namespace.entry(namespace).or_default().push(step);
    }
    // Rights in the whole cluster are part of the answer for every namespace.
    if let Some(cluster) = by_namespace.remove("") {
        let any = by_namespace.keys().next().cloned().unwrap_or_else(|| "kube-system".into());
        by_namespace.entry(any).or_default().extend(cluster);
    }
    for (namespace, steps) in by_namespace {
        let own = rights(&ports.client, &namespace).await?;
        for step in steps {
            let (verbs, api_version): (&[&str], &str) = match step {
                Step::Apply { object, .. } => (&["patch", "create"], object.api_version()),
                Step::Delete { api_version, .. } => (&["delete"], api_version),
                _ => continue,
            };
            let Some(id) = step.id() else { continue };
            match own.require(verbs, api_version, &id) {
                Ok(()) => memory.remember(step, entitled()),
                Err(error) => missing.push((id, error)),
            }
        }
    }
    Ok(missing)
}

/// How the warning begins that a workload gets whose pods will not be let in.
const POD_SECURITY: &str = "would violate PodSecurity";

/// Whether the namespace enforces what the warning is about. The server speaks of the level that is warned of, which is the one
/// that is enforced unless the namespace says otherwise.
fn enforced(warning: &str, namespace: Option<&Object>) -> bool {
    let Some(level) = warning.split('"').nth(1).and_then(|level| level.split(':').next()) else {
        return false;
    };
    namespace.and_then(|namespace| namespace.label("pod-security.kubernetes.io/enforce")) == Some(level)
}

/// A namespace as it is now, if it can be seen: not being allowed to is no reason to refuse anything. Watches may not show yet what the
/// warning is about.
async fn namespace(ports: &Ports, name: &str) -> Option<Object> {
    let watch = Watch::new("v1", "Namespace", "", Select::Name(name.to_owned()));
    ports.reader.now(&watch).await.ok()?.pop()
}

impl DryRun {
    /// Replaces what a comparison says by what the server says: it writes some values in its own way, and a field that is no
    /// longer wanted is known to it alone. Gives the objects that turn out to be as they should be.
    pub fn refine(&self, plan: &mut Plan, observed: &Observed) -> BTreeSet<ObjectId> {
        let mut same = BTreeSet::new();
        for planned in &mut plan.steps {
            let Step::Apply {
                object,
                change: change @ (Change::Update(_) | Change::Repair(_) | Change::Adopt(_)),
                ..
            } = &mut planned.step
            else {
                continue;
            };
            let id = object.id();
            let (Some(answer), Some(live)) = (self.answers.get(&id), observed.live.get(&id)) else {
                continue;
            };
            let found = changes(answer, live);
            if found.is_empty() && matches!(change, Change::Repair(_)) {
                same.insert(id);
            }
            match change {
                Change::Update(fields) | Change::Repair(fields) | Change::Adopt(fields) => *fields = found,
                Change::Create | Change::Restore => {}
            }
        }
        plan.drop_steps(|step| step.id().is_some_and(|id| same.contains(&id)));
        same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn dry_run_pod_security_warn_level_is_not_refused() {
        let warning = "would violate PodSecurity \"restricted:latest\": host namespaces";
        let namespace = |labels: Value| {
            Object::new(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}})).expect("an object")
        };
        for (labels, refused) in [
            (json!({"pod-security.kubernetes.io/enforce": "restricted"}), true),
            (
                json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"}),
                false,
            ),
            (json!({"pod-security.kubernetes.io/warn": "restricted"}), false),
        ] {
            assert_eq!(enforced(warning, Some(&namespace(labels.clone()))), refused, "{labels}");
        }
        assert!(!enforced(warning, None));
    }
}
