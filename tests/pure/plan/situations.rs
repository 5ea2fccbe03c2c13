// SPDX-License-Identifier: Apache-2.0
//! Situations with a name.

use super::simulation::{Increment, Listed, Live, NOTHING, Slot, at, object, order, stored, text, with};
use vdo_api::api::{DeletionPolicy, Reason};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::plan::{Change, Entry, Input, Observed, Outcome, PackedObjects, Revision, Step};

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
    assert_eq!(plan.skipped[0].message, "CustomResourceDefinition crd stays: someone holds it");
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
        "CustomResourceDefinition crd is being deleted by another user; the operator recreates the object after the deletion"
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
        // Another instance than the one that was listed, and one that bears no mark any more.
        (
            at("StorageClass", "fast"),
            Slot {
                listed: Listed::OtherUid,
                ..ours
            },
        ),
        (
            at("Service", "webhook"),
            Slot {
                live: Live::Foreign(0),
                ..ours
            },
        ),
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
    let workload = vdo_core::manifest::Object::new(workload).expect("an object");
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
            force_reapply: [CPI.to_owned()].into(),
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

/// That the server found another object in sync says nothing of this one.
#[test]
fn plan_settled_object_is_known_by_its_name() {
    let map = at("ConfigMap", "cpi");
    let ours = Slot {
        wanted: Some(1),
        live: Live::Ours(0),
        listed: Listed::SameUid,
        ..NOTHING
    };
    let case = with(&[(map, ours)]);
    let changes = |settled: usize, suspect: Option<&str>| {
        let settled = [object(settled, 0, true).id()].into_iter().collect();
        let observed = Observed {
            in_sync: settled,
            force_reapply: suspect.into_iter().map(str::to_owned).collect(),
            ..case.world.observed()
        };
        let plan = case.world.plan_for(&case.world.input(&case.desired, &observed), |_| {});
        plan.steps.iter().filter(|step| matches!(step, Step::Apply { .. })).count()
    };
    assert_eq!((changes(at("Secret", "config"), None), changes(map, None)), (1, 0));
    // Of a driver that stays unhealthy it is not believed.
    assert_eq!((changes(map, Some(CSI)), changes(map, Some(CPI))), (0, 1));
}

