//! What of a plan may be carried out now.

use super::planner::{Row, rows, step, wanted};
use super::{Change, Desired, Entry, Gate, Input, Inventory, LastApplied, Plan, Step, applied};
use crate::types::{DriverName, ObjectId};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The last state of each driver that is to be known beside what is wanted: what was applied of it, for its repair while it is held.
pub type Last = BTreeMap<DriverName, Vec<Desired>>;

impl Plan {
    /// The drivers that are repaired to what was applied last, because they are held.
    #[must_use]
    pub fn held_drivers(&self) -> BTreeSet<&str> {
        let named = self.held.keys().chain(&self.kept).map(String::as_str);
        let drivers = self.writes().map(Step::driver).chain(named);
        drivers.filter(|driver| self.is_held(driver)).collect()
    }

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
            let held = held || self.paused.contains(planned.step.driver());
            open[at] = planned.gate == Gate::Open && !held && planned.depends_on.iter().all(passed);
        }
        let way = self.steps.iter().zip(&open).filter(|(_, open)| **open);
        let mut steps: Vec<Step> = way.map(|(planned, _)| planned.step.clone()).collect();
        for driver in held.iter().filter(|driver| !self.paused.contains(**driver)) {
            steps.extend(self.repairs(driver, input, last.get(*driver)));
        }
        steps.sort_by_key(|step| step.wave().unwrap_or(if step.removes() { u8::MAX } else { 0 }));
        if input.uninstall.is_some() {
            return steps;
        }
        let recorded = self.recorded(input, &steps, &held);
        if let Cow::Owned(inventory) = recorded
            && (!steps.is_empty() || held.is_empty() && !input.desired.is_empty())
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
        if inventory.cluster_id.is_none() && input.cluster_id.is_some() {
            inventory.to_mut().cluster_id = input.cluster_id.map(str::to_owned);
        }
        let (rows, _) = rows(input, input.desired);
        for row in rows
            .iter()
            .filter(|row| !held.contains(&*row.desired.driver) && !self.paused.contains(&*row.desired.driver))
        {
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
        for driver in changing {
            let new = input.desired.iter().filter(|d| *d.driver == *driver).map(|d| &d.object);
            if let Some(both) = LastApplied::with(input.inventory.last.get(driver), new) {
                inventory.to_mut().last.insert(driver.to_owned(), both);
            }
        }
        inventory
    }

    /// The inventory without what is gone, with the UIDs of what is there and with what was applied, for every driver that has reached
    /// what is wanted; `None` when that is what is stored.
    fn narrowed(&self, input: &Input<'_>, held: &BTreeSet<&str>) -> Option<Inventory> {
        let mut inventory = Cow::Borrowed(input.inventory);
        let finished = |driver: &str| {
            !self.unfinished.contains(driver) && !self.paused.contains(driver) && !held.contains(driver) && !input.kept.contains(driver)
        };
        let (rows, _) = rows(input, input.desired);
        let mut packed: BTreeSet<&str> = BTreeSet::new();
        for row in rows.iter().filter(|row| finished(&row.desired.driver)) {
            if !input.inventory.last.contains_key(&*row.desired.driver) {
                packed.insert(&row.desired.driver);
            }
            let Some(live) = row.live.filter(|live| !live.uid().is_empty()) else {
                continue;
            };
            let digest = applied(&row.desired.object);
            let said = |entry: &Entry| entry.uid.as_deref() == Some(live.uid()) && entry.applied.as_deref() == digest;
            if inventory.objects.get(row.id).is_some_and(said) {
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
        for driver in packed {
            let objects = input.desired.iter().filter(|d| *d.driver == *driver).map(|d| &d.object);
            inventory.to_mut().last.insert(driver.to_owned(), LastApplied::of(objects));
        }
        let listed = rows.iter().filter(|row| row.entry.is_some()).count();
        if listed < input.inventory.objects.len() {
            let wanted = wanted(&rows);
            let gone =
                |id: &ObjectId, entry: &Entry| finished(&entry.driver) && !wanted.contains(id) && !input.observed.live.contains_key(id);
            if inventory.objects.iter().any(|(id, entry)| gone(id, entry)) {
                inventory.to_mut().objects.retain(|id, entry| !gone(id, entry));
            }
            let left: BTreeSet<String> = inventory.objects.values().map(|entry| entry.driver.clone()).collect();
            if inventory.last.keys().any(|driver| !left.contains(driver)) {
                inventory.to_mut().last.retain(|driver, _| left.contains(driver));
            }
        }
        match inventory {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        }
    }
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
