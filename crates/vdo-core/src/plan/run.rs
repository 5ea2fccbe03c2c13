// SPDX-License-Identifier: Apache-2.0
//! Selects the steps of a plan that may be carried out now, repairs drivers that wait, and updates inventory and history.

use super::planner::{Row, rows, step, wanted};
use super::revision::{push, trim};
use super::rollback::passed;
use super::{
    About, Change, Desired, Entry, Gate, Input, Inventory, Outcome, PackedObjects, Plan, Revision, Step, applied, reopens, target,
};
use crate::drivers::STORAGE;
use crate::manifest::Object;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{DriverName, ObjectId};

/// The last state of each driver that is to be known beside what is wanted: what was applied of it, for its repair while it is held.
pub type Last = BTreeMap<DriverName, Vec<Desired>>;

impl Plan {
    /// The writes that may be made now, in order: open steps whose dependencies are open, too, and for a driver that is held the repair
    /// of what was applied of it last. The inventory is recorded before the first write that it does not cover; it is narrowed when
    /// nothing else is left to do.
    ///
    /// # Guarantees
    /// * What depends on something that is deleted waits for the next plan, which sees whether it is gone.
    /// * Of a held driver nothing is written but repairs.
    #[must_use]
    pub fn run(&self, input: &Input<'_>, last: &Last) -> Vec<Step> {
        let held = self.held_drivers();
        let mut open = vec![false; self.steps.len()];
        for (at, planned) in self.steps.iter().enumerate() {
            let held = held.contains(planned.step.driver());
            // What ends an uninstallation follows what is let go in the same run.
            let ends = matches!(planned.step, Step::Finish);
            let passed = |earlier: &usize| ends || self.is_passed(*earlier, &open);
            let held = held || self.is_paused(planned.step.driver());
            open[at] = planned.gate == Gate::Open && !held && planned.depends_on.iter().all(passed);
        }
        let way = self.steps.iter().zip(&open).filter(|(_, open)| **open);
        let mut steps: Vec<Step> = way.map(|(planned, _)| planned.step.clone()).collect();
        for driver in &held {
            steps.extend(self.repairs(driver, input, last.get(*driver)));
        }
        steps.sort_by_key(|step| step.wave().unwrap_or(if step.removes() { u8::MAX } else { 0 }));
        if input.uninstall.is_some() {
            return steps;
        }
        let recorded = self.recorded(input, &steps, &held);
        if let Cow::Owned(inventory) = recorded
            && (!steps.is_empty() || held.is_empty() && !input.desired.is_empty() || !input.record.failed.is_empty())
        {
            steps.insert(0, Step::Record(inventory));
        } else if steps.is_empty()
            && let Some(narrowed) = self.narrowed(input, &held)
        {
            steps.push(Step::Commit(narrowed));
        }
        if !steps.is_empty() && !input.finalizer {
            steps.insert(0, Step::SetFinalizer);
        }
        steps
    }

    /// Whether what depends on this step may start in the same run.
    fn is_passed(&self, at: usize, open: &[bool]) -> bool {
        let planned = &self.steps[at];
        planned.gate == Gate::Contended || open[at] && !planned.step.removes()
    }

    /// The repair of what was applied last of a driver. Where that is not known, of what is as it was applied last.
    fn repairs(&self, driver: &str, input: &Input<'_>, last: Option<&Vec<Desired>>) -> Vec<Step> {
        let repairs = |step: &Step| {
            let repair = matches!(
                step,
                Step::Apply {
                    change: Change::Repair(_) | Change::Restore,
                    ..
                }
            );
            repair && step.driver() == driver
        };
        let contended: BTreeSet<ObjectId> = self
            .steps
            .iter()
            .filter(|planned| planned.gate == Gate::Contended)
            .filter_map(|planned| planned.step.id())
            .collect();
        let all: Vec<Step> = match last {
            Some(last) => rows(input, last).0.iter().filter_map(|row| step(row, input)).collect(),
            None => self.writes().cloned().collect(),
        };
        all.into_iter()
            .filter(repairs)
            .filter(|step| step.id().is_none_or(|id| !contended.contains(&id)))
            .collect()
    }

