use super::{Entry, Inventory, Observed, Plan, Skip, Step, Wait};
use crate::api::Reason;
use crate::manifest::{Object, is_owned};
use crate::types::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// The next increment towards nothing. The last step commits an empty inventory.
#[must_use]
pub fn remove(apply_set: &str, observed: &Observed, inventory: &Inventory) -> Plan {
    let mut plan = Plan::default();
    if retire(&mut plan, &inventory.objects, &BTreeSet::new(), observed, apply_set) {
        plan.steps.push(Step::Commit(Inventory::default()));
    }
    plan
}

/// Lets go of what is in the inventory and no longer wanted: the highest wave that still has objects is deleted, and the
/// one below it only when it is gone. Whether nothing is left to delete or to wait for.
pub(super) fn retire(
    plan: &mut Plan,
    inventory: &BTreeMap<ObjectId, Entry>,
    wanted: &BTreeSet<ObjectId>,
    observed: &Observed,
    apply_set: &str,
) -> bool {
    let mut going: Vec<(&ObjectId, &Entry, &Object)> = Vec::new();
    for (id, entry) in inventory.iter().filter(|(id, _)| !wanted.contains(id)) {
        let Some(live) = observed.live.get(id) else { continue };
        match veto(id, entry, live, observed, apply_set) {
            Some(message) => plan.skipped.push(Skip { id: id.clone(), message }),
            None => going.push((id, entry, live)),
        }
    }
    let Some(wave) = going.iter().map(|(_, entry, _)| entry.wave).max() else {
        return true;
    };
    for (id, entry, live) in going.into_iter().filter(|(_, entry, _)| entry.wave == wave) {
        if live.text("/metadata/deletionTimestamp").is_empty() {
            plan.steps.push(Step::Delete {
                id: id.clone(),
                api_version: entry.api_version.clone(),
                uid: live.uid().to_owned(),
            });
        }
        plan.waiting.push(Wait {
            driver: entry.driver.clone(),
            reason: Reason::Deleting,
            message: format!("{id} is being deleted"),
        });
    }
    false
}

/// Why an object must stay although nobody wants it any more.
fn veto(id: &ObjectId, entry: &Entry, live: &Object, observed: &Observed, apply_set: &str) -> Option<String> {
    if !is_owned(live, apply_set) {
        return Some(format!(
            "{id} stays: it no longer bears our labels, so it belongs to somebody else now"
        ));
    }
    if entry.uid.as_deref().is_some_and(|uid| uid != live.uid()) {
        return Some(format!("{id} stays: it was deleted and made again by somebody else"));
    }
    if entry.adopted {
        return Some(format!("{id} stays: it was there before the driver"));
    }
    if PROTECTED.contains(&id.kind()) {
        return Some(format!(
            "{id} stays: objects of this kind hold data and are never removed implicitly"
        ));
    }
    if id.kind() == "Namespace" && observed.occupied.contains(&id.name) {
        return Some(format!("{id} stays: it holds objects of somebody else"));
    }
    None
}

/// Kinds that are never removed implicitly.
pub(super) const PROTECTED: [&str; 6] = [
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "VolumeSnapshotContent",
    "VolumeSnapshot",
    "CustomResourceDefinition",
];
