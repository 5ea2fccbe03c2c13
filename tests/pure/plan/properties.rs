// SPDX-License-Identifier: Apache-2.0
//! What is true of every plan, on random clusters.

use super::simulation::{Case, GUARDED, Increment, World, case, set, some_wait, text};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::BTreeSet;
use vdo_api::types::ObjectId;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::manifest::{Object, is_owned};
use vdo_core::plan::{Change, Closed, Desired, Input, Inventory, Needs, Plan, Step, Wait};

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
fn deletes_are_lawful(plan: &Increment, world: &World, desired: &[Desired]) -> Result<(), TestCaseError> {
    for step in &plan.steps {
        let Step::Delete { id, uid, .. } = step else { continue };
        let (live, entry) = (world.live.get(id), world.inventory.objects.get(id));
        prop_assert!(!desired.iter().any(|d| d.object.id() == *id), "{id} is wanted");
        prop_assert!(
            live.is_some_and(|live| live.uid() == uid && is_owned(live, &set())),
            "{id} is not ours, or another instance"
        );
        prop_assert!(
            entry.is_some_and(|e| e.uid.as_ref().is_none_or(|known| known == uid)),
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
            prop_assert!(live.is_some_and(|live| is_owned(live, &set()) && live.value()["data"] == d.object.value()["data"]), "{} is not in sync", d.object);
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
        shuffled.desired.sort_by_key(|d| vdo_api::types::Digest::of(format!("{seed}{}", d.object).as_bytes()).hex());
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
                let plan = world.uninstall();
                deletes_are_lawful(&plan, &world, &[])?;
                plan.steps.iter().for_each(|step| world.carry(step));
                world.tick();
            }
        }
    }

    #[test]
    fn held_waves_are_not_applied_and_nothing_of_the_driver_is_pruned(case in case(), from in 0..7u8, of in prop::sample::select(vec![CPI, CSI])) {
        let wait = Wait { driver: of.into(), ..some_wait().remove(0) };
        let plan = case.world.plan(&case.desired, |plan| plan.close_all([Closed::waves_from(from, wait.clone())], &Needs::new()));
        for step in plan.steps.iter().filter(|step| step.driver() == of) {
            prop_assert!(step.wave().is_some_and(|wave| wave < from), "{:?}", step);
        }
        prop_assert!(plan.waiting.contains(&wait));
        // The other drivers do what they would have done.
        let free = case.plan(&case.world);
        let others = |plan: &Increment| plan.steps.iter().filter(|step| !step.driver().is_empty() && step.driver() != of).filter_map(Step::id).collect::<BTreeSet<_>>();
        prop_assert!(others(&free).is_subset(&others(&plan)) || others(&free).iter().any(|id| id.kind() == "Thing"), "{}", text(&plan));
    }

    #[test]
    fn prune_while_health_is_unproven_deletes_nothing_of_the_driver(case in case()) {
        let observed = case.world.looked_up(&case.desired);
        let unhealthy = some_wait();
        let input = Input { unhealthy: &unhealthy, ..case.world.input(&case.desired, &observed) };
        let plan = case.world.plan_for(&input, |_| {});
        let successor = case.desired.iter().any(|d| *d.driver == *CSI);
        prop_assert!(!successor || !plan.steps.iter().any(|step| matches!(step, Step::Delete { driver, .. } if driver == CSI)), "{}", text(&plan));
        prop_assert!(plan.waiting.ends_with(&unhealthy));
    }

    #[test]
    fn plan_carries_every_write_that_is_made_later(case in case()) {
        let whole = case.world.whole(&case.desired);
        let planned: BTreeSet<ObjectId> = whole.writes().filter_map(Step::id).collect();
        let terminating = |id: &ObjectId| case.world.live.get(id).is_some_and(Object::is_terminating);
        let mut world = case.world.clone();
        for _ in 0..12 {
            for step in case.plan(&world).steps {
                if let Some(id) = step.id() {
                    prop_assert!(planned.contains(&id) || terminating(&id), "{id} is written and was not planned");
                }
                world.carry(&step);
            }
            world.tick();
        }
    }

    #[test]
    fn uninstall_goes_wave_by_wave_and_empties_inventory(case in case(), kill in any::<prop::sample::Index>()) {
        let (mut world, _) = case.converge(None);
        let (mut lowest, mut through) = (u8::MAX, false);
        for _ in 0..12 {
            let plan = world.uninstall();
            let waves: BTreeSet<u8> = plan.steps.iter().filter_map(|step| match step {
                Step::Delete { wave, .. } => Some(*wave),
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
            through |= matches!(plan.steps.last(), Some(Step::Finish));
        }
        for _ in 0..12 {
            let plan = world.uninstall();
            plan.steps.iter().for_each(|step| world.carry(step));
            world.tick();
            through |= matches!(plan.steps.last(), Some(Step::Finish));
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
        // No pods of its driver are started while it is gone.
        for gone in plan.steps.iter().filter(|step| matches!(step, Step::Replace { .. })) {
            let later = |step: &&Step| step.driver() == gone.driver() && step.wave() > gone.wave() && step.wave() >= Some(4);
            prop_assert!(!plan.steps.iter().any(|step| later(&step)), "{}", text(&plan));
        }
        let (end, _) = case.converge(None);
        prop_assert!(replaced.iter().all(|id| end.live.contains_key(id)));
    }

    #[test]
    fn plan_that_needs_approval_only_repairs_and_restores(case in case()) {
        let plan = case.world.plan(&case.desired, Plan::await_approval);
        let mut world = case.world.clone();
        let unaccounted = world.unaccounted();
        for step in &plan.steps {
            prop_assert!(!step.is_transition() && !step.removes(), "{:?}", step);
            prop_assert!(matches!(step, Step::Record(_) | Step::Commit(_) | Step::Apply { change: Change::Repair(_) | Change::Restore, .. }), "{:?}", step);
            world.carry(step);
            prop_assert!(world.unaccounted().is_subset(&unaccounted));
        }
    }

    /// A driver that is held is repaired to what was applied of it last, whatever is wanted of it now.
    #[test]
    fn held_driver_is_repaired_to_what_was_applied_last(case in case(), damage in prop::collection::vec(any::<prop::sample::Index>(), 1..4), wanted in prop::option::of(0..2u8)) {
        let (end, _) = case.converge(None);
        let mut world = end.clone();
        let ids: Vec<ObjectId> = case.desired.iter().map(|d| d.object.id()).collect();
        prop_assume!(!ids.is_empty());
        for which in &damage {
            let id = &ids[which.index(ids.len())];
            world.live.swap_remove(id);
        }
        // Something else is wanted now, or nothing at all is known.
        let next = Case::wanting(&case, wanted);
        let held = super::held::held_by(&[CPI, CSI, "other"]);
        for _ in 0..4 {
            for step in world.plan_without(&next, &held).steps {
                world.carry(&step);
            }
            world.tick();
        }
        for id in &ids {
            let content = |world: &World| world.live.get(id).map(|live| live.value()["data"].clone());
            prop_assert!(content(&world) == content(&end) || id.kind() == "Secret", "{id} is not as it was");
        }
    }
}
