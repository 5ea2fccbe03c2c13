use super::conflict::{Settlement, settle};
use super::remove::retire;
use super::replace::{keeps_pods, replaceable};
use super::{Change, Desired, Entry, Inventory, Observed, Plan, Step, Wait, applied};
use crate::api::{APPLIED_ANNOTATION, ConflictRule, Reason};
use crate::manifest::{Object, differences, is_owned};
use crate::types::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// Waves that must not start yet.
#[derive(Debug, Clone)]
pub struct Hold {
    /// The first wave that must wait.
    pub from: u8,
    /// For what.
    pub waits: Vec<Wait>,
}

/// What a plan is made from.
pub struct Input<'a> {
    /// The id of our apply set.
    pub apply_set: &'a str,
    /// All objects that should exist.
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
    /// Waves that must not start yet, if any.
    pub hold: Option<Hold>,
    /// What the finished state still waits for. While there is anything, nothing is pruned: a working driver is not
    /// removed before its successor is proven.
    pub unproven: Vec<Wait>,
}

/// The next increment towards the wanted state.
///
/// # Guarantees
/// * Planning again on the state that a plan leads to yields no steps.
/// * The order of the input does not matter.
/// * The inventory is recorded before the first apply that it does not cover.
/// * Nothing is deleted that is wanted, that is not in the inventory, or that does not bear our mark.
#[must_use]
pub fn build(input: Input<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut desired: Vec<&Desired> = input.desired.iter().collect();
    desired.sort_by_key(|d| (d.wave, d.object.id()));
    let leaving: Vec<&Desired> = desired.iter().copied().filter(|d| is_leaving(d, input.observed)).collect();
    // What comes after an object that is on its way out may live in it, so it waits for its successor.
    let held = input.hold.as_ref().map_or(u8::MAX, |hold| hold.from);
    let hold_from = leaving.first().map_or(held, |d| held.min(d.wave.saturating_add(1)));

    let mut applies = applies(&input);
    applies.retain(|step| step.wave().is_some_and(|wave| wave < hold_from));
    // What is replaced is gone for a moment, and what comes after it may need it.
    let replaced = applies
        .iter()
        .filter(|step| matches!(step, Step::Replace { .. }))
        .find_map(Step::wave);
    applies.retain(|step| replaced.is_none() || step.wave() <= replaced);

    let superset = superset(&desired, &input);
    if superset != *input.inventory {
        plan.steps.push(Step::Record(superset.clone()));
    }
    let applying = !applies.is_empty();
    plan.steps.extend(applies);
    let unfinished = applying || input.hold.is_some() || !leaving.is_empty() || !input.unproven.is_empty();
    plan.waiting = leaving.into_iter().map(wait_for_leaving).collect();
    plan.waiting.extend(input.hold.map(|hold| hold.waits).unwrap_or_default());
    plan.waiting.extend(input.unproven);
    if unfinished {
        return plan;
    }

    let wanted: BTreeSet<ObjectId> = desired.iter().map(|d| d.object.id()).collect();
    if !retire(&mut plan, &input.inventory.objects, &wanted, input.observed, input.apply_set) {
        return plan;
    }
    let narrowed = narrowed(superset, &desired, input.observed);
    if narrowed != *input.inventory {
        plan.steps.push(Step::Commit(narrowed));
    }
    plan
}

/// The steps that bring every object to what is wanted, in order, as if nothing had to be waited for.
pub(super) fn applies(input: &Input<'_>) -> Vec<Step> {
    let mut desired: Vec<&Desired> = input.desired.iter().collect();
    desired.sort_by_key(|d| (d.wave, d.object.id()));
    desired.into_iter().filter_map(|d| apply(d, input)).collect()
}

/// Whether a wanted object is on its way out.
fn is_leaving(desired: &Desired, observed: &Observed) -> bool {
    observed
        .live
        .get(&desired.object.id())
        .is_some_and(|live| !live.text("/metadata/deletionTimestamp").is_empty())
}

fn wait_for_leaving(desired: &Desired) -> Wait {
    let message = format!("{} is being deleted by somebody and is made anew once it is gone", desired.object);
    Wait {
        driver: desired.driver.clone(),
        reason: Reason::Progressing,
        message,
    }
}

