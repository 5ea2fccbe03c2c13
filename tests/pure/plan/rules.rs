//! The rules that no plan may break, each broken once.

use super::simulation::{Listed, Live, NOTHING, Slot, UNIVERSE, at, object, with};
use vdo::plan::{Desired, Entry, Inventory, Step, check};
use vdo::types::{CPI, CSI};

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
            "would be written before it is in the inventory",
        ),
        (refused(|plan, _, _| plan.swap(1, 2)), "would be written after wave"),
        (
            refused(|plan, _, _| plan.push(delete(map, "start"))),
            "would be deleted while something is being written",
        ),
        (
            refused(|plan, _, _| plan.insert(0, delete(map, "start"))),
            "would be written after something was deleted",
        ),
        (
            refused(|plan, _, _| *plan = vec![delete(node, "start")]),
            "is wanted and would be deleted",
        ),
        (
            refused(|plan, desired, _| (*plan, *desired) = (vec![delete(node, "start")], Vec::new())),
            "is not in the inventory and would be deleted",
        ),
        (
            refused(|plan, _, _| *plan = vec![delete(map, "")]),
            "would be deleted without its UID",
        ),
        (
            refused(|plan, _, _| *plan = vec![delete(map, "other")]),
            "is another instance than the one in the inventory",
        ),
        (
            refused(|plan, _, inventory| {
                let claim = at("PersistentVolumeClaim", "data");
                *plan = vec![delete(claim, "start")];
                inventory.objects.insert(object(claim, 0, true).id(), entry(claim));
            }),
            "holds data and would be deleted",
        ),
        (
            refused(|plan, _, _| {
                if let Step::Record(inventory) = &mut plan[0] {
                    inventory.objects.shift_remove(&object(map, 0, true).id());
                }
            }),
            "would be dropped from the inventory before anything was removed",
        ),
        (
            refused(|plan, _, _| {
                if let Step::Record(inventory) = &mut plan[0] {
                    inventory.cluster_id = None;
                }
            }),
            "the identity of the cluster would change",
        ),
        (
            refused(|plan, _, inventory| plan.push(Step::Commit(inventory.clone()))),
            "would be narrowed before it is known",
        ),
        (
            refused(|plan, _, inventory| {
                inventory.objects.insert(object(node, 0, true).id(), entry(node));
                *plan = vec![Step::Commit(Inventory::default())];
            }),
            "is wanted and would be dropped from the inventory",
        ),
        (
            refused(|plan, desired, _| (*plan, *desired) = (vec![replace(map, "start")], Vec::new())),
            "would be replaced although it is not wanted",
        ),
        (
            refused(|plan, _, inventory| {
                inventory.objects.insert(object(node, 0, true).id(), entry(node));
                *plan = vec![replace(node, "")];
            }),
            "would be replaced, and it is another instance",
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
            "a step follows the narrowing of the inventory",
        ),
        (
            refused(|plan, _, _| *plan = vec![Step::Finish]),
            "is wanted, and the inventory would be deleted",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "expected {expected:?}, got {message:?}");
    }
}