    /// The inventory with everything in it that these writes and the drivers that are not held need; as it is, where it says all that.
    fn recorded<'a>(&self, input: &Input<'a>, steps: &[Step], held: &BTreeSet<&str>) -> Cow<'a, Inventory> {
        let mut inventory = Cow::Borrowed(input.inventory);
        if inventory.approved.as_deref() != input.approved {
            inventory.to_mut().approved = input.approved.map(str::to_owned);
        }
        if let Some(matrix) = input
            .record
            .matrix
            .as_ref()
            .filter(|matrix| inventory.kept(&matrix.source) != Some(matrix))
        {
            inventory.to_mut().keep(matrix.clone());
        }
        let (rows, _) = rows(input, input.desired);
        for row in rows
            .iter()
            .filter(|row| !held.contains(&*row.desired.driver) && !self.is_paused(&row.desired.driver))
        {
            // It is fixed by the driver that registers volumes under it, and not before.
            if *row.desired.driver == *STORAGE.name && inventory.cluster_id.is_none() && input.cluster_id.is_some() {
                inventory.to_mut().cluster_id = input.cluster_id.map(str::to_owned);
            }
            if let Some(entry) = row.news() {
                inventory.to_mut().objects.insert(row.id.clone(), entry);
            }
        }
        for step in steps.iter().filter(|step| held.contains(step.driver())) {
            if let Step::Apply {
                object,
                change: Change::Restore,
                ..
            } = step
                && input
                    .inventory
                    .objects
                    .get(object.identity())
                    .is_some_and(|entry| entry.uid.is_some())
                && let Some(entry) = inventory.to_mut().objects.get_mut(object.identity())
            {
                // The next instance has another UID.
                entry.uid = None;
            }
        }
        let changes = steps.iter().filter(|step| step.is_transition() && step.wave().is_some());
        let changing: BTreeSet<&str> = changes.map(Step::driver).collect();
        self.revised(input, &changing, &mut inventory);
        inventory
    }

    /// The history with what is about to be applied of these drivers, and with what is given up.
    fn revised(&self, input: &Input<'_>, changing: &BTreeSet<&str>, inventory: &mut Cow<'_, Inventory>) {
        for driver in changing {
            let revisions = input.inventory.history.get(*driver);
            let new = || objects_of(input, driver);
            let about = about(input, driver);
            match revisions.and_then(|revisions| revisions.last()) {
                Some(newest) if newest.about.target == about.target && newest.outcome != Outcome::Failed => {
                    if let Some(both) = PackedObjects::with(Some(&newest.objects), new())
                        && let Some(newest) = newest_of(inventory.to_mut(), driver)
                    {
                        newest.objects = both;
                    }
                }
                _ => add(inventory.to_mut(), driver, about, PackedObjects::of(new()), input),
            }
        }
        for (driver, failure) in &input.record.failed {
            if let Some(newest) = newest_of(inventory.to_mut(), driver) {
                newest.outcome = Outcome::Failed;
                newest.failure = Some(failure.clone());
            }
        }
        for wait in input.unhealthy {
            let revisions = input.inventory.history.get(&wait.driver);
            if revisions.is_some_and(|revisions| reopens(revisions, input.record.deadline, input.observed.at))
                && let Some(newest) = newest_of(inventory.to_mut(), &wait.driver)
            {
                newest.outcome = Outcome::Progressing;
            }
        }
    }

    /// The inventory after this run, for every driver that is as it should be: without objects that are gone, with the UIDs of those that exist and
    /// with the applied content; `None` when exactly that is stored.
    fn narrowed(&self, input: &Input<'_>, held: &BTreeSet<&str>) -> Option<Inventory> {
        let mut inventory = Cow::Borrowed(input.inventory);
        let finished = |driver: &str| !self.unfinished.contains(driver) && !self.is_paused(driver) && !held.contains(driver);
        // One write for all that come at the same time.
        if self
            .unfinished
            .iter()
            .any(|driver| !held.contains(driver.as_str()) && self.is_under_way(driver, input))
        {
            return None;
        }
        let (rows, _) = rows(input, input.desired);
        let mut packed: BTreeSet<&str> = BTreeSet::new();
        for row in rows.iter().filter(|row| finished(&row.desired.driver)) {
            let newest = input.inventory.history.get(&*row.desired.driver).and_then(|all| all.last());
            if newest.is_none_or(|newest| newest.outcome != Outcome::Deployed) {
                packed.insert(&row.desired.driver);
            }
            let Some(live) = row.live.filter(|live| !live.uid().is_empty()) else {
                continue;
            };
            let digest = applied(&row.desired.object);
            let said = |entry: &Entry| entry.uid.as_deref() == Some(live.uid()) && entry.applied.as_deref() == digest;
            if inventory.objects.get(row.id).is_none_or(said) {
                continue;
            }
            if let Some(entry) = inventory.to_mut().objects.get_mut(row.id) {
                if entry.applied.as_deref() != digest {
                    packed.insert(&row.desired.driver);
                }
                entry.uid = Some(live.uid().to_owned());
                entry.applied = digest.map(str::to_owned);
            }
        }
        let listed = rows.iter().filter(|row| row.entry.is_some()).count();
        let mut less: BTreeSet<&str> = BTreeSet::new();
        if listed != input.inventory.objects.len() {
            let wanted = wanted(&rows);
            let gone =
                |id: &ObjectId, entry: &Entry| finished(&entry.driver) && !wanted.contains(id) && !input.observed.live.contains_key(id);
            let entries = input.inventory.objects.iter().filter(|(id, entry)| gone(id, entry));
            less.extend(entries.map(|(_, entry)| entry.driver.as_str()));
            if !less.is_empty() {
                inventory.to_mut().objects.retain(|id, entry| !gone(id, entry));
            }
        }
        // With less objects than before a driver is in another state, though nothing was applied.
        packed.extend(rows.iter().map(|row| &*row.desired.driver).filter(|driver| less.contains(driver)));
        for driver in packed {
            self.deployed(input, driver, inventory.to_mut());
        }
        if !less.is_empty() {
            let left: BTreeSet<String> = inventory.objects.values().map(|entry| entry.driver.clone()).collect();
            inventory.to_mut().history.retain(|driver, _| left.contains(driver));
        }
        match inventory {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        }
    }
}

