// SPDX-License-Identifier: Apache-2.0
//! What is stored when nothing is left to write, and what a change is in the history.

use super::simulation::{Case, Listed, Live, NOTHING, Slot, at, object, some_wait, with};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeSet;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::plan::{About, Closed, Input, Inventory, Needs, Outcome, Plan, Record, RevisionFailure, Step};

const WANTED: Slot = Slot {
    wanted: Some(0),
    ..NOTHING
};

/// A ConfigMap of the cloud provider and a Secret of the CSI driver, both applied and deployed.
fn deployed() -> Case {
    let there = Slot {
        live: Live::Ours(0),
        listed: Listed::SameUid,
        ..WANTED
    };
    let mut case = with(&[(at("ConfigMap", "cpi"), there), (at("Secret", "config"), there)]);
    case.world = case.converge(None).0;
    case
}

fn newest<'a>(inventory: &'a mut Inventory, driver: &str) -> &'a mut vdo_core::plan::Revision {
    inventory
        .history
        .get_mut(driver)
        .expect("a history")
        .last_mut()
        .expect("a revision")
}

fn outcomes(inventory: &Inventory, driver: &str) -> Vec<(u64, Outcome)> {
    let all = inventory.history.get(driver).into_iter().flatten();
    all.map(|revision| (revision.number, revision.outcome)).collect()
}

/// The cloud provider is healthy again and the CSI driver is not: that is stored at once, unless a change of the CSI driver is expected to
/// be over soon, which saves a write.
#[test]
fn commit_of_one_driver_waits_for_young_change_of_another() {
    use Outcome::{Deployed, Failed, Progressing};
    let wait = some_wait().remove(0);
    let (none, kept): (BTreeSet<_>, BTreeSet<_>) = ([].into(), [CSI.to_owned()].into());
    type Close<'a> = &'a dyn Fn(&mut Plan);
    let close = |plan: &mut Plan, closed: Closed| plan.close_all([closed], &Needs::new());
    let (open, paused): (Close, Close) = (&|_| {}, &|plan| close(plan, Closed::paused(CSI)));
    let held: Close = &|plan| close(plan, Closed::refused(wait.clone()));
    for (outcome, age, kept, close, commits) in [
        (Progressing, 0, &none, open, false),
        (Progressing, 599, &none, open, false),
        (Progressing, 600, &none, open, true),
        (Progressing, 601, &none, open, true),
        (Deployed, 0, &none, open, true),
        (Failed, 0, &none, open, true),
        (Progressing, 0, &none, paused, true),
        (Progressing, 0, &none, held, true),
        (Progressing, 0, &kept, open, true),
    ] {
        let mut case = deployed();
        newest(&mut case.world.inventory, CPI).outcome = Progressing;
        newest(&mut case.world.inventory, CSI).outcome = outcome;
        case.world.at = Timestamp::from_second(age).unwrap();
        let (observed, unhealthy) = (case.world.observed(), some_wait());
        let input = Input {
            unhealthy: &unhealthy,
            kept,
            ..case.world.input(&case.desired, &observed)
        };
        let found = match &case.world.plan_for(&input, close).steps[..] {
            [] => None,
            [Step::Commit(stored)] => Some([CPI, CSI].map(|driver| outcomes(stored, driver))),
            other => panic!("{other:?}"),
        };
        let expected = commits.then(|| [vec![(1, Deployed)], vec![(1, outcome)]]);
        assert_eq!(found, expected, "{outcome} for {age} seconds, kept: {kept:?}");
    }
}

/// A deleted object that is restored is the same state as before: nothing of the history changes, although it has a new UID.
#[test]
fn commit_of_restored_object_leaves_the_revision_as_it_was() {
    let mut case = deployed();
    let before = case.world.inventory.history.clone();
    let id = object(at("ConfigMap", "cpi"), 0, true).id();
    case.world.live.shift_remove(&id);
    let about = About {
        generation: 2,
        ..About::default()
    };
    let record = Record {
        about: [(CPI.to_owned(), about)].into(),
        ..Record::default()
    };
    for _ in 0..2 {
        let observed = case.world.observed();
        let input = Input {
            record: &record,
            ..case.world.input(&case.desired, &observed)
        };
        let steps = case.world.plan_for(&input, |_| {}).steps;
        assert!(!steps.is_empty());
        steps.iter().for_each(|step| case.world.carry(step));
    }
    assert_eq!(case.world.inventory.objects[&id].uid.as_deref(), Some(case.world.live[&id].uid()));
    assert_eq!(case.world.inventory.history, before);
}

/// Where nothing is known of the past, a repair is not a first revision.
#[test]
fn record_of_a_repair_begins_no_revision() {
    let mut case = deployed();
    case.world.inventory.history.clear();
    case.world.live.shift_remove(&object(at("ConfigMap", "cpi"), 0, true).id());
    let steps = case.plan(&case.world).steps;
    let [Step::Record(recorded), Step::Apply { .. }] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert!(recorded.history.is_empty(), "{:?}", recorded.history);
}

/// A change that was interrupted goes on as the revision that it is; one that was given up begins another.
#[test]
fn record_of_interrupted_change_begins_no_revision_unless_it_failed() {
    for (failed, expected) in [
        (false, vec![(1, Outcome::Deployed)]),
        (true, vec![(1, Outcome::Failed), (2, Outcome::Deployed)]),
    ] {
        let mut case = with(&[(at("ConfigMap", "cpi"), WANTED), (at("ServiceAccount", "cpi"), WANTED)]);
        let steps = case.plan(&case.world).steps;
        assert_eq!(steps.len(), 3, "the record and two objects");
        steps[..2].iter().for_each(|step| case.world.carry(step));
        if failed {
            let newest = newest(&mut case.world.inventory, CPI);
            newest.outcome = Outcome::Failed;
            newest.failure = Some(RevisionFailure {
                reason: "ChangeRefused".into(),
                message: "no".into(),
                basis: String::new(),
            });
        }
        assert_eq!(outcomes(&case.converge(None).0.inventory, CPI), expected);
    }
}

#[test]
fn commit_without_objects_of_a_driver_forgets_its_history() {
    let mut case = deployed();
    assert_eq!(case.world.inventory.history.keys().collect::<Vec<_>>(), [CPI, CSI]);
    case.desired.retain(|desired| *desired.driver == *CPI);
    let end = case.converge(None).0.inventory;
    assert_eq!(end.history.keys().collect::<Vec<_>>(), [CPI]);
}

/// The id is fixed by the driver that registers volumes under it.
#[test]
fn cluster_id_is_recorded_with_the_storage_driver_only() {
    for (object, expected) in [(at("ConfigMap", "cpi"), None), (at("Secret", "config"), Some("cluster"))] {
        let end = with(&[(object, WANTED)]).converge(None).0.inventory;
        assert_eq!(end.cluster_id.as_deref(), expected);
    }
}
