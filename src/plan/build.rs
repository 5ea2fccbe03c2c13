use super::conflict::{Settlement, settle};
use super::remove::retire;
use super::replace::{keeps_pods, replaceable};
use super::{Change, Desired, Entry, Inventory, Observed, Plan, Step, Wait, applied};
use crate::api::{APPLIED_ANNOTATION, ConflictRule, Reason};
use crate::manifest::{Object, is_owned, unlike};
use crate::types::{Ids, ObjectId};
use std::borrow::Cow;

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
    let (rows, settled) = rows(&input);
    let leaving: Vec<&Row<'_>> = rows.iter().filter(|row| row.live.is_some_and(Object::is_leaving)).collect();
    // What comes after an object that is on its way out may live in it, so it waits for its successor.
    let held = input.hold.as_ref().map_or(u8::MAX, |hold| hold.from);
    let hold_from = leaving.first().map_or(held, |row| held.min(row.desired.wave.saturating_add(1)));

    let mut applies = if settled { Vec::new() } else { steps(&rows, &input) };
    applies.retain(|step| step.wave().is_some_and(|wave| wave < hold_from));
    // What is replaced is gone for a moment, and what comes after it may need it.
    let replaced = applies
        .iter()
        .filter(|step| matches!(step, Step::Replace { .. }))
        .find_map(Step::wave);
    applies.retain(|step| replaced.is_none() || step.wave() <= replaced);

    let superset = superset(&rows, &input);
    if let Cow::Owned(superset) = &superset {
        plan.steps.push(Step::Record(superset.clone()));
    }
    let applying = !applies.is_empty();
    plan.steps.extend(applies);
    let unfinished = applying || input.hold.is_some() || !leaving.is_empty() || !input.unproven.is_empty();
    plan.waiting = leaving.into_iter().map(|row| wait_for_leaving(row.desired)).collect();
    plan.waiting.extend(input.hold.map(|hold| hold.waits).unwrap_or_default());
    plan.waiting.extend(input.unproven);
    if unfinished {
        return plan;
    }

    // Nearly always everything that is listed is wanted.
    let listed = rows.iter().filter(|row| row.entry.is_some()).count();
    let wanted: Option<Ids> = (listed < input.inventory.objects.len()).then(|| rows.iter().map(|row| row.id.clone()).collect());
    if let Some(wanted) = &wanted
        && !retire(&mut plan, &input.inventory.objects, wanted, input.observed, input.apply_set)
    {
        return plan;
    }
    let live = &input.observed.live;
    let gone = |id: &ObjectId| wanted.as_ref().is_some_and(|wanted| !wanted.contains(id)) && !live.contains_key(id);
    if let Some(narrowed) = narrowed(superset, &rows, gone) {
        plan.steps.push(Step::Commit(narrowed));
    }
    plan
}

/// A wanted object with what is known of it.
struct Row<'a> {
    id: &'a ObjectId,
    desired: &'a Desired,
    live: Option<&'a Object>,
    entry: Option<&'a Entry>,
}

/// Everything that is wanted, in the order in which it is applied, and whether there is nothing to apply: then the order is any.
fn rows<'a>(input: &Input<'a>) -> (Vec<Row<'a>>, bool) {
    let row = |desired: &'a Desired| {
        let id = desired.object.identity();
        Row {
            live: input.observed.live.get(id),
            entry: input.inventory.objects.get(id),
            desired,
            id,
        }
    };
    let mut rows: Vec<Row<'a>> = input.desired.iter().map(row).collect();
    let settled = is_settled(&rows, input.observed);
    if !settled {
        rows.sort_by(|one, other| (one.desired.wave, one.id).cmp(&(other.desired.wave, other.id)));
    }
    (rows, settled)
}