impl Plan {
    /// Whether a change of a driver is expected to be over soon.
    fn is_under_way(&self, driver: &str, input: &Input<'_>) -> bool {
        let newest = input.inventory.history.get(driver).and_then(|revisions| revisions.last());
        let young =
            |newest: &Revision| newest.outcome == Outcome::Progressing && passed(newest.time, input.observed.at) < input.record.deadline;
        !self.is_paused(driver) && newest.is_some_and(young)
    }

    /// A driver is healthy with what is wanted of it: that is in its history, with these very objects.
    fn deployed(&self, input: &Input<'_>, driver: &str, inventory: &mut Inventory) {
        let about = about(input, driver);
        let objects = PackedObjects::of(objects_of(input, driver));
        // Of a revision of an operator that wrote no history nothing but the objects is known.
        let is_it = |newest: &mut Revision| newest.about.target == about.target || newest.about.target.is_empty();
        let known = newest_of(inventory, driver).is_some_and(is_it);
        if !known {
            add(inventory, driver, about.clone(), objects.clone(), input);
        }
        if let Some(newest) = newest_of(inventory, driver) {
            if newest.outcome != Outcome::Deployed {
                newest.outcome = Outcome::Deployed;
                newest.deployed = Some(input.observed.at);
            }
            newest.failure = None;
            newest.about = about;
            newest.objects = objects;
        }
    }
}

fn objects_of<'a>(input: &Input<'a>, driver: &str) -> impl Iterator<Item = &'a Object> {
    input.desired.iter().filter(move |d| *d.driver == *driver).map(|d| &d.object)
}

fn about(input: &Input<'_>, driver: &str) -> About {
    let own: Vec<Desired> = input.desired.iter().filter(|d| *d.driver == *driver).cloned().collect();
    About {
        target: target(&own, &input.record.drawn),
        ..input.record.about.get(driver).cloned().unwrap_or_default()
    }
}

fn newest_of<'a>(inventory: &'a mut Inventory, driver: &str) -> Option<&'a mut Revision> {
    inventory.history.get_mut(driver)?.last_mut()
}

fn add(inventory: &mut Inventory, driver: &str, about: About, objects: PackedObjects, input: &Input<'_>) {
    let revisions = inventory.history.entry(driver.to_owned()).or_default();
    push(revisions, about, objects, input.observed.at);
    trim(revisions, input.record.limit);
}

impl Row<'_> {
    /// What the inventory has to say of it before anything is written, unless it does so already.
    fn news(&self) -> Option<Entry> {
        let d = self.desired;
        let known = self.entry.filter(|_| self.live.is_some());
        // The next instance has another UID. Forgetting this one before it exists keeps it from being taken for another user's when the
        // process is killed between its creation and the next commit.
        let uid = known.and_then(|entry| entry.uid.as_ref());
        let said = |entry: &&Entry| {
            let entry: &Entry = entry;
            (entry.wave, entry.uid.as_ref()) == (d.wave, uid) && *entry.driver == *d.driver && entry.api_version == d.object.api_version()
        };
        if self.entry.filter(said).is_some() {
            return None;
        }
        Some(Entry {
            api_version: d.object.api_version().to_owned(),
            driver: d.driver.to_string(),
            wave: d.wave,
            uid: uid.cloned(),
            applied: self.entry.and_then(|entry| entry.applied.clone()),
        })
    }
}
