//! Some drivers are left as they are, because the cluster is against something of theirs: the others come through, and once the way is
//! free the end is the same.

use super::properties::config;
use super::simulation::{World, case, set, text};
use proptest::prelude::*;
use std::collections::BTreeSet;
use vdo::api::Reason;
use vdo::manifest::is_owned;
use vdo::plan::{Held, Wait};
use vdo::types::{CPI, CSI, ObjectId};

fn held() -> impl Strategy<Value = Held> {
    prop::sample::subsequence(vec![CPI, CSI, "other"], 1..=3).prop_map(|drivers| held_by(&drivers))
}

pub fn held_by(drivers: &[&str]) -> Held {
    let wait = |driver: &str| Wait {
        driver: driver.into(),
        reason: Reason::AdmissionDenied,
        message: "a policy is against it".into(),
    };
    drivers.iter().map(|driver| ((*driver).to_owned(), wait(driver))).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn held_driver_random_plan_writes_nothing_of_it(case in case(), held in held()) {
        let mut world = case.world.clone();
        let listed = |world: &World| world.inventory.objects.iter().filter(|(_, entry)| held.contains_key(&entry.driver)).map(|(id, _)| id.clone()).collect::<BTreeSet<ObjectId>>();
        let (before, unaccounted) = (listed(&world), world.unaccounted());
        for _ in 0..12 {
            let plan = world.plan_without(&case.desired, &held);
            for step in &plan.steps {
                prop_assert!(!(step.is_transition() && held.contains_key(step.driver())), "{:?}", step);
                prop_assert!(!(step.removes() && held.contains_key(step.driver())), "{:?}", step);
                world.carry(step);
                prop_assert!(world.unaccounted().is_subset(&unaccounted));
            }
            prop_assert!(held.values().all(|wait| plan.waiting.contains(wait)));
            world.tick();
        }
        // What is there and as wanted is recorded, and nothing that is not.
        let recorded: Vec<ObjectId> = listed(&world).difference(&before).cloned().collect();
        prop_assert!(recorded.iter().all(|id| case.world.live.contains_key(id)), "{:?} of theirs is recorded", recorded);
        // It comes to rest, with everything of the others as wanted.
        let rest = world.plan_without(&case.desired, &held);
        prop_assert!(rest.is_empty(), "{}", text(&rest));
        for d in case.desired.iter().filter(|d| !held.contains_key(&*d.driver)) {
            let live = world.live.get(&d.object.id());
            prop_assert!(live.is_some_and(|live| is_owned(live, &set()) && live.value()["data"] == d.object.value()["data"]), "{} is not as wanted", d.object);
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
