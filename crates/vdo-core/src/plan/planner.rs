// SPDX-License-Identifier: Apache-2.0
//! Computes the complete plan from desired objects, live objects and inventory; `prune.rs` makes the deletions, `step_gates.rs` the waits.

use super::conflict::{Settlement, settle};
use super::dependencies::{brings, dependencies};
use super::prune::prune;
use super::recreate::{created, keeps_pods, replaceable};
use super::{
    About, Change, Closed, Desired, Entry, Gate, Inventory, Observed, Plan, PlannedStep, RandomContent, RevisionFailure, Step, Wait,
    applied,
};
use crate::manifest::{Object, is_owned, object_differences};
use crate::matrix::StoredMatrix;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use vdo_api::api::{APPLIED_ANNOTATION, ConflictRule, DeletionPolicy, Reason};
use vdo_api::types::{DriverName, Ids, ObjectId};

/// What a plan is made from.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The id of our apply set.
    pub apply_set: &'a str,
    /// All objects that should exist. Of a driver in `kept`: what was applied of it last.
    pub desired: &'a [Desired],
    /// What was found.
    pub observed: &'a Observed,
    /// What may exist because of us.
    pub inventory: &'a Inventory,
    /// The identity to fix in the inventory.
    pub cluster_id: Option<&'a str>,
    /// The state that a person has approved, to keep in the inventory; see [`super::target`].
    pub approved: Option<&'a str>,
    /// Who keeps which field.
    pub rules: &'a [ConflictRule],
    /// Drivers of which it is not known what should exist: they are left at what was applied last.
    pub kept: &'a BTreeSet<DriverName>,
    /// What each driver that is not healthy waits for. Nothing of it is pruned: a working driver is not removed before its successor
    /// is proven.
    pub unhealthy: &'a [Wait],
    /// What goes into the history.
    pub record: &'a Record,
    /// The state of the webhook's certificate, where it has to be written first.
    pub store: Option<&'a Step>,
    /// Whether the VDOConfig has our finalizer.
    pub finalizer: bool,
    /// Everything is to be uninstalled, in this way.
    pub uninstall: Option<DeletionPolicy>,
}

/// What goes into the history of the drivers, and how much of it is kept.
#[derive(Debug, Clone)]
pub struct Record {
    /// What is known of the wanted objects of each driver.
    pub about: BTreeMap<DriverName, About>,
    /// The changes that are given up.
    pub failed: BTreeMap<DriverName, RevisionFailure>,
    /// What of the wanted objects is drawn by chance.
    pub drawn: RandomContent,
    /// How many revisions of a driver are kept beside the newest and the last good one.
    pub limit: usize,
    /// How long a change may take without progress.
    pub deadline: Duration,
    /// The matrix to keep; `None` leaves what is kept.
    pub matrix: Option<Arc<StoredMatrix>>,
}

/// For a plan of which nothing goes into a history.
pub static NO_RECORD: LazyLock<Record> = LazyLock::new(Record::default);

impl Default for Record {
    fn default() -> Self {
        Self {
            about: BTreeMap::new(),
            failed: BTreeMap::new(),
            drawn: RandomContent::new(),
            limit: 5,
            deadline: Duration::from_secs(600),
            matrix: None,
        }
    }
}

/// The whole way to the wanted state: everything that is to be written, created, recreated, pruned, whatever has to be waited for.
///
/// # Guarantees
/// * Planning again on the state that a plan leads to yields no steps.
/// * The order of the input does not matter.
/// * Nothing is deleted that is wanted, that is not in the inventory, or that does not bear our mark.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    if input.uninstall == Some(DeletionPolicy::Orphan) {
        return finish(Plan::default(), input);
    }
    let (rows, settled) = rows(input, input.desired);
    let mut steps: Vec<Step> = input.store.into_iter().cloned().collect();
    if !settled {
        steps.extend(rows.iter().filter_map(|row| step(row, input)));
    }
    let mut plan = Plan::default();
    for step in &steps {
        plan.unfinished.insert(step.driver().to_owned());
    }
    let terminating: Vec<&Row<'_>> = rows.iter().filter(|row| row.live.is_some_and(Object::is_terminating)).collect();
    plan.unfinished.extend(terminating.iter().map(|row| row.desired.driver.to_string()));
    plan.unfinished.extend(input.unhealthy.iter().map(|wait| wait.driver.clone()));

    // Nearly always everything that is listed is wanted.
    let listed = rows.iter().filter(|row| row.entry.is_some()).count();
    let pruned = match listed == input.inventory.objects.len() {
        true => Vec::new(),
        false => prune(&mut plan, input, &wanted(&rows)),
    };
    let gates: Vec<Gate> = steps
        .iter()
        .map(|_| Gate::Open)
        .chain(pruned.iter().map(|(_, gate)| gate.clone()))
        .collect();
    steps.extend(pruned.into_iter().map(|(step, _)| step));
    if input.uninstall.is_some() && steps.is_empty() && plan.unfinished.is_empty() {
        return finish(plan, input);
    }
    plan.set_steps(steps, gates);
    for row in terminating {
        plan.wait_for_termination(row.desired);
    }
    for wait in input.unhealthy {
        plan.waiting.push(wait.clone());
    }
    for driver in input.kept {
        plan.close_driver(Closed::kept(driver));
    }
    plan
}

/// The end of an uninstallation: our marks are taken off what stays, because nothing looks after it any more, and marks of nothing would
/// keep others from taking it over.
fn finish(mut plan: Plan, input: &Input<'_>) -> Plan {
    let stays = input.inventory.objects.iter().filter_map(|(id, entry)| {
        let live = input.observed.live.get(id)?;
        (entry.is(live) && is_owned(live, input.apply_set)).then(|| Step::Release {
            id: id.clone(),
            api_version: entry.api_version.clone(),
            uid: live.uid().to_owned(),
            driver: entry.driver.clone(),
        })
    });
    let steps: Vec<Step> = stays.chain([Step::Finish]).collect();
    let gates = vec![Gate::Open; steps.len()];
    plan.set_steps(steps, gates);
    plan
}

