use super::build::prune;
use super::{Inventory, Observed, Plan, Step, Wait};
use crate::api::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// The next increment towards nothing: the highest wave that still has objects is deleted, and the one below it only when
/// it is gone. The last step commits an empty inventory.
#[must_use]
pub fn remove(apply_set: &str, observed: &Observed, inventory: &Inventory) -> Plan {
    let mut plan = Plan::default();
    let nothing = BTreeSet::new();
    let mut waves: Vec<u8> = inventory.objects.values().map(|entry| entry.wave).collect();
    waves.sort_unstable();
    waves.dedup();
    for wave in waves.into_iter().rev() {
        let of_wave: BTreeMap<_, _> = inventory
            .objects
            .iter()
            .filter(|(_, entry)| entry.wave == wave)
            .map(|(id, entry)| (id.clone(), entry.clone()))
            .collect();
        prune(&mut plan, &of_wave, &nothing, observed, apply_set);
        let stays: BTreeSet<_> = plan.skipped.iter().map(|skip| skip.id.clone()).collect();
        plan.waiting = of_wave
            .iter()
            .filter(|(id, _)| observed.live.contains_key(id) && !stays.contains(id))
            .map(|(id, entry)| Wait {
                driver: entry.driver.clone(),
                reason: Reason::Deleting,
                message: format!("{id} is being deleted"),
            })
            .collect();
        if !plan.waiting.is_empty() {
            return plan;
        }
    }
    plan.steps.push(Step::Commit(Inventory::default()));
    plan
}
