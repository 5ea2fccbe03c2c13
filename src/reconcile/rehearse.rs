//! rehearse: the whole plan, tried on the server before its first write (effect; what is concluded is pure).

use super::World;
use super::error::ReconcileError;
use super::prepare::Prepared;
use super::survey::Survey;
use crate::api::{Failure as _, Reason};
use crate::cluster::{ClusterError, Rehearsed, Select, Watch, rights};
use crate::manifest::{Object, changes, is_installer};
use crate::plan::{Change, Observed, Ownership, Plan, Skip, Step, ownership};
use crate::types::{Digest, ObjectId};
use futures::StreamExt;
use futures::stream;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that are under way at the same time.
const CONCURRENCY: usize = 8;

/// How long a rehearsed step counts: policies and rights change.
const FRESH: Duration = Duration::from_secs(600);

/// The steps that the server has accepted in a rehearsal, so that a plan of several increments is rehearsed once. It may be lost
/// at any instant without harm.
#[derive(Debug, Default)]
pub struct Rehearsals(Mutex<BTreeMap<ObjectId, (Digest, Instant)>>);

impl Rehearsals {
    fn knows(&self, step: &Step, what: &Digest) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |id| known.get(&id).is_some_and(|(seen, at)| seen == what && at.elapsed() < FRESH);
        step.id().is_some_and(fresh)
    }

    fn remember(&self, step: &Step, what: Digest) {
        if let Some(id) = step.id() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(id, (what, Instant::now()));
        }
    }

    /// Forgets the steps of a plan that was carried out wholly: what is to be done to these objects next is tried anew, because they may
    /// be somebody else's by then.
    pub(super) fn forget(&self, plan: &Plan) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for id in plan.steps.iter().filter_map(Step::id) {
            known.remove(&id);
        }
    }

    /// Forgets what no plan asks for any more.
    pub(super) fn retain(&self, plan: &Plan) {
        let wanted: BTreeSet<ObjectId> = plan.steps.iter().filter_map(Step::id).collect();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|id, _| wanted.contains(id));
    }
}

/// What would be written, and in which way.
fn fingerprint(step: &Step) -> Digest {
    let text = match step {
        Step::Apply { object, take, .. } => format!("apply {take} {}", object.digest("")),
        Step::Replace { id, uid, .. } | Step::Delete { id, uid, .. } => format!("delete {id} {uid}"),
        Step::Release { .. } | Step::Record(_) | Step::Commit(_) => String::new(),
    };
    Digest::of(text.as_bytes())
}

/// Of a step that cannot be tried yet it is known that we have the rights.
fn entitled() -> Digest {
    Digest::of(b"entitled")
}

/// Which steps are rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those that lead to another state than the one that was reached before.
    Transitions,
    /// All of them, to know what they would change.
    Everything,
}

/// What the server said of a whole plan.
#[derive(Debug, Default)]
pub struct Rehearsal {
    /// What it would not accept, in the order of the steps.
    pub refusals: Vec<(ObjectId, ClusterError)>,
    /// What it could not be asked yet, and why.
    pub deferred: Vec<Skip>,
    answers: BTreeMap<ObjectId, Object>,
}

