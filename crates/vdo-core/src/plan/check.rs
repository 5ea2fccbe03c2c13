use super::prune::PROTECTED;
use super::recreate::replaceable;
use super::{Desired, Inventory, Step};
use std::borrow::Cow;
use std::collections::BTreeSet;
use vdo_api::types::Remedy;

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
    let refuse = |rule: String| Err(PlanRejected { rule });
    let wanted: BTreeSet<_> = desired.iter().map(|d| d.object.id()).collect();
    let mut recorded: BTreeSet<_> = inventory.objects.keys().cloned().collect();
    let mut wave_so_far = 0;
    let (mut applied, mut deleted) = (BTreeSet::new(), BTreeSet::new());
    let mut committed = false;
    for step in steps {
        if committed {
            return refuse("a step follows the narrowing of the inventory".into());
        }
        match step {
            Step::SetFinalizer | Step::Store { .. } => {}
            Step::Record(new) => {
                if let Some(lost) = recorded.iter().find(|id| !new.objects.contains_key(*id)) {
                    return refuse(format!("{lost} would be dropped from the inventory before anything was removed"));
                }
                if inventory.cluster_id.is_some() && new.cluster_id != inventory.cluster_id {
                    return refuse("the identity of the cluster would change".into());
                }
                recorded.extend(new.objects.keys().cloned());
            }
            Step::Apply { object, wave, driver, .. } => {
                let id = object.id();
                applied.insert(driver);
                if deleted.contains(driver) {
                    return refuse(format!(
                        "{id} would be written after something was deleted, so its predecessor would be gone unproven"
                    ));
                }
                if !recorded.contains(&id) {
                    return refuse(format!("{id} would be written before it is in the inventory"));
                }
                if *wave < wave_so_far {
                    return refuse(format!("{id} of wave {wave} would be written after wave {wave_so_far}"));
                }
                wave_so_far = *wave;
            }
            Step::Replace { id, uid, wave, driver, .. } => {
                applied.insert(driver);
                if !wanted.contains(id) || !recorded.contains(id) {
                    return refuse(format!("{id} would be replaced although it is not wanted, or not in the inventory"));
                }
                if !replaceable(id) {
                    return refuse(format!("{id} would be replaced, which is not safe for its kind"));
                }
                if uid.is_empty()
                    || inventory
                        .objects
                        .get(id)
                        .and_then(|entry| entry.uid.as_ref())
                        .is_some_and(|known| known != uid)
                {
                    return refuse(format!(
                        "{id} would be replaced, and it is another instance than the one in the inventory"
                    ));
                }
                if *wave < wave_so_far {
                    return refuse(format!("{id} of wave {wave} would be replaced after wave {wave_so_far}"));
                }
                wave_so_far = *wave;
            }
            Step::Delete { id, uid, driver, .. } => {
                deleted.insert(driver);
                if applied.contains(driver) {
                    return refuse(format!(
                        "{id} would be deleted while something is being written, so its successor is unproven"
                    ));
                }
                if wanted.contains(id) {
                    return refuse(format!("{id} is wanted and would be deleted"));
                }
                let Some(entry) = inventory.objects.get(id) else {
                    return refuse(format!("{id} is not in the inventory and would be deleted"));
                };
                if uid.is_empty() {
                    return refuse(format!("{id} would be deleted without its UID"));
                }
                if entry.uid.as_ref().is_some_and(|known| known != uid) {
                    return refuse(format!(
                        "{id} is another instance than the one in the inventory and would be deleted"
                    ));
                }
                if PROTECTED.contains(&id.kind()) {
                    return refuse(format!("{id} holds data and would be deleted"));
                }
            }
            Step::Release { id, uid, driver, .. } => {
                if wanted.contains(id) || !inventory.objects.contains_key(id) || uid.is_empty() {
                    return refuse(format!("{id} would be released although it is wanted, or not in the inventory"));
                }
                deleted.insert(driver);
            }
            Step::Commit(new) => {
                committed = true;
                if !applied.is_empty() || !deleted.is_empty() {
                    return refuse("the inventory would be narrowed before it is known what became of the other steps".into());
                }
                let lost = wanted.iter().find(|id| recorded.contains(*id) && !new.objects.contains_key(*id));
                if let Some(lost) = lost {
                    return refuse(format!("{lost} is wanted and would be dropped from the inventory"));
                }
            }
            Step::Finish => {
                committed = true;
                if let Some(left) = wanted.iter().next() {
                    return refuse(format!("{left} is wanted, and the inventory would be deleted"));
                }
            }
        }
    }
    Ok(())
}
