//! Situations with a name.

use super::simulation::{Increment, Listed, Live, NOTHING, Slot, at, object, order, stored, text, with};
use vdo::api::{DeletionPolicy, Reason};
use vdo::plan::{Change, Entry, Input, Observed, Step};
use vdo::types::{CPI, CSI};

#[test]
fn prune_definition_with_instances_is_kept() {
    let definition = at("CustomResourceDefinition", "crd");
    let case = with(&[(
        definition,
        Slot {
            live: Live::Ours(0),
            listed: Listed::SameUid,
            held: true,
            ..NOTHING
        },
    )]);
    let plan = case.plan(&case.world);
    assert_eq!(plan.skipped[0].message, "CustomResourceDefinition crd stays: somebody holds it");
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::Delete { .. })));
}

#[test]
fn apply_instance_of_terminating_definition_waits() {
    let (definition, thing, map) = (at("CustomResourceDefinition", "crd"), at("Thing", "thing"), at("ConfigMap", "cpi"));
    let wanted = Slot {
        wanted: Some(0),
        ..NOTHING
    };
    let case = with(&[
        (
            definition,
            Slot {
                live: Live::Leaving(0),
                listed: Listed::SameUid,
                ..wanted
            },
        ),
        (thing, wanted),
        (map, wanted),
    ]);
    let plan = case.plan(&case.world);
    let written: Vec<String> = plan.steps.iter().filter_map(Step::id).map(|id| id.to_string()).collect();
    assert_eq!(written, ["ConfigMap kube-system/cpi"], "{}", text(&plan));
    assert_eq!(
        plan.waiting[0].message,
        "CustomResourceDefinition crd is being deleted by another user; it is recreated when it is gone"
    );
    assert_eq!(case.converge(None).0.live.len(), 3);
}

#[test]
fn uninstall_orphan_releases_everything_and_deletes_nothing() {
    let ours = Slot {
        live: Live::Ours(0),
        listed: Listed::SameUid,
        ..NOTHING
    };
    let case = with(&[
        (at("ConfigMap", "cpi"), ours),
        (at("DaemonSet", "cpi"), ours),
        (at("Secret", "config"), ours),
    ]);
    let observed = case.world.observed();
    let input = Input {
        uninstall: Some(DeletionPolicy::Orphan),
        ..case.world.input(&[], &observed)
    };
    let plan = case.world.plan_for(&input, |_| {});
    let released = plan.steps.iter().filter(|step| matches!(step, Step::Release { .. })).count();
    assert_eq!(released, 3, "{}", text(&plan));
    assert!(
        matches!(plan.steps.last(), Some(Step::Finish)) && plan.steps.len() == 4,
        "{}",
        text(&plan)
    );
}

/// Volumes in use keep the storage driver, and where everything is to go, all of it: it is one way.
#[test]
fn uninstall_with_volumes_deletes_nothing_prune_of_csi_only_leaves_cpi() {
    let ours = Slot {
        wanted: Some(0),
        live: Live::Ours(0),
        listed: Listed::SameUid,
        ..NOTHING
    };
    let mut case = with(&[
        (at("DaemonSet", "cpi"), ours),
        (at("ConfigMap", "cpi"), ours),
        (at("Secret", "config"), ours),
    ]);
    let mut workload = stored(object(at("Deployment", "controller"), 0, true), "start", false).into_value();
    workload["spec"] = serde_json::json!({"template": {"spec": {}}});
    let workload = vdo::manifest::Object::new(workload).expect("an object");
    case.world.inventory.objects.insert(
        workload.id(),
        Entry {
            api_version: "apps/v1".into(),
            driver: CSI.into(),
            wave: 5,
            uid: Some("start".into()),
            applied: None,
        },
    );
    case.world.live.insert(workload.id(), workload);
    case.world.volumes.count = 2;
    case.desired.retain(|d| *d.driver == *CPI);
    let reasons = |plan: &Increment| plan.whole.blocked.iter().map(|wait| wait.reason).collect::<Vec<_>>();
    let plan = case.plan(&case.world);
    assert!(!plan.steps.iter().any(Step::removes), "{}", text(&plan));
    assert_eq!(reasons(&plan), [Reason::VolumesInUse]);
    let plan = case.world.uninstall();
    assert!(plan.is_empty(), "{}", text(&plan));
    assert_eq!(reasons(&plan), [Reason::VolumesInUse]);
    case.world.volumes.count = 0;
    assert!(case.plan(&case.world).steps.iter().all(|step| step.driver() != CPI));
    assert!(case.world.uninstall().steps.iter().any(Step::removes));
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
    let (map, pods) = (at("ConfigMap", "cpi"), at("DaemonSet", "cpi"));
    let slot = Slot {
        wanted: Some(1),
        live: Live::Ours(0),
        listed: Listed::SameUid,
        held: false,
        fixed: true,
    };
    let mut case = with(&[(map, slot), (pods, Slot { fixed: false, ..slot })]);
    case.world.inventory.cluster_id = Some("cluster".into());
    let plan = case.plan(&case.world);
    assert!(
        matches!(plan.steps.as_slice(), [Step::Record(_), Step::Replace { id, .. }] if id.name == "cpi"),
        "{}",
        text(&plan)
    );
    let (end, writes) = case.converge(None);
    assert_eq!(end.live[&object(map, 0, true).id()].value()["data"]["content"], 1);
    // Record, recreate: delete, record, create; change the pods; commit.
    assert_eq!(writes, 6);
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
            [
                Step::Record(_),
                Step::Apply {
                    change: Change::Update(_),
                    ..
                }
            ]
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
        let unhealthy = Observed {
            suspect: [CPI.to_owned()].into(),
            ..case.world.observed()
        };
        let changes: Vec<&str> = case
            .world
            .plan_for(&case.world.input(&case.desired, &unhealthy), |_| {})
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
