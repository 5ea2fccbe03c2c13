// SPDX-License-Identifier: Apache-2.0
//! What a person approves: the hash of a plan, and the state that it leads to.

use super::simulation::{Case, Listed, Live, NOTHING, Slot, at, case, object, with};
use proptest::prelude::*;
use std::collections::BTreeSet;
use vdo_core::manifest::Object;
use vdo_core::plan::{Input, RandomContent, hash, target};

const OURS: Slot = Slot {
    wanted: Some(0),
    live: Live::Ours(0),
    listed: Listed::SameUid,
    held: false,
    fixed: false,
};

fn hash_of(case: &Case) -> Option<String> {
    hash(&case.world.whole(&case.desired), &RandomContent::new())
}

#[test]
fn approval_each_kind_of_change_has_own_hash() {
    let map = at("ConfigMap", "cpi");
    let hashes: Vec<Option<String>> = [
        Slot {
            live: Live::Absent,
            listed: Listed::No,
            ..OURS
        },
        Slot { wanted: Some(1), ..OURS },
        Slot {
            wanted: Some(1),
            fixed: true,
            ..OURS
        },
        Slot {
            live: Live::Foreign(0),
            listed: Listed::No,
            ..OURS
        },
        Slot { wanted: None, ..OURS },
        Slot {
            live: Live::Absent,
            listed: Listed::No,
            wanted: Some(1),
            ..OURS
        },
    ]
    .into_iter()
    .map(|slot| hash_of(&with(&[(map, slot)])))
    .collect();
    assert!(
        hashes.iter().all(|hash| hash.as_ref().is_some_and(|hash| hash.len() == 16)),
        "{hashes:?}"
    );
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), hashes.len(), "{hashes:?}");
}

/// One object that is in sync but for a field that was changed by hand.
fn drifted() -> Case {
    let map = at("ConfigMap", "cpi");
    let mut drifted = with(&[(map, OURS)]);
    let id = object(map, 0, true).id();
    let mut value = drifted.world.live[&id].value().clone();
    value["data"]["content"] = 7.into();
    drifted.world.live.insert(id, Object::new(value).expect("an object"));
    drifted
}

#[test]
fn approval_nothing_to_do_needs_none() {
    let map = at("ConfigMap", "cpi");
    assert_eq!(hash_of(&with(&[(map, OURS)])), None, "nothing to do");
}

#[test]
fn approval_restore_of_deleted_object_needs_none() {
    let map = at("ConfigMap", "cpi");
    assert_eq!(
        hash_of(&with(&[(
            map,
            Slot {
                live: Live::Absent,
                ..OURS
            }
        )])),
        None,
        "someone deleted it"
    );
}

#[test]
fn approval_drift_repair_needs_none() {
    let drifted = drifted();
    assert!(!drifted.plan(&drifted.world).is_empty());
    assert_eq!(hash_of(&drifted), None, "someone changed it");
}

#[test]
fn approval_drift_beside_real_change_keeps_hash() {
    let (map, drifted) = (at("ConfigMap", "cpi"), drifted());
    // Beside a real change the drift of another object makes no difference.
    let node = at("DaemonSet", "node");
    let absent = Slot {
        live: Live::Absent,
        listed: Listed::No,
        ..OURS
    };
    let calm = with(&[(map, OURS), (node, absent)]);
    let mut restless = with(&[(map, OURS), (node, absent)]);
    restless.world.live.clone_from(&drifted.world.live);
    assert_eq!(hash_of(&calm), hash_of(&restless));
}

#[test]
fn approval_given_is_recorded_in_inventory() {
    let case = with(&[(
        at("ConfigMap", "cpi"),
        Slot {
            wanted: Some(0),
            ..NOTHING
        },
    )]);
    let observed = case.world.observed();
    let input = Input {
        approved: Some("state"),
        ..case.world.input(&case.desired, &observed)
    };
    let plan = case.world.plan_for(&input, |_| {});
    let recorded = plan.steps.iter().any(|step| format!("{step:?}").contains("state"));
    assert!(recorded, "{plan:?}");
}

proptest! {
    #![proptest_config(super::properties::config())]

    #[test]
    fn approval_target_is_stable_until_converged_and_unique(case in case()) {
        let (mut world, mut hashes) = (case.world.clone(), Vec::new());
        let wanted = target(&case.desired, &RandomContent::new());
        let mut reversed = case.desired.clone();
        reversed.reverse();
        prop_assert_eq!(&target(&reversed, &RandomContent::new()), &wanted);
        prop_assert_eq!(hash(&world.whole(&case.desired), &RandomContent::new()), hash(&world.whole(&reversed), &RandomContent::new()));
        for _ in 0..12 {
            hashes.push(hash(&world.whole(&case.desired), &RandomContent::new()));
            for step in case.plan(&world).steps {
                world.carry(&step);
            }
            world.tick();
        }
        prop_assert_eq!(hashes.last(), Some(&None), "at the end nothing is left to approve");
        let fewer = &case.desired[..case.desired.len().saturating_sub(1)];
        prop_assert!(case.desired.is_empty() || target(fewer, &RandomContent::new()) != wanted);
    }
}