/// Tries every step of the whole plan on the server. What is learned goes into the plan: objects that exist although no watch
/// shows them are adopted, and fields that cannot be changed make an object be replaced where its kind allows it. Steps into a
/// namespace that the plan itself brings wait until it is there and are tried then, before any of them is made.
///
/// # Errors
/// When something that exists cannot be read.
pub async fn rehearse(world: &World, survey: &Survey, prepared: &mut Prepared, scope: Scope) -> Result<Rehearsal, ReconcileError> {
    let mut rehearsal = Rehearsal::default();
    let Some(memory) = &world.rehearsals else { return Ok(rehearsal) };
    // Each round begins with more knowledge, and there are two things to be learned of an object.
    for _ in 0..3 {
        let whole = prepared.whole(survey);
        memory.retain(&whole);
        let (deferred, asked): (Vec<&Step>, Vec<&Step>) = whole
            .steps
            .iter()
            .filter(|step| scope == Scope::Everything || is_transition(step))
            .partition(|step| obstacle(step, &whole).is_some());
        let unknown = |step: &&&Step| {
            let known = step.id().is_some_and(|id| rehearsal.answers.contains_key(&id));
            !known && (scope == Scope::Everything || !memory.knows(step, &fingerprint(step)))
        };
        let asked: Vec<Step> = asked.iter().filter(unknown).map(|step| (*step).clone()).collect();
        let observed = &prepared.observed;
        let answers: Vec<(Step, Result<Option<Rehearsed>, ClusterError>)> = stream::iter(asked)
            .map(|step| async move {
                let answer = ask(world, survey, observed, &step).await;
                (step, answer)
            })
            .buffered(CONCURRENCY)
            .collect()
            .await;
        rehearsal.refusals.clear();
        let learned = take_in(world, prepared, &mut rehearsal, memory, &whole, answers).await?;
        rehearsal.deferred = deferred.iter().filter_map(|step| deferral(step, &whole)).collect();
        let stopping = deferred
            .iter()
            .filter(|step| obstacle(step, &whole).is_some_and(|obstacle| obstacle.stops));
        if let Some(first) = stopping.filter_map(|step| step.wave()).min() {
            prepared.hold_from(first);
        }
        if scope == Scope::Transitions {
            let refused = rightless(world, memory, &deferred).await?;
            rehearsal.refusals.extend(refused);
        }
        prepared.replan(survey);
        if !learned {
            break;
        }
    }
    let about_the_step = |error: &ClusterError| !matches!(error.reason(), Reason::ApiUnavailable | Reason::ApplyFailed);
    if rehearsal.refusals.iter().any(|(_, error)| about_the_step(error)) {
        // Nothing is written, so the next attempt begins before its first write again. What a server accepted while it was
        // overloaded still counts: else a plan of many steps would hardly ever be accepted as a whole.
        memory.retain(&Plan::default());
    }
    Ok(rehearsal)
}

/// Sorts the answers; whether the plan has to be made again.
async fn take_in(
    world: &World,
    prepared: &mut Prepared,
    rehearsal: &mut Rehearsal,
    memory: &Rehearsals,
    whole: &Plan,
    answers: Vec<(Step, Result<Option<Rehearsed>, ClusterError>)>,
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
            Err(ClusterError::Conflict { .. } | ClusterError::Escalation { .. }) => true,
            _ => false,
        };
        if let (true, true, Step::Apply { object, .. }) = (creates, exists, &step) {
            let watch = Watch::new(
                object.api_version(),
                object.kind(),
                object.namespace(),
                Select::Name(object.name().to_owned()),
            );
            if let Some(live) = world.reader.load([watch.clone()]).await?.one(&watch) {
                prepared.observed.live.insert(id, live);
                learned = true;
                continue;
            }
        }
        match answer {
            Ok(Some(answer)) => {
                let refused = answer.warnings.iter().find(|warning| warning.contains(POD_SECURITY)).cloned();
                if let (Some(warning), Step::Apply { object, .. }) = (refused, &step)
                    && enforced(&warning, namespace(world, object.namespace()).await.as_ref())
                {
                    rehearsal.refusals.push((id.clone(), ClusterError::pod_security(id, &warning)));
                    continue;
                }
                memory.remember(&step, fingerprint(&step));
                rehearsal.answers.insert(id, answer.object);
            }
            Ok(None) => memory.remember(&step, fingerprint(&step)),
            // The server judges it by the role as it is, which grants more than it will when it is the turn of the binding.
            Err(ClusterError::Escalation { .. }) if binds_what_changes(&step, whole) => {}
            Err(error) => {
                if matches!(error, ClusterError::Immutable { .. }) {
                    learned |= prepared.observed.immutable.insert(id.clone());
                }
                rehearsal.refusals.push((id, error));
            }
        }
    }
    Ok(learned)
}