/// Why an object is written, and which of its fields differ.
#[test]
fn plan_change_says_why_object_is_written() {
    let map = at("ConfigMap", "cpi");
    let slot = |wanted, live, listed| Slot {
        wanted: Some(wanted),
        live,
        listed,
        ..NOTHING
    };
    let same = slot(0, Live::Ours(0), Listed::SameUid);
    let id = object(map, 0, true).id();
    let reported = |slot: Slot, edit: &dyn Fn(&mut super::simulation::Case)| {
        let mut case = with(&[(map, slot)]);
        edit(&mut case);
        let whole = case.world.whole(&case.desired);
        let word = |step: &Step| match step {
            Step::Apply { change, .. } => {
                let (word, fields) = match change {
                    Change::Create => ("create", None),
                    Change::Restore => ("restore", None),
                    Change::Update(fields) => ("update", Some(fields)),
                    Change::Repair(fields) => ("repair", Some(fields)),
                    Change::Adopt(fields) => ("adopt", Some(fields)),
                };
                let paths = fields.into_iter().flatten().map(|field| field.path.as_str());
                [word]
                    .into_iter()
                    .chain(paths.filter(|path| path.starts_with("data") || path.contains("applied")))
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            other => format!("{other:?}"),
        };
        whole.writes().map(word).collect::<Vec<_>>().join(", ")
    };
    let applied_of = |content: u8| vdo_core::plan::applied(&object(map, content, true)).map(str::to_owned);
    let with_value = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = stored(object(map, 0, true), "start", false).into_value();
        change(&mut value);
        vdo_core::manifest::Object::new(value).expect("an object")
    };
    let unmarked = with_value(&|value| {
        let annotations = value["metadata"]["annotations"].as_object_mut().expect("annotations");
        annotations.remove(vdo_api::api::APPLIED_ANNOTATION);
    });
    let edited = with_value(&|value| value["data"]["content"] = 7.into());
    let mark = format!("metadata.annotations[{}]", vdo_api::api::APPLIED_ANNOTATION);
    let keep = |_: &mut super::simulation::Case| ();
    for (what, found, expected) in [
        ("in sync", reported(same, &keep), String::new()),
        ("not there", reported(slot(0, Live::Absent, Listed::No), &keep), "create".into()),
        ("deleted", reported(slot(0, Live::Absent, Listed::SameUid), &keep), "restore".into()),
        (
            "never committed",
            reported(slot(0, Live::Absent, Listed::WithoutUid), &keep),
            "create".into(),
        ),
        (
            "deleted, and another one is wanted",
            reported(slot(1, Live::Absent, Listed::SameUid), &|case| {
                case.world.inventory.objects.get_mut(&id).expect("listed").applied = applied_of(0);
            }),
            "create".into(),
        ),
        (
            "another one is wanted",
            reported(slot(1, Live::Ours(0), Listed::SameUid), &keep),
            "update data.content".into(),
        ),
        (
            "changed by hand",
            reported(same, &|case| drop(case.world.live.insert(id.clone(), edited.clone()))),
            "repair data.content".into(),
        ),
        (
            "without the mark of what was applied",
            reported(same, &|case| drop(case.world.live.insert(id.clone(), unmarked.clone()))),
            format!("update {mark}"),
        ),
        (
            "of another manager",
            reported(slot(0, Live::Foreign(0), Listed::No), &keep),
            format!("adopt {mark}"),
        ),
        (
            "being deleted",
            reported(slot(0, Live::Leaving(0), Listed::SameUid), &keep),
            String::new(),
        ),
        (
            "being deleted, and another one is wanted",
            reported(slot(1, Live::Leaving(0), Listed::SameUid), &keep),
            String::new(),
        ),
    ] {
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn plan_finalizer_is_set_before_the_first_write_only() {
    let map = at("ConfigMap", "cpi");
    let steps = |slot: Slot, finalizer: bool| {
        let mut case = with(&[(map, slot)]);
        if slot.live != Live::Absent {
            case.world = case.converge(None).0;
        }
        let observed = case.world.observed();
        let input = Input {
            finalizer,
            ..case.world.input(&case.desired, &observed)
        };
        let plan = case.world.plan_for(&input, |_| {});
        (matches!(plan.steps.first(), Some(Step::SetFinalizer)), plan.steps.len())
    };
    let absent = Slot {
        wanted: Some(0),
        ..NOTHING
    };
    let there = Slot {
        live: Live::Ours(0),
        ..absent
    };
    assert_eq!((steps(absent, false), steps(absent, true)), ((true, 3), (false, 2)));
    assert_eq!((steps(there, false), steps(there, true)), ((false, 0), (false, 0)));
}

/// Each state is a revision, recorded before its first write and good when its driver is.
#[test]
fn inventory_change_is_recorded_first_and_deployed_at_the_end() {
    let map = at("ConfigMap", "cpi");
    let mut case = with(&[(
        map,
        Slot {
            wanted: Some(1),
            live: Live::Ours(0),
            listed: Listed::SameUid,
            ..NOTHING
        },
    )]);
    let (old, new) = (object(map, 0, true), object(map, 1, true));
    let id = new.id();
    let of = |number: u64, object| Revision::of(number, PackedObjects::of([object].into_iter()));
    case.world.inventory.history.insert(CPI.into(), vec![of(7, &old)]);
    case.world.inventory.objects.get_mut(&id).expect("listed").applied = vdo_core::plan::applied(&old).map(str::to_owned);
    let recorded = case.plan(&case.world).steps.into_iter().find_map(|step| match step {
        Step::Record(inventory) => Some(inventory),
        _ => None,
    });
    let reported = |inventory: &vdo_core::plan::Inventory| -> Vec<(u64, Outcome, PackedObjects)> {
        let all = inventory.history[CPI].iter();
        all.map(|revision| (revision.number, revision.outcome, revision.objects.clone()))
            .collect()
    };
    let (first, second) = (of(7, &old).objects, of(8, &new).objects);
    let recorded = recorded.expect("the inventory first");
    assert_eq!(
        reported(&recorded),
        [(7, Outcome::Superseded, first.clone()), (8, Outcome::Progressing, second.clone())]
    );
    let end = case.converge(None).0.inventory;
    assert_eq!(reported(&end), [(7, Outcome::Superseded, first), (8, Outcome::Deployed, second)]);
    assert_eq!(end.objects[&id].applied.as_deref(), vdo_core::plan::applied(&new));
}

/// A state with less objects than the one before is a revision, too.
#[test]
fn prune_of_an_object_is_a_revision() {
    let wanted = |of| Slot {
        wanted: of,
        live: Live::Ours(0),
        listed: Listed::SameUid,
        ..NOTHING
    };
    let mut case = with(&[
        (at("ConfigMap", "cpi"), wanted(Some(0))),
        (at("ServiceAccount", "cpi"), wanted(Some(0))),
    ]);
    let before = case.converge(None).0;
    case.desired.retain(|desired| desired.object.kind() == "ConfigMap");
    case.world = before;
    let after = case.converge(None).0.inventory;
    let reported: Vec<_> = after.history[CPI]
        .iter()
        .map(|revision| (revision.number, revision.outcome))
        .collect();
    assert_eq!(reported, [(1, Outcome::Deployed), (2, Outcome::Deployed)]);
    let map = object(at("ConfigMap", "cpi"), 0, true);
    assert_eq!(after.history[CPI][1].objects, PackedObjects::of([map].iter()));
}
