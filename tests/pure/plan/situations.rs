//! Situations with a name.

use super::simulation::{Listed, Live, NOTHING, Slot, at, object, order, text, with};
use vdo::plan::{Change, Inventory, Observed, Step};
use vdo::types::CPI;

#[test]
fn uninstall_adopted_namespace_is_kept() {
    let namespace = at("Namespace", "csi");
    let case = with(&[(
        namespace,
        Slot {
            wanted: Some(0),
            live: Live::Foreign(0),
            ..NOTHING
        },
    )]);
    let changes: Vec<Change> = case
        .plan(&case.world)
        .steps
        .into_iter()
        .filter_map(|step| {
            if let Step::Apply { change, .. } = step {
                Some(change)
            } else {
                None
            }
        })
        .collect();
    assert!(matches!(changes.as_slice(), [Change::Adopt(_)]), "{changes:?}");
    let (end, _) = case.converge(None);
    let plan = end.remove();
    assert_eq!(plan.skipped[0].message, "Namespace csi stays: it was there before the driver");
    assert!(matches!(plan.steps.as_slice(), [Step::Commit(inventory)] if *inventory == Inventory::default()));
}

#[test]
fn prune_namespace_with_foreign_content_is_kept() {
    let namespace = at("Namespace", "csi");
    let case = with(&[(
        namespace,
        Slot {
            live: Live::Ours(0),
            listed: Listed::SameUid,
            held: true,
            ..NOTHING
        },
    )]);
    let plan = case.plan(&case.world);
    assert_eq!(plan.skipped[0].message, "Namespace csi stays: somebody holds it");
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::Delete { .. })));
}

#[test]
fn uninstall_recreated_adopted_namespace_is_deleted() {
    let namespace = at("Namespace", "csi");
    let case = with(&[(
        namespace,
        Slot {
            wanted: Some(0),
            listed: Listed::Adopted,
            ..NOTHING
        },
    )]);
    let (end, _) = case.converge(None);
    assert!(matches!(end.remove().steps.as_slice(), [Step::Delete { .. }]));
}

#[test]
fn apply_into_terminating_namespace_waits() {
    let (namespace, node) = (at("Namespace", "csi"), at("DaemonSet", "node"));
    let case = with(&[
        (
            namespace,
            Slot {
                wanted: Some(0),
                live: Live::Leaving(0),
                listed: Listed::SameUid,
                held: false,
                fixed: false,
            },
        ),
        (
            node,
            Slot {
                wanted: Some(0),
                ..NOTHING
            },
        ),
    ]);
    let plan = case.plan(&case.world);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::Apply { .. })), "{}", text(&plan));
    assert_eq!(
        plan.waiting[0].message,
        "Namespace csi is being deleted by somebody and is made anew once it is gone"
    );
    assert_eq!(case.converge(None).0.live.len(), 2);
}

#[test]
fn prune_recreated_then_unwanted_object_after_crash_is_deleted() {
    let config = at("ConfigMap", "cpi");
    let mut case = with(&[(
        config,
        Slot {
            wanted: Some(0),
            listed: Listed::SameUid,
            ..NOTHING
        },
    )]);
    let plan = case.plan(&case.world);
    plan.steps.iter().for_each(|step| case.world.carry(step));
    case.desired.clear();
    let (end, _) = case.converge(None);
    assert!(end.live.is_empty() && end.inventory.objects.is_empty());
}

#[test]
fn inventory_entries_follow_wanted_version_and_wave() {
    let node = at("DaemonSet", "node");
    let mut case = with(&[(
        node,
        Slot {
            wanted: Some(0),
            live: Live::Ours(0),
            listed: Listed::SameUid,
            ..NOTHING
        },
    )]);
    let id = object(node, 0, true).id();
    let entry = case.world.inventory.objects.get_mut(&id).expect("listed");
    (entry.api_version, entry.wave) = ("apps/v1beta2".into(), 9);
    let end = case.converge(None).0;
    assert_eq!(
        (end.inventory.objects[&id].api_version.as_str(), end.inventory.objects[&id].wave),
        ("apps/v1", order(node))
    );
}
/// A field that cannot be changed: the object goes and comes back, and what needs it waits meanwhile.
#[test]
fn recreate_immutable_object_precedes_dependent_pods() {
    let (role, node) = (at("DaemonSet", "cpi"), at("DaemonSet", "node"));
    let slot = Slot {
        wanted: Some(1),
        live: Live::Ours(0),
        listed: Listed::SameUid,
        held: false,
        fixed: true,
    };
    let mut case = with(&[(role, slot), (node, Slot { fixed: false, ..slot })]);
    case.world.inventory.cluster_id = Some("cluster".into());
    let plan = case.plan(&case.world);
    assert!(
        matches!(plan.steps.as_slice(), [Step::Replace { id, .. }] if id.name == "cpi"),
        "{}",
        text(&plan)
    );
    let (end, writes) = case.converge(None);
    assert_eq!(end.live[&object(role, 0, true).id()].value()["data"]["content"], 1);
    // Replace, record, make again, change the other, commit.
    assert_eq!(writes, 5);
}

/// What holds data is written as it is, so that the server says why it cannot be; it is never deleted.
#[test]
fn recreate_storage_class_is_never_planned() {
    let class = at("StorageClass", "fast");
    let slot = Slot {
        wanted: Some(1),
        live: Live::Ours(0),
        listed: Listed::SameUid,
        held: false,
        fixed: true,
    };
    let mut case = with(&[(class, slot)]);
    case.world.inventory.cluster_id = Some("cluster".into());
    let plan = case.plan(&case.world);
    assert!(
        matches!(
            plan.steps.as_slice(),
            [Step::Apply {
                change: Change::Update(_),
                ..
            }]
        ),
        "{}",
        text(&plan)
    );
}

/// A driver that does not get well is applied once more as it is. That is no way for another state to be written, which a person may
/// have to approve and the server has to accept.
#[test]
fn reapply_unhealthy_driver_is_repair_not_update() {
    let (map, node) = (at("ConfigMap", "cpi"), at("DaemonSet", "cpi"));
    let ours = |wanted: u8| Slot {
        wanted: Some(wanted),
        live: Live::Ours(0),
        listed: Listed::SameUid,
        ..NOTHING
    };
    for (wanted, expected) in [(0, ["repair", "repair"]), (1, ["update", "repair"])] {
        let case = with(&[(map, ours(wanted)), (node, ours(0))]);
        let ill = Observed {
            suspect: [CPI.to_owned()].into(),
            ..case.world.observed()
        };
        let changes: Vec<&str> = case
            .world
            .plan_for(&case.desired, &ill)
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Apply {
                    change: Change::Repair(_), ..
                } => Some("repair"),
                Step::Apply {
                    change: Change::Update(_), ..
                } => Some("update"),
                Step::Apply { change, .. } => panic!("{change:?}"),
                _ => None,
            })
            .collect();
        assert_eq!(changes, expected);
    }
}