async fn ask(world: &World, survey: &Survey, observed: &Observed, step: &Step) -> Result<Option<Rehearsed>, ClusterError> {
    if let Some(foreign) = foreign(step, survey, observed) {
        return Err(foreign);
    }
    match step {
        Step::Apply { object, change, take, .. } => {
            let answer = world.writer.rehearse(object, *take).await;
            match (change, answer) {
                (Change::Adopt(_), Err(ClusterError::Conflict { id, mut fields })) => {
                    // What installers own is handed over before the apply, and is no conflict then.
                    fields.retain(|field| !is_installer(&field.manager));
                    if !fields.is_empty() {
                        return Err(world.writer.dated(object, ClusterError::Conflict { id, fields }).await);
                    }
                    world.writer.rehearse(object, true).await.map(Some)
                }
                (_, answer) => answer.map(Some),
            }
        }
        // Of its successor the server can say nothing while it is there.
        Step::Replace { id, api_version, uid, .. } | Step::Delete { id, api_version, uid, .. } => {
            world.writer.rehearse_delete(api_version, id, uid).await.map(|()| None)
        }
        Step::Release { .. } | Step::Record(_) | Step::Commit(_) => Ok(None),
    }
}

/// An object to be taken over whose owner is alive and would not let go of it.
fn foreign(step: &Step, survey: &Survey, observed: &Observed) -> Option<ClusterError> {
    let (
        id,
        Step::Apply {
            change: Change::Adopt(_), ..
        },
    ) = (step.id()?, step)
    else {
        return None;
    };
    match ownership(observed.live.get(&id)?, &survey.apply_set) {
        Ownership::Foreign { who } => Some(ClusterError::NotOurs { id, who }),
        Ownership::Ours | Ownership::Adoptable { .. } => None,
    }
}

fn is_transition(step: &Step) -> bool {
    match step {
        Step::Apply { change, .. } => !matches!(change, Change::Repair(_) | Change::Restore),
        Step::Replace { .. } | Step::Delete { .. } => true,
        Step::Release { .. } | Step::Record(_) | Step::Commit(_) => false,
    }
}

/// What the plan itself has to bring before the server can be asked about a step.
struct Obstacle {
    id: ObjectId,
    /// Whether the plan stops when it is there, to ask then. The API server lets nobody bind a role that does not exist, but
    /// stopping once more for bindings would leave their roles behind when it says no.
    stops: bool,
}

fn obstacle(step: &Step, whole: &Plan) -> Option<Obstacle> {
    let Step::Apply { object, .. } = step else { return None };
    let brings = |other: &Object| match other.kind() {
        "Namespace" => other.name() == object.namespace(),
        "CustomResourceDefinition" => {
            let group = object.api_version().rsplit_once('/').map_or("", |(group, _)| group);
            other.text("/spec/group") == group && other.text("/spec/names/kind") == object.kind()
        }
        "ClusterRole" | "Role" => binds(object, other),
        _ => false,
    };
    let new = whole.steps.iter().filter_map(|other| match other {
        Step::Apply {
            object: other,
            change: Change::Create | Change::Restore,
            ..
        } if brings(other) => Some(Obstacle {
            id: other.id(),
            stops: !binds(object, other),
        }),
        _ => None,
    });
    new.max_by_key(|obstacle| obstacle.stops)
}

fn binds(binding: &Object, role: &Object) -> bool {
    let names = binding.text("/roleRef/kind") == role.kind() && binding.text("/roleRef/name") == role.name();
    names && (role.namespace().is_empty() || role.namespace() == binding.namespace())
}

/// Whether this is a binding to a role that the plan itself writes before.
fn binds_what_changes(step: &Step, whole: &Plan) -> bool {
    let Step::Apply { object, .. } = step else { return false };
    whole
        .steps
        .iter()
        .any(|other| matches!(other, Step::Apply { object: role, .. } if binds(object, role)))
}