impl Plan {
    fn set_steps(&mut self, steps: Vec<Step>, gates: Vec<Gate>) {
        let dependencies = dependencies(&steps);
        let planned = steps.into_iter().zip(dependencies).zip(gates);
        self.steps = planned
            .map(|((step, depends_on), gate)| PlannedStep { step, depends_on, gate })
            .collect();
    }

    /// What comes after an object that another manager is deleting waits for its successor.
    fn wait_for_termination(&mut self, desired: &Desired) {
        let wait = Wait {
            driver: desired.driver.to_string(),
            reason: Reason::Progressing,
            message: format!(
                "{} is being deleted by another user; the operator recreates the object after the deletion",
                desired.object
            ),
        };
        let later = |step: &Step| match step {
            Step::Apply { object, .. } if brings(&desired.object, object) => true,
            _ => step.driver() == &*desired.driver && step.wave().is_some_and(|wave| wave > desired.wave),
        };
        self.close_steps(wait, later);
    }
}

/// A wanted object with what is known of it.
pub(super) struct Row<'a> {
    pub id: &'a ObjectId,
    pub desired: &'a Desired,
    pub live: Option<&'a Object>,
    pub entry: Option<&'a Entry>,
}

/// These objects in the order in which they are applied, and whether there is nothing to apply: then the order is any.
pub(super) fn rows<'a>(input: &Input<'a>, desired: &'a [Desired]) -> (Vec<Row<'a>>, bool) {
    let row = |desired: &'a Desired| {
        let id = desired.object.identity();
        Row {
            live: input.observed.live.get(id),
            entry: input.inventory.objects.get(id),
            desired,
            id,
        }
    };
    let mut rows: Vec<Row<'a>> = desired.iter().map(row).collect();
    let settled = is_in_sync(&rows, input.observed);
    if !settled {
        rows.sort_by(|one, other| (one.desired.wave, one.id).cmp(&(other.desired.wave, other.id)));
    }
    (rows, settled)
}

pub(super) fn wanted(rows: &[Row<'_>]) -> Ids {
    rows.iter().map(|row| row.id.clone()).collect()
}

/// Whether everything that is wanted is there as it is wanted, and listed. What was compared mostly comes in the same order; where it
/// does not, each row is looked at by itself.
fn is_in_sync(rows: &[Row<'_>], observed: &Observed) -> bool {
    let settled =
        |(row, id): (&Row<'_>, &ObjectId)| row.id == id && row.entry.is_some() && row.live.is_some_and(|live| !live.is_terminating());
    observed.force_reapply.is_empty() && observed.in_sync.len() == rows.len() && rows.iter().zip(observed.in_sync.iter()).all(settled)
}

/// The step that brings one object to what is wanted, if any.
pub(super) fn step(row: &Row<'_>, input: &Input<'_>) -> Option<Step> {
    let (id, desired) = (row.id, row.desired);
    let mut settled = Settlement::whole(&desired.object);
    let change = match row.live {
        None if row
            .entry
            .is_some_and(|entry| entry.applied.is_some() && entry.applied.as_deref() == applied(&desired.object)) =>
        {
            Change::Restore
        }
        None => Change::Create,
        // Its successor is created when it is gone.
        Some(live) if live.is_terminating() => return None,
        Some(_) if input.observed.in_sync.contains(id) && !input.observed.force_reapply.contains(&*desired.driver) => return None,
        Some(live) if !is_owned(live, input.apply_set) => {
            let found = object_differences(&desired.object, live);
            settled = settle(input.rules, &desired.object, found, false);
            Change::Adopt(std::mem::take(&mut settled.fields))
        }
        // Once more what was applied last; another state is a change like any other.
        Some(live) if input.observed.force_reapply.contains(&*desired.driver) && live.applied() == desired.object.applied() => {
            Change::Repair(Vec::new())
        }
        Some(live) => {
            let found = object_differences(&desired.object, live);
            let was = live.applied();
            let same = was == desired.object.applied();
            if same && found.is_empty() {
                return None;
            }
            settled = settle(input.rules, &desired.object, found, true);
            let mut found = std::mem::take(&mut settled.fields);
            if same {
                if found.is_empty() {
                    return None;
                }
                Change::Repair(found)
            } else {
                // The digest says that there is a change, not what it is.
                found.retain(|d| !d.path.ends_with(&format!("[{APPLIED_ANNOTATION}]")) || was.is_none());
                Change::Update(found)
            }
        }
    };
    if let (Change::Update(fields) | Change::Repair(fields), Some(live)) = (&change, row.live)
        && input.observed.immutable.contains(id)
        && replaceable(id)
        && row.entry.is_some_and(|entry| entry.is(live))
    {
        return Some(Step::Replace {
            api_version: desired.object.api_version().to_owned(),
            uid: live.uid().to_owned(),
            keep_pods: keeps_pods(&desired.object, live),
            digest: desired.object.applied().unwrap_or_default().to_owned(),
            fields: fields.clone(),
            wave: desired.wave,
            driver: desired.driver.to_string(),
            id: id.clone(),
        });
    }
    let object = match change {
        Change::Create | Change::Restore => created(settled.object),
        _ => settled.object,
    };
    Some(Step::Apply {
        object,
        change,
        wave: desired.wave,
        driver: desired.driver.to_string(),
        take: settled.take,
    })
}