/// The step that brings one object to what is wanted, if any.
fn apply(desired: &Desired, input: &Input<'_>) -> Option<Step> {
    let id = desired.object.id();
    let mut settled = Settlement::whole(&desired.object);
    let change = match input.observed.live.get(&id) {
        None if input
            .inventory
            .objects
            .get(&id)
            .is_some_and(|entry| entry.applied.is_some() && entry.applied == applied(&desired.object)) =>
        {
            Change::Restore
        }
        None => Change::Create,
        // Its successor is created when it is gone.
        Some(_) if is_leaving(desired, input.observed) => return None,
        Some(live) if !is_owned(live, input.apply_set) => {
            let found = differences(desired.object.value(), live.value());
            settled = settle(input.rules, &desired.object, found, false);
            Change::Adopt(std::mem::take(&mut settled.fields))
        }
        Some(_) if input.observed.suspect.contains(&desired.driver) => Change::Repair(Vec::new()),
        Some(_) if input.observed.settled.contains(&id) => return None,
        Some(live) => {
            let found = differences(desired.object.value(), live.value());
            settled = settle(input.rules, &desired.object, found, true);
            let mut found = std::mem::take(&mut settled.fields);
            let was = live.annotation(APPLIED_ANNOTATION);
            if was == desired.object.annotation(APPLIED_ANNOTATION) {
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
    if let (Change::Update(fields) | Change::Repair(fields), Some(live)) = (&change, input.observed.live.get(&id))
        && input.observed.immutable.contains(&id)
        && replaceable(&id)
        && input.inventory.objects.get(&id).is_some_and(|entry| entry.is(live))
    {
        return Some(Step::Replace {
            api_version: desired.object.api_version().to_owned(),
            uid: live.uid().to_owned(),
            keep_pods: keeps_pods(&desired.object, live),
            digest: desired.object.annotation(APPLIED_ANNOTATION).unwrap_or_default().to_owned(),
            fields: fields.clone(),
            wave: desired.wave,
            driver: desired.driver.clone(),
            id,
        });
    }
    Some(Step::Apply {
        object: settled.object,
        change,
        wave: desired.wave,
        driver: desired.driver.clone(),
        take: settled.take,
    })
}

/// The inventory with everything wanted added to it, and with what it says of wanted objects brought up to date.
fn superset(desired: &[&Desired], input: &Input<'_>) -> Inventory {
    let mut inventory = input.inventory.clone();
    inventory.approved = input.approved.map(str::to_owned);
    if inventory.cluster_id.is_none() {
        inventory.cluster_id = input.cluster_id.map(str::to_owned);
    }
    for d in desired {
        let id = d.object.id();
        let live = input.observed.live.get(&id);
        let known = inventory.objects.get(&id).filter(|_| live.is_some());
        // Namespaces that were there before us must outlive us; configuration and rights of a driver go with it. So must one that
        // bears our labels and is in no inventory: who made it is known to nobody any more.
        let found =
            id.kind() == "Namespace" && live.is_some_and(|live| !is_owned(live, input.apply_set) || !inventory.objects.contains_key(&id));
        let entry = Entry {
            api_version: d.object.api_version().to_owned(),
            driver: d.driver.clone(),
            wave: d.wave,
            adopted: found || known.is_some_and(|entry| entry.adopted),
            // The next instance has another UID. Forgetting this one before it exists keeps it from being taken for
            // somebody else's when the process is killed between its creation and the next commit.
            uid: known.and_then(|entry| entry.uid.clone()),
            applied: inventory.objects.get(&id).and_then(|entry| entry.applied.clone()),
        };
        inventory.objects.insert(id, entry);
    }
    inventory
}

/// The inventory without what is gone, with the UIDs of what is there and with what was applied.
fn narrowed(mut inventory: Inventory, desired: &[&Desired], observed: &Observed) -> Inventory {
    let wanted: BTreeMap<ObjectId, &Object> = desired.iter().map(|d| (d.object.id(), &d.object)).collect();
    inventory
        .objects
        .retain(|id, _| wanted.contains_key(id) || observed.live.contains_key(id));
    for (id, entry) in &mut inventory.objects {
        if let (Some(object), Some(live)) = (wanted.get(id), observed.live.get(id).filter(|live| !live.uid().is_empty())) {
            entry.uid = Some(live.uid().to_owned());
            entry.applied = applied(object);
        }
    }
    inventory
}