/// Whether everything that is wanted is there as it is wanted, and listed. What was compared mostly comes in the same order; where it
/// does not, each row is looked at by itself.
fn is_settled(rows: &[Row<'_>], observed: &Observed) -> bool {
    let settled = |(row, id): (&Row<'_>, &ObjectId)| row.id == id && row.entry.is_some() && row.live.is_some_and(|live| !live.is_leaving());
    observed.suspect.is_empty() && observed.settled.len() == rows.len() && rows.iter().zip(observed.settled.iter()).all(settled)
}

/// The steps that bring every object to what is wanted, in order, as if nothing had to be waited for.
pub(super) fn applies(input: &Input<'_>) -> Vec<Step> {
    steps(&rows(input).0, input)
}

fn steps(rows: &[Row<'_>], input: &Input<'_>) -> Vec<Step> {
    rows.iter().filter_map(|row| apply(row, input)).collect()
}

fn wait_for_leaving(desired: &Desired) -> Wait {
    let message = format!("{} is being deleted by somebody and is made anew once it is gone", desired.object);
    Wait {
        driver: desired.driver.to_string(),
        reason: Reason::Progressing,
        message,
    }
}

/// The step that brings one object to what is wanted, if any.
fn apply(row: &Row<'_>, input: &Input<'_>) -> Option<Step> {
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
        Some(live) if live.is_leaving() => return None,
        Some(_) if input.observed.settled.contains(id) && !input.observed.suspect.contains(&*desired.driver) => return None,
        Some(live) if !is_owned(live, input.apply_set) => {
            let found = unlike(&desired.object, live);
            settled = settle(input.rules, &desired.object, found, false);
            Change::Adopt(std::mem::take(&mut settled.fields))
        }
        // Once more what was applied last; another state is a change like any other.
        Some(live) if input.observed.suspect.contains(&*desired.driver) && live.applied() == desired.object.applied() => {
            Change::Repair(Vec::new())
        }
        Some(live) => {
            let found = unlike(&desired.object, live);
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
    Some(Step::Apply {
        object: settled.object,
        change,
        wave: desired.wave,
        driver: desired.driver.to_string(),
        take: settled.take,
    })
}

/// The inventory with everything wanted added to it, and with what it says of wanted objects brought up to date; as it is, where it
/// says all that already.
fn superset<'a>(rows: &[Row<'_>], input: &Input<'a>) -> Cow<'a, Inventory> {
    let mut inventory = Cow::Borrowed(input.inventory);
    if inventory.approved.as_deref() != input.approved {
        inventory.to_mut().approved = input.approved.map(str::to_owned);
    }
    if inventory.cluster_id.is_none() && input.cluster_id.is_some() {
        inventory.to_mut().cluster_id = input.cluster_id.map(str::to_owned);
    }
    for row in rows {
        if let Some(entry) = row.news(input.apply_set) {
            inventory.to_mut().objects.insert(row.id.clone(), entry);
        }
    }
    inventory
}

impl Row<'_> {
    /// What the inventory has to say of it before anything is written, unless it does so already.
    fn news(&self, apply_set: &str) -> Option<Entry> {
        let d = self.desired;
        let known = self.entry.filter(|_| self.live.is_some());
        // Namespaces that were there before us must outlive us; configuration and rights of a driver go with it. One that bears our
        // labels but is not in the inventory is left from an earlier installation, and nobody knows who made it.
        let met = |live: &Object| self.entry.is_none() || !is_owned(live, apply_set);
        let found = self.id.kind() == "Namespace" && self.live.is_some_and(met);
        let adopted = found || known.is_some_and(|entry| entry.adopted);
        // The next instance has another UID. Forgetting this one before it exists keeps it from being taken for
        // somebody else's when the process is killed between its creation and the next commit.
        let uid = known.and_then(|entry| entry.uid.as_ref());
        let said = |entry: &&Entry| {
            let entry: &Entry = entry;
            (entry.wave, entry.adopted, entry.uid.as_ref()) == (d.wave, adopted, uid)
                && *entry.driver == *d.driver
                && entry.api_version == d.object.api_version()
        };
        if self.entry.filter(said).is_some() {
            return None;
        }
        Some(Entry {
            api_version: d.object.api_version().to_owned(),
            driver: d.driver.to_string(),
            wave: d.wave,
            adopted,
            uid: uid.cloned(),
            applied: self.entry.and_then(|entry| entry.applied.clone()),
        })
    }
}

/// The inventory without what is gone, with the UIDs of what is there and with what was applied; `None` when that is what is stored.
fn narrowed(mut inventory: Cow<'_, Inventory>, rows: &[Row<'_>], gone: impl Fn(&ObjectId) -> bool) -> Option<Inventory> {
    if inventory.objects.keys().any(&gone) {
        inventory.to_mut().objects.retain(|id, _| !gone(id));
    }
    for row in rows {
        let Some(live) = row.live.filter(|live| !live.uid().is_empty()) else {
            continue;
        };
        let digest = applied(&row.desired.object);
        let said = |entry: &Entry| entry.uid.as_deref() == Some(live.uid()) && entry.applied.as_deref() == digest;
        if inventory.objects.get(row.id).is_some_and(said) {
            continue;
        }
        if let Some(entry) = inventory.to_mut().objects.get_mut(row.id) {
            entry.uid = Some(live.uid().to_owned());
            entry.applied = digest.map(str::to_owned);
        }
    }
    match inventory {
        Cow::Owned(changed) => Some(changed),
        Cow::Borrowed(_) => None,
    }
}
