//! What is true of every plan, on random clusters.

use super::simulation::{GUARDED, World, case, set, some_wait, text};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::BTreeSet;
use vdo::manifest::{Object, is_owned};
use vdo::plan::{Change, Desired, Hold, Inventory, Plan, Step, check};
use vdo::types::ObjectId;

const PROTECTED: [&str; 1] = ["PersistentVolumeClaim"];

pub fn config() -> ProptestConfig {
    let regressions = FileFailurePersistence::Direct("tests/pure/plan.regressions");
    ProptestConfig {
        cases: 100,
        failure_persistence: Some(Box::new(regressions)),
        ..ProptestConfig::default()
    }
}

/// Every delete of a plan against the state it was made for.
fn deletes_are_lawful(plan: &Plan, world: &World, desired: &[Desired]) -> Result<(), TestCaseError> {
    for step in &plan.steps {
        let Step::Delete { id, uid, .. } = step else { continue };
        let (live, entry) = (world.live.get(id), world.inventory.objects.get(id));
        prop_assert!(!desired.iter().any(|d| d.object.id() == *id), "{id} is wanted");
        prop_assert!(
            live.is_some_and(|live| live.uid() == uid && is_owned(live, &set())),
            "{id} is not ours, or another instance"
        );
        prop_assert!(
            entry.is_some_and(|e| !e.adopted && e.uid.as_ref().is_none_or(|known| known == uid)),
            "{id} is not in the inventory like this"
        );
        prop_assert!(!PROTECTED.contains(&id.kind()), "{id} is protected");
        prop_assert!(!world.held.contains(id), "{id} is held");
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn plan_carried_out_converges_to_wanted_state(case in case()) {
        let (end, _) = case.converge(None);
        for d in &case.desired {
            let live = end.live.get(&d.object.id());
            prop_assert!(live.is_some_and(|live| is_owned(live, &set()) && live.value()["data"] == d.object.value()["data"]), "{} is not as wanted", d.object);
            prop_assert_eq!(end.inventory.objects[&d.object.id()].uid.as_deref(), live.map(Object::uid));
        }
        let again = case.plan(&end);
        prop_assert!(again.is_empty() && again.waiting.is_empty(), "{}", text(&again));
        // What is still there of the inventory and not wanted is there for a reason that is said.
        let wanted: BTreeSet<ObjectId> = case.desired.iter().map(|d| d.object.id()).collect();
        let left: BTreeSet<ObjectId> = end.inventory.objects.keys().filter(|id| !wanted.contains(id)).cloned().collect();
        prop_assert_eq!(left, again.skipped.iter().map(|skip| skip.id.clone()).collect::<BTreeSet<_>>());
    }

    #[test]
    fn plan_shuffled_input_is_the_same(case in case(), seed in any::<u64>()) {
        let mut shuffled = case.clone();
        shuffled.desired.sort_by_key(|d| vdo::types::Digest::of(format!("{seed}{}", d.object).as_bytes()).hex());
        prop_assert_eq!(text(&case.plan(&case.world)), text(&shuffled.plan(&case.world)));
    }

    #[test]
    fn plan_killed_after_any_write_converges_to_same_end(case in case()) {
        let (end, writes) = case.converge(None);
        for kill in 0..writes {
            prop_assert_eq!(case.converge(Some(kill)).0.shape(), end.shape(), "killed before write {}", kill);
        }
    }

    #[test]
    fn inventory_after_every_write_covers_owned_objects(case in case()) {
        let mut world = case.world.clone();
        let unaccounted = world.unaccounted();
        for _ in 0..12 {
            for step in case.plan(&world).steps {
                world.carry(&step);
                prop_assert!(world.unaccounted().is_subset(&unaccounted), "{:?}: {:?}", step, world.unaccounted());
            }
            world.tick();
        }
    }

    #[test]
    fn prune_and_uninstall_delete_only_owned_instances(case in case()) {
        let mut world = case.world.clone();
        for _ in 0..12 {
            let plan = case.plan(&world);
            deletes_are_lawful(&plan, &world, &case.desired)?;
            plan.steps.iter().for_each(|step| world.carry(step));
            world.tick();
        }
        for mut world in [case.world.clone(), world] {
            for _ in 0..12 {
                let plan = world.remove();
                deletes_are_lawful(&plan, &world, &[])?;
                plan.steps.iter().for_each(|step| world.carry(step));
                world.tick();
            }
        }
    }

    #[test]
    fn hold_on_waves_applies_none_of_them_and_prunes_nothing(case in case(), from in 0..7u8, silent in any::<bool>()) {
        let waits = if silent { Vec::new() } else { some_wait() };
        let plan = case.world.plan(&case.desired, Some(Hold { from, waits: waits.clone() }), Vec::new());
        for step in &plan.steps {
            prop_assert!(match step {
                Step::Record(_) => true,
                Step::Apply { wave, .. } => *wave < from,
                Step::Replace { wave, .. } => *wave < from,
                Step::Delete { .. } | Step::Release { .. } | Step::Commit(_) => false,
            }, "{:?}", step);
        }
        prop_assert!(waits.iter().all(|wait| plan.waiting.contains(wait)));
    }

    #[test]
    fn prune_while_health_is_unproven_deletes_nothing(case in case()) {
        let plan = case.world.plan(&case.desired, None, some_wait());
        prop_assert!(!plan.steps.iter().any(|step| matches!(step, Step::Delete { .. } | Step::Commit(_))), "{}", text(&plan));
        prop_assert!(plan.waiting.ends_with(&some_wait()));
    }

    #[test]
    fn uninstall_goes_wave_by_wave_and_empties_inventory(case in case(), kill in any::<prop::sample::Index>()) {
        let (mut world, _) = case.converge(None);
        let (mut lowest, mut through) = (u8::MAX, false);
        for _ in 0..12 {
            let plan = world.remove();
            let waves: BTreeSet<u8> = plan.steps.iter().filter_map(|step| match step {
                Step::Delete { id, .. } => Some(world.inventory.objects[id].wave),
                _ => None,
            }).collect();
            prop_assert!(waves.len() <= 1, "{:?} at once", waves);
            for wave in waves {
                prop_assert!(wave <= lowest);
                lowest = wave;
            }
            // A process that dies in between changes nothing about the end.
            let stop = if plan.steps.len() > 1 { kill.index(plan.steps.len()) } else { 1 };
            plan.steps.iter().take(stop.max(1)).for_each(|step| world.carry(step));
            world.tick();
            through |= matches!(plan.steps.as_slice(), [Step::Commit(_)]);
        }
        for _ in 0..12 {
            let plan = world.remove();
            plan.steps.iter().for_each(|step| world.carry(step));
            world.tick();
            through |= matches!(plan.steps.as_slice(), [Step::Commit(_)]);
        }
        prop_assert!(through && world.inventory == Inventory::default());
    }

    #[test]
    fn recreate_only_allowed_kinds_and_objects_come_back(case in case()) {
        let plan = case.plan(&case.world);
        let replaced: Vec<ObjectId> = plan.steps.iter().filter_map(|step| match step {
            Step::Replace { id, uid, .. } => Some((id.clone(), uid.clone())),
            _ => None,
        }).map(|(id, uid)| {
            assert_eq!(case.world.live[&id].uid(), uid);
            id
        }).collect();
        prop_assert!(replaced.iter().all(|id| !PROTECTED.contains(&id.kind()) && !GUARDED.contains(&id.kind())), "{:?}", replaced);
        // Nothing of a later wave is written while it is gone.
        let last = plan.steps.iter().filter_map(Step::wave).max();
        let first = plan.steps.iter().filter(|step| matches!(step, Step::Replace { .. })).filter_map(Step::wave).min();
        prop_assert!(first.is_none() || first == last, "{}", text(&plan));
        let (end, _) = case.converge(None);
        prop_assert!(replaced.iter().all(|id| end.live.contains_key(id)));
    }

    #[test]
    fn maintenance_plan_only_repairs_and_restores(case in case()) {
        let plan = case.plan(&case.world).maintenance(&case.world.inventory);
        prop_assert_eq!(check(&plan, &case.desired, &case.world.inventory), Ok(()));
        prop_assert!(!plan.is_transition());
        let mut world = case.world.clone();
        let unaccounted = world.unaccounted();
        for step in &plan.steps {
            prop_assert!(matches!(step, Step::Record(_) | Step::Apply { change: Change::Repair(_) | Change::Restore, .. }), "{:?}", step);
            world.carry(step);
            prop_assert!(world.unaccounted().is_subset(&unaccounted));
        }
        let listed = |world: &World| world.inventory.objects.keys().cloned().collect::<BTreeSet<_>>();
        prop_assert_eq!(listed(&world), listed(&case.world), "nothing new is recorded");
    }
}
