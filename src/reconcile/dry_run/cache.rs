// SPDX-License-Identifier: Apache-2.0
//! Remembers the answers to dry runs for a while, so that the same step has one request. A loss of this memory is harmless.

use crate::cluster::ClusterError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vdo_api::types::{Digest, DriverName, ObjectId};
use vdo_core::plan::{Plan, Step};
use vdo_core::status::Failure;

/// How long the dry run of a step counts: policies and rights change.
const FRESH: Duration = Duration::from_secs(600);

/// What the server would not accept, and why.
pub type Refusal = (ObjectId, Arc<ClusterError>);

/// The refusals of each driver.
pub(in crate::reconcile) type Refusals = BTreeMap<DriverName, Vec<Refusal>>;

/// The steps that the server has accepted in a dry run, so that a plan of several increments has one dry run, and the drivers of
/// which it has refused something, so that the others do not ask for them with every step of their own.
#[derive(Debug, Default)]
pub struct DryRunCache(Mutex<CachedAnswers>);

#[derive(Debug, Default)]
struct CachedAnswers {
    /// The UID of the VDOConfig that was asked for.
    config: String,
    accepted: BTreeMap<ObjectId, (Digest, Instant)>,
    /// By driver, with the digest of everything that was asked about it.
    refused: BTreeMap<DriverName, (Digest, Vec<Refusal>)>,
    /// The namespaces in which no pod may be tried, and since when that is known.
    without_pods: BTreeMap<String, Instant>,
}

impl DryRunCache {
    fn lock(&self) -> MutexGuard<'_, CachedAnswers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything, unless it was about this VDOConfig. Another one, also of the same name, is another installation: by the time
    /// that it begins, rights and policies may be others.
    pub(in crate::reconcile) fn only_of(&self, config: &str) {
        let mut known = self.lock();
        if known.config != config {
            *known = CachedAnswers {
                config: config.to_owned(),
                ..CachedAnswers::default()
            };
        }
    }

    pub(in crate::reconcile) fn knows(&self, step: &Step, what: &Digest) -> bool {
        let known = self.lock();
        let fresh = |id| {
            known
                .accepted
                .get(&id)
                .is_some_and(|(seen, at)| seen == what && at.elapsed() < FRESH)
        };
        step.id().is_some_and(fresh)
    }

    pub(in crate::reconcile) fn remember(&self, step: &Step, what: Digest) {
        if let Some(id) = step.id() {
            self.lock().accepted.insert(id, (what, Instant::now()));
        }
    }

    /// Forgets that steps were accepted: of those that were carried out, because the objects may belong to another manager by the time that
    /// something is done to them again; of those of a driver that is refused, because its next attempt begins again.
    pub(in crate::reconcile) fn forget<'a>(&self, steps: impl IntoIterator<Item = &'a Step>) {
        let mut known = self.lock();
        for id in steps.into_iter().filter_map(Step::id) {
            known.accepted.remove(&id);
        }
    }

    /// Whether the right to try pods is missing in this namespace.
    pub(in crate::reconcile) fn lacks_pods(&self, namespace: &str) -> bool {
        self.lock().without_pods.get(namespace).is_some_and(|at| at.elapsed() < FRESH)
    }

    /// Tries no pods in this namespace for a while, and logs once why.
    pub(in crate::reconcile) fn forgo_pods(&self, namespace: &str, error: &ClusterError) {
        let before = self.lock().without_pods.insert(namespace.to_owned(), Instant::now());
        // Several are tried at once.
        if before.is_none_or(|at| at.elapsed() >= FRESH) {
            tracing::warn!(
                object = format!("Namespace {namespace}"),
                "pods get no dry run before a change: {}",
                Failure::from(error).message
            );
        }
    }

    /// Forgets what no plan asks for any more.
    pub(in crate::reconcile) fn retain(&self, plan: &Plan) {
        let wanted: BTreeSet<ObjectId> = plan.writes().filter_map(Step::id).collect();
        self.lock().accepted.retain(|id, _| wanted.contains(id));
    }

    /// The refusals that would only be heard once more: of drivers of which the very same was asked.
    pub(in crate::reconcile) fn refused(&self, asked: impl FnOnce() -> BTreeMap<DriverName, Digest>) -> Refusals {
        let known = self.lock();
        if known.refused.is_empty() {
            return Refusals::new();
        }
        let same = |(driver, what): (&DriverName, &Digest)| {
            let (_, refusals) = known.refused.get(driver).filter(|(seen, _)| seen == what)?;
            Some((driver.clone(), refusals.clone()))
        };
        asked().iter().filter_map(same).collect()
    }

    /// Remembers these refusals and no others.
    pub(in crate::reconcile) fn refuse(&self, refused: BTreeMap<DriverName, (Digest, Vec<Refusal>)>) {
        self.lock().refused = refused;
    }
}

/// What would be written, and in which way.
pub(in crate::reconcile) fn fingerprint(step: &Step) -> Digest {
    let text = match step {
        Step::Apply { object, take, .. } => format!("apply {take} {}", object.digest("")),
        Step::Replace { id, uid, digest, .. } => format!("replace {id} {uid} {digest}"),
        Step::Delete { id, uid, .. } => format!("delete {id} {uid}"),
        Step::Store { object, .. } => format!("store {}", object.id()),
        Step::Release { .. } | Step::SetFinalizer | Step::Record(_) | Step::Commit(_) | Step::Finish => String::new(),
    };
    Digest::of(text.as_bytes())
}

/// Of a step that cannot be tried yet it is known that we have the rights.
pub(in crate::reconcile) fn entitled() -> Digest {
    Digest::of(b"entitled")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dry_run_memory_of_another_vdoconfig_is_forgotten() {
        let memory = DryRunCache::default();
        let step = Step::Delete {
            id: ObjectId::new("", "ConfigMap", "n", "a"),
            api_version: "v1".into(),
            uid: "u".into(),
            wave: 2,
            driver: "d".into(),
        };
        memory.only_of("one");
        memory.remember(&step, entitled());
        memory.only_of("one");
        assert!(memory.knows(&step, &entitled()));
        memory.only_of("another");
        assert!(!memory.knows(&step, &entitled()));
    }

    #[test]
    fn dry_run_refusal_is_cached_for_same_driver_and_digest() {
        let memory = DryRunCache::default();
        let (one, other) = (Digest::of(b"one"), Digest::of(b"other"));
        let id = ObjectId::new("", "ConfigMap", "n", "a");
        let error = Arc::new(ClusterError::pod_security(id.clone(), "no"));
        memory.refuse([("a".to_owned(), (one.clone(), vec![(id.clone(), error)]))].into());
        let ask = |driver: &str, what: &Digest| memory.refused(|| [(driver.to_owned(), what.clone())].into()).len();
        assert_eq!((ask("a", &one), ask("a", &other), ask("b", &one)), (1, 0, 0));
        memory.refuse(BTreeMap::new());
        assert_eq!(ask("a", &one), 0);
    }
}
