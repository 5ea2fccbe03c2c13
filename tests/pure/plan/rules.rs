// SPDX-License-Identifier: Apache-2.0
//! The rules that no plan may break, each broken once.

use super::simulation::{Listed, Live, NOTHING, Slot, UNIVERSE, at, object, with};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::plan::{Desired, Entry, Inventory, Step, check};

/// A plan that is good, what it was made for, and one thing done to it.
fn refused(mutate: impl FnOnce(&mut Vec<Step>, &mut Vec<Desired>, &mut Inventory)) -> String {
    let (cpi, node, map) = (at("DaemonSet", "cpi"), at("DaemonSet", "node"), at("ConfigMap", "cpi"));
    let case = with(&[
        (
            cpi,
            Slot {
                wanted: Some(0),
                ..NOTHING
            },
        ),
        (
            node,
            Slot {
                wanted: Some(0),
                ..NOTHING
            },
        ),
        (
            map,
            Slot {
                live: Live::Ours(0),
                listed: Listed::SameUid,
                ..NOTHING
            },
        ),
    ]);
    let (mut desired, mut inventory) = (case.desired.clone(), case.world.inventory.clone());
    inventory.cluster_id = Some("cluster".into());
    let mut plan = case.plan(&case.world).steps;
    assert_eq!(check(&plan, &desired, &inventory), Ok(()), "the baseline is good");
    mutate(&mut plan, &mut desired, &mut inventory);
    check(&plan, &desired, &inventory).map_or_else(|refusal| refusal.to_string(), |()| "accepted".into())
}

fn delete(i: usize, uid: &str) -> Step {
    Step::Delete {
        id: object(i, 0, true).id(),
        api_version: UNIVERSE[i].0.into(),
        uid: uid.into(),
        wave: 2,
        driver: CPI.into(),
    }
}

fn replace(i: usize, uid: &str) -> Step {
    Step::Replace {
        id: object(i, 0, true).id(),
        api_version: UNIVERSE[i].0.into(),
        uid: uid.into(),
        keep_pods: false,
        digest: String::new(),
        fields: Vec::new(),
        wave: 2,
        driver: CSI.into(),
    }
}

#[test]
fn plan_check_each_broken_rule_is_rejected() {
    let (map, node) = (at("ConfigMap", "cpi"), at("DaemonSet", "node"));
    let entry = |i: usize| Entry {
        api_version: UNIVERSE[i].0.into(),
        driver: CSI.into(),
        wave: 2,
        uid: None,
        applied: None,
    };
    let cases: Vec<(String, &str)> = vec![
        (
            refused(|plan, _, _| drop(plan.remove(0))),
            "would be written before it is in the operator's inventory",
        ),
        (refused(|plan, _, _| plan.swap(1, 2)), "would be written after wave"),
        (
            refused(|plan, _, _| plan.push(delete(map, "start"))),
            "would be deleted while objects of its driver are written",
        ),
        (
            refused(|plan, _, _| plan.insert(0, delete(map, "start"))),
            "would be written after an object of its driver was deleted",
        ),
        (
            refused(|plan, _, _| *plan = vec![delete(node, "start")]),
            "is desired and would be deleted",
        ),
        (
            refused(|plan, desired, _| (*plan, *desired) = (vec![delete(node, "start")], Vec::new())),
            "is not in the operator's inventory and would be deleted",
        ),
        (
            refused(|plan, _, _| *plan = vec![delete(map, "")]),
            "would be deleted, but the plan contains no UID of this object",
        ),
        (
            refused(|plan, _, _| *plan = vec![delete(map, "other")]),
            "would be deleted, and its UID is not the UID in the operator's inventory",
        ),
        (
            refused(|plan, _, inventory| {
                let claim = at("PersistentVolumeClaim", "data");
                *plan = vec![delete(claim, "start")];
                inventory.objects.insert(object(claim, 0, true).id(), entry(claim));
            }),
            "contains data and would be deleted",
        ),
        (
            refused(|plan, _, _| {
                if let Step::Record(inventory) = &mut plan[0] {
                    inventory.objects.shift_remove(&object(map, 0, true).id());
                }
            }),
            "would be dropped from the operator's inventory before anything was removed",
        ),
        (
            refused(|plan, _, _| {
                if let Step::Record(inventory) = &mut plan[0] {
                    inventory.cluster_id = None;
                }
            }),
            "the cluster id in the operator's inventory would change",
        ),
        (
            refused(|plan, _, inventory| plan.push(Step::Commit(inventory.clone()))),
            "would be removed from the operator's inventory before the results of the other steps are known",
        ),
        (
            refused(|plan, _, inventory| {
                inventory.objects.insert(object(node, 0, true).id(), entry(node));
                *plan = vec![Step::Commit(Inventory::default())];
            }),
            "is desired and would be removed from the operator's inventory",
        ),
        (
            refused(|plan, desired, _| (*plan, *desired) = (vec![replace(map, "start")], Vec::new())),
            "would be replaced although it is not desired",
        ),
        (
            refused(|plan, _, inventory| {
                inventory.objects.insert(object(node, 0, true).id(), entry(node));
                *plan = vec![replace(node, "")];
            }),
            "would be replaced, and its UID is not the UID in the operator's inventory",
        ),
        (
            refused(|plan, desired, inventory| {
                let class = at("StorageClass", "fast");
                inventory.objects.insert(object(class, 0, true).id(), entry(class));
                desired.push(Desired {
                    object: object(class, 0, true),
                    driver: CSI.into(),
                    wave: 2,
                });
                *plan = vec![replace(class, "start")];
            }),
            "would be replaced, which is not safe for its kind",
        ),
        (
            refused(|plan, desired, inventory| {
                desired.clear();
                *plan = vec![Step::Commit(inventory.clone()), delete(map, "start")];
            }),
            "the step that removes entries from the operator's inventory, or deletes the inventory, is not the last step",
        ),
        (
            refused(|plan, _, _| *plan = vec![Step::Finish]),
            "is desired, and the operator's inventory would be deleted",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "expected {expected:?}, got {message:?}");
    }
}

