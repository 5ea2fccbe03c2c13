// SPDX-License-Identifier: Apache-2.0
//! Decides which objects of the inventory are deleted, kept or released, in which order, and what must be looked up first.

use super::adopted::{left_running, stays};
use super::termination::{blocker, waited};
use super::workload_references::USED;
use super::{Desired, Entry, Gate, Input, Observed, Plan, Skip, Step, Wait};
use crate::drivers::STORAGE;
use crate::manifest::{Object, is_owned};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::Reason;
use vdo_api::types::{ById, Ids, ObjectId};

/// Something that must be looked up before something is deleted, because everything that depends on it would be lost or fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// What holds this class or definition?
    HeldBy(ObjectId),
    /// What do workloads of others use in this namespace?
    UsedIn(String),
    /// Which volumes does the storage driver have?
    Volumes,
}

/// What has to be looked up for a plan from this input.
#[must_use]
pub fn lookups(input: &Input<'_>) -> BTreeSet<Lookup> {
    let listed = |d: &&Desired| input.inventory.objects.contains_key(d.object.identity());
    if input.desired.iter().filter(listed).count() == input.inventory.objects.len() {
        return BTreeSet::new();
    }
    let wanted: Ids = input.desired.iter().map(|d| d.object.id()).collect();
    let unwanted = Unwanted::of(input, &wanted);
    // While objects of a definition are deleted, too, they alone would hold it.
    let has_objects = |definition: &Object| {
        let (group, kind) = (definition.text("/spec/group"), definition.text("/spec/names/kind"));
        unwanted.deleted.iter().any(|(id, ..)| (id.group(), id.kind()) == (group, kind))
    };
    let guarded = unwanted
        .deleted
        .iter()
        .filter(|(id, _, live)| is_guarded(id) && !live.is_terminating() && !has_objects(live));
    let mut all: BTreeSet<Lookup> = guarded.map(|(id, ..)| Lookup::HeldBy((*id).clone())).collect();
    if leaves_as_a_whole(STORAGE.name, &unwanted.deleted, &input.inventory.objects, &wanted) {
        all.insert(Lookup::Volumes);
    }
    let deleted = unwanted.deleted.iter().map(|(id, ..)| *id);
    let namespaces = deleted.filter(|id| USED.contains(&id.kind()) && !id.namespace.is_empty());
    all.extend(namespaces.map(|id| Lookup::UsedIn(id.namespace.to_string())));
    all
}