fn deferral(step: &Step, whole: &Plan) -> Option<Skip> {
    let (id, obstacle) = (step.id()?, obstacle(step, whole)?);
    let message = match obstacle.stops {
        true => format!(
            "{id} is tried on the server once {} is there, before anything is written into it",
            obstacle.id
        ),
        false => format!(
            "{id} cannot be tried on the server before {} is there; only the right to write it is known",
            obstacle.id
        ),
    };
    Some(Skip { id, message })
}

/// What can be said already of steps that cannot be tried: whether we have the rights.
pub(super) async fn rightless(
    world: &World,
    memory: &Rehearsals,
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
        let own = rights(&world.client, &namespace).await?;
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
async fn namespace(world: &World, name: &str) -> Option<Object> {
    let watch = Watch::new("v1", "Namespace", "", Select::Name(name.to_owned()));
    world.reader.now(&watch).await.ok()?.pop()
}

impl Rehearsal {
    /// Replaces what a comparison says by what the server says: it writes some values in its own way, and a field that is no
    /// longer wanted is known to it alone. Gives the objects that turn out to be as they should be.
    pub fn refine(&self, plan: &mut Plan, observed: &Observed) -> BTreeSet<ObjectId> {
        let mut same = BTreeSet::new();
        for step in &mut plan.steps {
            let Step::Apply {
                object,
                change: change @ (Change::Update(_) | Change::Repair(_) | Change::Adopt(_)),
                ..
            } = step
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
        plan.steps.retain(|step| step.id().is_none_or(|id| !same.contains(&id)));
        same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn apply(value: Value) -> Step {
        Step::Apply {
            object: Object::new(value).expect("an object"),
            change: Change::Create,
            wave: 0,
            driver: "d".into(),
            take: false,
        }
    }

    #[test]
    fn what_the_plan_brings_itself_is_waited_for() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "xs.g"},
            "spec": {"group": "g", "names": {"kind": "X"}}});
        let plan = Plan {
            steps: vec![
                apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})),
                apply(definition),
                apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "in", "namespace": "new"}})),
                apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "out", "namespace": "old"}})),
                apply(json!({"apiVersion": "g/v1", "kind": "X", "metadata": {"name": "x"}})),
                apply(json!({"apiVersion": "h/v1", "kind": "X", "metadata": {"name": "y"}})),
                apply(json!({"apiVersion": "r/v1", "kind": "ClusterRole", "metadata": {"name": "r"}})),
                apply(
                    json!({"apiVersion": "r/v1", "kind": "RoleBinding", "metadata": {"name": "b", "namespace": "old"}, "roleRef": {"kind": "ClusterRole", "name": "r"}}),
                ),
                apply(
                    json!({"apiVersion": "r/v1", "kind": "RoleBinding", "metadata": {"name": "c", "namespace": "new"}, "roleRef": {"kind": "ClusterRole", "name": "r"}}),
                ),
                apply(
                    json!({"apiVersion": "r/v1", "kind": "RoleBinding", "metadata": {"name": "d", "namespace": "old"}, "roleRef": {"kind": "Role", "name": "r"}}),
                ),
            ],
            ..Plan::default()
        };
        let waiting: Vec<String> = plan
            .steps
            .iter()
            .filter_map(|step| deferral(step, &plan))
            .map(|skip| skip.message)
            .collect();
        assert_eq!(
            waiting,
            [
                "ConfigMap new/in is tried on the server once Namespace new is there, before anything is written into it",
                "X x is tried on the server once CustomResourceDefinition xs.g is there, before anything is written into it",
                "RoleBinding old/b cannot be tried on the server before ClusterRole r is there; only the right to write it is known",
                "RoleBinding new/c is tried on the server once Namespace new is there, before anything is written into it",
            ]
        );
    }

    #[test]
    fn a_level_that_is_only_warned_of_refuses_nothing() {
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