fn release(i: usize, uid: &str) -> Step {
    Step::Release {
        id: object(i, 0, true).id(),
        api_version: UNIVERSE[i].0.into(),
        uid: uid.into(),
        driver: CPI.into(),
    }
}

/// The instance in the inventory is known or not.
fn listed(i: usize, uid: Option<&str>) -> (vdo_api::types::ObjectId, Entry) {
    let entry = Entry {
        api_version: UNIVERSE[i].0.into(),
        driver: CSI.into(),
        wave: 2,
        uid: uid.map(Into::into),
        applied: None,
    };
    (object(i, 0, true).id(), entry)
}

/// What is refused for one of several reasons is refused for each of them alone.
#[test]
fn plan_check_each_reason_alone_is_enough() {
    let (map, node, secret) = (at("ConfigMap", "cpi"), at("DaemonSet", "node"), at("Secret", "config"));
    let let_go = "would be released although it is desired, or not in the operator's inventory";
    let replaced = "would be replaced although it is not desired, or not in the operator's inventory";
    let instance = "would be replaced, and its UID is not the UID in the operator's inventory";
    let unproven = "was deleted, so the old version would be removed before the new one works";
    let cases = [
        (
            refused(|plan, _, inventory| {
                inventory.objects.extend([listed(node, None)]);
                *plan = vec![release(node, "start")];
            }),
            let_go,
        ),
        (refused(|plan, _, _| *plan = vec![release(secret, "start")]), let_go),
        (refused(|plan, _, _| *plan = vec![release(map, "")]), let_go),
        (refused(|plan, _, _| *plan = vec![replace(map, "start")]), replaced),
        (refused(|plan, _, _| *plan = vec![replace(node, "start")]), replaced),
        (
            refused(|plan, _, inventory| {
                inventory.objects.extend([listed(node, Some("start"))]);
                *plan = vec![replace(node, "another")];
            }),
            instance,
        ),
        (
            refused(|plan, _, inventory| {
                inventory.objects.extend([listed(node, None)]);
                plan.push(replace(node, "start"));
            }),
            "would be replaced after wave",
        ),
        (refused(|plan, _, _| plan.insert(1, release(map, "start"))), unproven),
        (
            refused(|plan, desired, inventory| {
                desired.retain(|d| *d.driver == *CSI);
                inventory.objects.extend([listed(node, None)]);
                let Step::Delete {
                    id,
                    api_version,
                    uid,
                    wave,
                    ..
                } = delete(map, "start")
                else {
                    return;
                };
                let driver = CSI.to_owned();
                *plan = vec![
                    replace(node, "start"),
                    Step::Delete {
                        id,
                        api_version,
                        uid,
                        wave,
                        driver,
                    },
                ];
            }),
            "would be deleted while objects of its driver are written",
        ),
        (
            refused(|plan, _, inventory| *plan = vec![release(map, "start"), Step::Commit(inventory.clone())]),
            "would be removed from the operator's inventory before the results of the other steps are known",
        ),
        (
            refused(|plan, desired, _| {
                desired.clear();
                *plan = vec![Step::Finish, release(map, "start")];
            }),
            "the step that removes entries from the operator's inventory, or deletes the inventory, is not the last step",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "expected {expected:?}, got {message:?}");
    }
}

#[test]
fn plan_check_lawful_steps_are_accepted() {
    let (map, node, secret) = (at("ConfigMap", "cpi"), at("DaemonSet", "node"), at("Secret", "config"));
    let cases = [
        (
            "a removal of what is listed",
            refused(|plan, _, _| *plan = vec![delete(map, "start")]),
        ),
        (
            "one of which the instance is not known",
            refused(|plan, _, inventory| {
                inventory.objects.extend([listed(secret, None)]);
                *plan = vec![delete(secret, "start"), release(map, "start")];
            }),
        ),
        (
            "two of one wave, of which the instance is known or not",
            refused(|plan, desired, inventory| {
                let wanted = |i: usize| Desired {
                    object: object(i, 0, true),
                    driver: CSI.into(),
                    wave: 2,
                };
                desired.push(wanted(secret));
                inventory.objects.extend([listed(node, None), listed(secret, Some("start"))]);
                *plan = vec![replace(node, "start"), replace(secret, "start")];
            }),
        ),
        (
            "two writes of one wave",
            refused(|plan, _, _| {
                for step in plan {
                    if let Step::Apply { wave, .. } = step {
                        *wave = 4;
                    }
                }
            }),
        ),
        (
            "the first identity of the cluster",
            refused(|plan, _, inventory| {
                inventory.cluster_id = None;
                if let Step::Record(new) = &mut plan[0] {
                    new.cluster_id = Some("cluster".into());
                }
            }),
        ),
        (
            "what is not wanted is dropped",
            refused(|plan, _, _| *plan = vec![Step::Commit(Inventory::default())]),
        ),
        (
            "the end of an uninstallation",
            refused(|plan, desired, _| {
                desired.clear();
                *plan = vec![release(map, "start"), Step::Finish];
            }),
        ),
        ("nothing", refused(|plan, _, _| plan.clear())),
    ];
    for (what, message) in cases {
        assert_eq!(message, "accepted", "{what}");
    }
}