/// What is in the inventory and no longer wanted.
struct Unwanted<'a> {
    deleted: Vec<(&'a ObjectId, &'a Entry, &'a Object)>,
    released: Vec<(&'a ObjectId, &'a Entry, &'a Object, String)>,
    stays: Vec<Skip>,
}

impl<'a> Unwanted<'a> {
    fn of(input: &Input<'a>, wanted: &Ids) -> Self {
        let mut all = Self {
            deleted: Vec::new(),
            released: Vec::new(),
            stays: Vec::new(),
        };
        let known = |(id, entry): &(&ObjectId, &Entry)| !wanted.contains(*id) && !input.kept.contains(&entry.driver);
        let mut unwanted: Vec<_> = input.inventory.objects.iter().filter(known).collect();
        unwanted.sort_by_key(|(id, _)| *id);
        let left = left_running(&input.inventory.objects, &input.observed.live, wanted, input.apply_set);
        let is_desired = |driver: &str| input.desired.iter().any(|d| *d.driver == *driver);
        for (id, entry) in unwanted {
            let Some(live) = input.observed.live.get(id) else { continue };
            let mark = keep_mark(live).map(|mark| format!("its annotation {mark} requests this"));
            let used = || input.observed.used.get(id).map(|user| format!("{user} uses it"));
            let kept = mark
                .or_else(|| stays(id, entry, live, is_desired(&entry.driver), &left))
                .or_else(used);
            match verdict(id, entry, live, kept, input.observed, input.apply_set) {
                Verdict::Stays(message) => all.stays.push(Skip { id: id.clone(), message }),
                Verdict::Released(mark) => all.released.push((id, entry, live, mark)),
                Verdict::Deleted => all.deleted.push((id, entry, live)),
            }
        }
        all
    }
}

/// Lets go of what is in the inventory and no longer wanted, each step with what it waits for: what is still being applied of its
/// driver, its health, a lookup, volumes, and everything of a higher wave.
///
/// An object that is still there long after it was deleted is named in `blocked`, and holds up the other waves no longer: its
/// finalizer may need days.
pub(super) fn prune(plan: &mut Plan, input: &Input<'_>, wanted: &Ids) -> Vec<(Step, Gate)> {
    let Unwanted { deleted, released, stays } = Unwanted::of(input, wanted);
    plan.skipped.extend(stays);
    let entries = deleted.iter().map(|(_, entry, _)| *entry);
    let proven: BTreeMap<&str, Gate> = entries
        .chain(released.iter().map(|(_, entry, ..)| *entry))
        .map(|entry| (entry.driver.as_str(), successor(plan, input, &entry.driver)))
        .collect();
    let proven = |driver: &str| proven.get(driver).cloned().unwrap_or_default();
    let volumes = leaves_as_a_whole(STORAGE.name, &deleted, &input.inventory.objects, wanted)
        .then(|| in_use(input.observed))
        .flatten();
    let mut steps = Vec::new();
    for (id, entry, live, why) in released {
        plan.skipped.push(Skip {
            id: id.clone(),
            message: format!("{id} stays and is no longer managed by VDO: {why}"),
        });
        let step = Step::Release {
            id: id.clone(),
            api_version: entry.api_version.clone(),
            uid: live.uid().to_owned(),
            driver: entry.driver.clone(),
        };
        steps.push((step, proven(&entry.driver)));
    }
    if let Some(Gate::Refused(wait)) = &volumes {
        plan.blocked.push(wait.clone());
    }
    steps.extend(deletions(plan, input, deleted, volumes.as_ref(), proven));
    plan.unfinished.extend(steps.iter().map(|(step, _)| step.driver().to_owned()));
    steps
}

/// What is pruned of a driver waits for its successor.
fn successor(plan: &Plan, input: &Input<'_>, driver: &str) -> Gate {
    let has_successor = input.desired.iter().any(|d| *d.driver == *driver);
    if !has_successor || !plan.unfinished.contains(driver) {
        return Gate::Open;
    }
    Gate::Waits(Wait {
        driver: driver.to_owned(),
        reason: Reason::Progressing,
        message: format!("objects of {driver} that are no longer needed are pruned when its other objects are applied and healthy"),
    })
}

/// The deletions, the highest wave first; `proven` says what a driver waits for otherwise.
fn deletions(
    plan: &mut Plan,
    input: &Input<'_>,
    mut deleted: Vec<(&ObjectId, &Entry, &Object)>,
    volumes: Option<&Gate>,
    proven: impl Fn(&str) -> Gate,
) -> Vec<(Step, Gate)> {
    let observed = input.observed;
    // While volumes of the storage driver are in use, a complete removal does not start: it is one way.
    let stopped = |driver: &str| volumes.filter(|_| driver == STORAGE.name || input.desired.is_empty()).cloned();
    let stuck = |live: &Object| waited(live, observed.at).is_some_and(|waited| waited > observed.timeout);
    deleted.sort_by(|one, other| (Reverse(one.1.wave), one.0).cmp(&(Reverse(other.1.wave), other.0)));
    let mut above: Option<(u8, Wait)> = None;
    let mut steps = Vec::new();
    for (id, entry, live) in deleted {
        let wait = |reason, message| Wait {
            driver: entry.driver.clone(),
            reason,
            message,
        };
        let stopped = stopped(&entry.driver);
        if live.is_terminating() {
            let message = format!("{id} {}", blocker(live));
            if stopped.is_some() {
                continue;
            }
            plan.unfinished.insert(entry.driver.clone());
            if stuck(live) {
                plan.blocked.push(wait(Reason::DeletionBlocked, message));
                continue;
            }
            let wait = wait(Reason::Deleting, message);
            plan.waiting.push(wait.clone());
            above.get_or_insert((entry.wave, wait));
            continue;
        }
        let unknown = || {
            let message = format!("{id} is deleted when the operator has checked which objects depend on it");
            (is_guarded(id) && !observed.held.contains_key(id)).then(|| Gate::Waits(wait(Reason::Deleting, message)))
        };
        let below = || {
            let above = above.as_ref().filter(|(wave, _)| *wave > entry.wave);
            above.map(|(_, wait)| Gate::Waits(wait.clone()))
        };
        let gate = stopped.or_else(unknown).or_else(below).unwrap_or_else(|| proven(&entry.driver));
        let step = Step::Delete {
            id: id.clone(),
            api_version: entry.api_version.clone(),
            uid: live.uid().to_owned(),
            wave: entry.wave,
            driver: entry.driver.clone(),
        };
        steps.push((step, gate));
    }
    steps
}

/// What the removal of the storage driver waits for.
fn in_use(observed: &Observed) -> Option<Gate> {
    let wait = |reason, message| Wait {
        driver: STORAGE.name.into(),
        reason,
        message,
    };
    match &observed.volumes {
        Some(volumes) if volumes.count == 0 => None,
        Some(volumes) => Some(Gate::Refused(wait(Reason::VolumesInUse, volumes.to_string()))),
        None => {
            let message = "the driver is removed when the operator has checked which volumes use it".to_owned();
            Some(Gate::Waits(wait(Reason::Deleting, message)))
        }
    }
}

/// What is waited for when these writes are made.
pub fn deleting(steps: &[Step]) -> impl Iterator<Item = Wait> {
    steps.iter().filter_map(|step| match step {
        Step::Delete { id, driver, .. } => Some(Wait {
            driver: driver.clone(),
            reason: Reason::Deleting,
            message: format!("{id} is being deleted"),
        }),
        _ => None,
    })
}

/// Whether a driver that still runs is about to go with nothing in its place.
fn leaves_as_a_whole(driver: &str, going: &[(&ObjectId, &Entry, &Object)], inventory: &ById<Entry>, wanted: &Ids) -> bool {
    let successor = inventory.iter().any(|(id, entry)| entry.driver == driver && wanted.contains(id));
    let runs =
        |(_, entry, live): &(&ObjectId, &Entry, &Object)| entry.driver == driver && live.pod_spec().is_some() && !live.is_terminating();
    !successor && going.iter().any(runs)
}

enum Verdict {
    /// It is deleted.
    Deleted,
    /// It stays, and why.
    Stays(String),
    /// It stays without our marks, and why.
    Released(String),
}

/// `kept` says why the object is let go rather than deleted.
fn verdict(id: &ObjectId, entry: &Entry, live: &Object, kept: Option<String>, observed: &Observed, apply_set: &str) -> Verdict {
    let stays = |why: &str| Verdict::Stays(format!("{id} stays: {why}"));
    if !is_owned(live, apply_set) {
        return stays("it no longer has the labels of VDO, so another manager owns it now");
    }
    if entry.uid.as_deref().is_some_and(|uid| uid != live.uid()) {
        return stays("another user deleted and recreated it");
    }
    if let Some(why) = kept.filter(|_| !live.is_terminating()) {
        return Verdict::Released(why);
    }
    if PROTECTED.contains(&id.kind()) {
        return stays("objects of this kind contain data, and the operator never deletes them");
    }
    match observed.held.get(id) {
        Some(Some(holder)) => stays(holder),
        Some(None) | None => Verdict::Deleted,
    }
}

/// Whether this live object may be deleted: it is the instance that was planned for, it is ours, and no one has asked to
/// keep it. The last look before a delete.
#[must_use]
pub fn may_go(live: &Object, uid: &str, apply_set: &str) -> bool {
    live.uid() == uid && is_owned(live, apply_set) && keep_mark(live).is_none()
}

/// The annotation by which a user keeps an object when its owner goes, in the words of the tools that people know.
fn keep_mark(live: &Object) -> Option<&'static str> {
    const MARKS: [(&str, &str); 3] = [
        ("cli-utils.sigs.k8s.io/on-remove", "keep"),
        ("client.lifecycle.config.k8s.io/deletion", "detach"),
        ("helm.sh/resource-policy", "keep"),
    ];
    MARKS
        .iter()
        .find(|(key, value)| live.annotation(key) == Some(value))
        .map(|(key, _)| *key)
}

/// Kinds that are never removed implicitly.
pub(super) const PROTECTED: [&str; 4] = [
    "PersistentVolumeClaim",
    "PersistentVolume",
    "VolumeSnapshotContent",
    "VolumeSnapshot",
];

/// Kinds that go only when nothing depends on them, which has to be looked up first.
fn is_guarded(id: &ObjectId) -> bool {
    matches!(id.kind(), "StorageClass" | "VolumeSnapshotClass" | "CustomResourceDefinition")
}

#[cfg(test)]
mod tests;
