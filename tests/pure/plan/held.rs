// SPDX-License-Identifier: Apache-2.0
//! Some drivers are left as they are, because the cluster is against something of theirs: the others come through, and once the way is
//! free the end is the same.

use super::properties::config;
use super::simulation::{Increment, Listed, Live, NOTHING, Slot, World, at, case, set, text, with};
use proptest::prelude::*;
use std::collections::BTreeSet;
use vdo_api::api::Reason;
use vdo_api::types::ObjectId;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::manifest::is_owned;
use vdo_core::plan::{Gate, Input, Wait};

fn held() -> impl Strategy<Value = Vec<Wait>> {
    prop::sample::subsequence(vec![CPI, CSI, "other"], 1..=3).prop_map(|drivers| held_by(&drivers))
}

pub fn held_by(drivers: &[&str]) -> Vec<Wait> {
    let wait = |driver: &str| Wait {
        driver: driver.into(),
        reason: Reason::AdmissionDenied,
        message: "a policy is against it".into(),
    };
    drivers.iter().map(|driver| wait(driver)).collect()
}

/// What is in sync and not listed is not written, so nothing is left to say of it.
#[test]
fn held_driver_beside_unlisted_object_of_another_comes_to_rest() {
    let unlisted = Slot {
        wanted: Some(0),
        live: Live::Ours(0),
        ..NOTHING
    };
    let gone = Slot {
        wanted: None,
        live: Live::Absent,
        listed: Listed::WithoutUid,
        ..NOTHING
    };
    for beside in [None, Some((at("DaemonSet", "node"), gone))] {
        let slots: Vec<_> = [(at("ConfigMap", "cpi"), unlisted)].into_iter().chain(beside).collect();
        let mut case = with(&slots);
        let held = held_by(&[CSI]);
        for step in case.world.plan_without(&case.desired, &held).steps {
            case.world.carry(&step);
        }
        let rest = case.world.plan_without(&case.desired, &held);
        assert!(rest.is_empty(), "{}", text(&rest));
    }
}

fn names(plan: &Increment) -> Vec<String> {
    let written = plan.steps.iter().filter_map(vdo_core::plan::Step::id);
    written.map(|id| format!("{} {}", id.kind(), id.name)).collect()
}

/// A driver of which it is not known what should exist is repaired to what was applied last, and changed in nothing.
#[test]
fn kept_driver_is_repaired_and_not_changed() {
    let ours = |wanted, live| Slot {
        wanted: Some(wanted),
        live,
        listed: Listed::SameUid,
        ..NOTHING
    };
    let case = with(&[
        (at("Secret", "config"), ours(1, Live::Ours(0))),
        (at("Service", "webhook"), ours(0, Live::Absent)),
        (at("ConfigMap", "cpi"), ours(1, Live::Ours(0))),
    ]);
    let (observed, kept) = (case.world.observed(), BTreeSet::from([CSI.to_owned()]));
    let input = Input {
        kept: &kept,
        ..case.world.input(&case.desired, &observed)
    };
    let plan = case.world.plan_for(&input, |_| {});
    let gate = |name: &str| {
        let named = |planned: &&vdo_core::plan::PlannedStep| planned.step.id().is_some_and(|id| id.name == name);
        plan.whole.steps.iter().find(named).map(|planned| planned.gate.clone())
    };
    assert_eq!(
        [gate("config"), gate("webhook"), gate("cpi")],
        [Some(Gate::Kept), Some(Gate::Open), Some(Gate::Open)]
    );
    assert_eq!(names(&plan), ["ConfigMap cpi", "Service webhook"], "each once: {}", text(&plan));
}

/// What comes after an object that is being deleted waits for its successor: later waves of its driver, and instances of a definition,
/// whichever driver they are of.
#[test]
fn terminating_object_holds_what_comes_after_it() {
    let wanted = Slot {
        wanted: Some(0),
        ..NOTHING
    };
    let leaving = Slot {
        live: Live::Leaving(0),
        listed: Listed::SameUid,
        ..wanted
    };
    let case = with(&[
        (at("ConfigMap", "cpi"), leaving),
        (at("ServiceAccount", "cpi"), wanted),
        (at("DaemonSet", "cpi"), wanted),
        (at("DaemonSet", "node"), wanted),
    ]);
    assert_eq!(names(&case.plan(&case.world)), ["ServiceAccount cpi", "DaemonSet node"]);
    let mut case = with(&[
        (at("CustomResourceDefinition", "crd"), leaving),
        (at("Thing", "thing"), wanted),
        (at("ConfigMap", "cpi"), wanted),
    ]);
    for desired in case.desired.iter_mut().filter(|d| d.object.kind() == "Thing") {
        desired.driver = "other".into();
    }
    assert_eq!(names(&case.plan(&case.world)), ["ConfigMap cpi"]);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn held_driver_random_plan_writes_nothing_of_it(case in case(), held in held()) {
        let mut world = case.world.clone();
        let is_held = |driver: &str| held.iter().any(|wait| wait.driver == driver);
        let listed = |world: &World| world.inventory.objects.iter().filter(|(_, entry)| is_held(&entry.driver)).map(|(id, _)| id.clone()).collect::<BTreeSet<ObjectId>>();
        let (before, unaccounted) = (listed(&world), world.unaccounted());
        for _ in 0..12 {
            let plan = world.plan_without(&case.desired, &held);
            for step in &plan.steps {
                prop_assert!(!(step.is_transition() && is_held(step.driver())), "{:?}", step);
                prop_assert!(!(step.removes() && is_held(step.driver())), "{:?}", step);
                world.carry(step);
                prop_assert!(world.unaccounted().is_subset(&unaccounted));
            }
            prop_assert!(held.iter().all(|wait| plan.waiting.contains(wait)));
            world.tick();
        }
        // What is there and in sync is recorded, and nothing that is not.
        let recorded: Vec<ObjectId> = listed(&world).difference(&before).cloned().collect();
        prop_assert!(recorded.iter().all(|id| case.world.live.contains_key(id)), "{:?} of theirs is recorded", recorded);
        // It comes to rest, with everything of the others in sync.
        let rest = world.plan_without(&case.desired, &held);
        prop_assert!(rest.is_empty(), "{}", text(&rest));
        for d in case.desired.iter().filter(|d| !is_held(&d.driver)) {
            let live = world.live.get(&d.object.id());
            prop_assert!(live.is_some_and(|live| is_owned(live, &set()) && live.value()["data"] == d.object.value()["data"]), "{} is not in sync", d.object);
        }
    }

    #[test]
    fn held_driver_released_converges_to_same_end(case in case(), held in held(), rounds in 1..4usize) {
        let (end, _) = case.converge(None);
        let mut delayed = case.clone();
        for _ in 0..rounds {
            for step in delayed.world.plan_without(&case.desired, &held).steps {
                delayed.world.carry(&step);
            }
            delayed.world.tick();
        }
        prop_assert_eq!(delayed.converge(None).0.shape(), end.shape());
    }
}
