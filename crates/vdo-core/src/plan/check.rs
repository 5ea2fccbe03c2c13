// SPDX-License-Identifier: Apache-2.0
//! The rules that no plan may break, checked before the first write.

use super::prune::PROTECTED;
use super::recreate::replaceable;
use super::{Desired, Inventory, Step};
use std::borrow::Cow;
use std::collections::BTreeSet;
use vdo_api::types::{ObjectId, Remedy};

/// A plan broke a rule that every plan must keep: a defect of ours, caught before the first write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan was refused before its first write, because {rule}; nothing was changed")]
pub struct PlanRejected {
    rule: String,
}

impl Remedy for PlanRejected {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Please report this with the output of vdoctl diff.".into())
    }
}

/// Holds what is about to be written against the rules that no plan may break, whatever made it.
///
/// # Errors
/// With the first rule that is broken.
pub fn check(steps: &[Step], desired: &[Desired], inventory: &Inventory) -> Result<(), PlanRejected> {
    // Every rule is about steps, and nearly every plan has none.
    if steps.is_empty() {
        return Ok(());
    }
    let mut walk = Walk {
        inventory,
        wanted: desired.iter().map(|d| d.object.id()).collect(),
        recorded: inventory.objects.keys().cloned().collect(),
        wave: 0,
        applied: BTreeSet::new(),
        deleted: BTreeSet::new(),
        committed: false,
    };
    steps
        .iter()
        .try_for_each(|step| walk.step(step))
        .map_err(|rule| PlanRejected { rule })
}

/// What the steps so far have done.
struct Walk<'a> {
    /// The inventory before the first of them.
    inventory: &'a Inventory,
    wanted: BTreeSet<ObjectId>,
    /// What is in the inventory now.
    recorded: BTreeSet<ObjectId>,
    /// The highest wave of which something was written.
    wave: u8,
    /// The drivers of which something was written.
    applied: BTreeSet<&'a str>,
    /// Those of which something was deleted or released.
    deleted: BTreeSet<&'a str>,
    /// Whether the inventory was narrowed.
    committed: bool,
}

/// The rule that a step breaks.
type Broken = Result<(), String>;

impl<'a> Walk<'a> {
    fn step(&mut self, step: &'a Step) -> Broken {
        if self.committed {
            return Err(
                "the step that removes entries from the operator's inventory, or deletes the inventory, is not the last step".into(),
            );
        }
        match step {
            Step::SetFinalizer | Step::Store { .. } => Ok(()),
            Step::Record(new) => self.record(new),
            Step::Apply { object, wave, driver, .. } => self.apply(&object.id(), *wave, driver),
            Step::Replace { id, uid, wave, driver, .. } => self.replace(id, uid, *wave, driver),
            Step::Delete { id, uid, driver, .. } => self.delete(id, uid, driver),
            Step::Release { id, uid, driver, .. } => self.release(id, uid, driver),
            Step::Commit(new) => self.commit(new),
            Step::Finish => self.finish(),
        }
    }

    fn record(&mut self, new: &Inventory) -> Broken {
        if let Some(lost) = self.recorded.iter().find(|id| !new.objects.contains_key(*id)) {
            return Err(format!(
                "{lost} would be dropped from the operator's inventory before anything was removed"
            ));
        }
        if self.inventory.cluster_id.is_some() && new.cluster_id != self.inventory.cluster_id {
            return Err("the cluster id in the operator's inventory would change".into());
        }
        self.recorded.extend(new.objects.keys().cloned());
        Ok(())
    }

    fn apply(&mut self, id: &ObjectId, wave: u8, driver: &'a str) -> Broken {
        self.applied.insert(driver);
        if self.deleted.contains(driver) {
            return Err(format!(
                "{id} would be written after an object of its driver was deleted, so the old version would be removed before the new one works"
            ));
        }
        if !self.recorded.contains(id) {
            return Err(format!("{id} would be written before it is in the operator's inventory"));
        }
        self.reach(id, wave, "written")
    }

    fn replace(&mut self, id: &ObjectId, uid: &str, wave: u8, driver: &'a str) -> Broken {
        self.applied.insert(driver);
        if !self.wanted.contains(id) || !self.recorded.contains(id) {
            return Err(format!(
                "{id} would be replaced although it is not desired, or not in the operator's inventory"
            ));
        }
        if !replaceable(id) {
            return Err(format!("{id} would be replaced, which is not safe for its kind"));
        }
        if uid.is_empty() || self.is_another(id, uid) {
            return Err(format!(
                "{id} would be replaced, and its UID is not the UID in the operator's inventory"
            ));
        }
        self.reach(id, wave, "replaced")
    }

    fn delete(&mut self, id: &ObjectId, uid: &str, driver: &'a str) -> Broken {
        self.deleted.insert(driver);
        if self.applied.contains(driver) {
            return Err(format!(
                "{id} would be deleted while objects of its driver are written, so the old version would be removed before the new one works"
            ));
        }
        if self.wanted.contains(id) {
            return Err(format!("{id} is desired and would be deleted"));
        }
        if !self.inventory.objects.contains_key(id) {
            return Err(format!("{id} is not in the operator's inventory and would be deleted"));
        }
        if uid.is_empty() {
            return Err(format!("{id} would be deleted, but the plan contains no UID of this object"));
        }
        if self.is_another(id, uid) {
            return Err(format!(
                "{id} would be deleted, and its UID is not the UID in the operator's inventory"
            ));
        }
        if PROTECTED.contains(&id.kind()) {
            return Err(format!("{id} contains data and would be deleted"));
        }
        Ok(())
    }

    fn release(&mut self, id: &ObjectId, uid: &str, driver: &'a str) -> Broken {
        if self.wanted.contains(id) || !self.inventory.objects.contains_key(id) || uid.is_empty() {
            return Err(format!(
                "{id} would be released although it is desired, or not in the operator's inventory"
            ));
        }
        self.deleted.insert(driver);
        Ok(())
    }

    fn commit(&mut self, new: &Inventory) -> Broken {
        self.committed = true;
        if !self.applied.is_empty() || !self.deleted.is_empty() {
            return Err("objects would be removed from the operator's inventory before the results of the other steps are known".into());
        }
        let mut recorded = self.wanted.iter().filter(|id| self.recorded.contains(*id));
        match recorded.find(|id| !new.objects.contains_key(*id)) {
            Some(lost) => Err(format!("{lost} is desired and would be removed from the operator's inventory")),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Broken {
        self.committed = true;
        match self.wanted.first() {
            Some(left) => Err(format!("{left} is desired, and the operator's inventory would be deleted")),
            None => Ok(()),
        }
    }

    /// Writes follow each other by wave.
    fn reach(&mut self, id: &ObjectId, wave: u8, written: &str) -> Broken {
        if wave < self.wave {
            return Err(format!("{id} of wave {wave} would be {written} after wave {}", self.wave));
        }
        self.wave = wave;
        Ok(())
    }

    /// Whether the inventory knows another instance of an object.
    fn is_another(&self, id: &ObjectId, uid: &str) -> bool {
        let known = self.inventory.objects.get(id).and_then(|entry| entry.uid.as_ref());
        known.is_some_and(|known| known != uid)
    }
}
