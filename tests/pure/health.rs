//! What is done about a driver that does not get well.

use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo::drivers::CSI;
use vdo::manifest::{Object, Owner, stamp};
use vdo::plan::{Change, Desired, Entry, Input, Inventory, Observed, Step, plan};
use vdo::types::ById;

/// The plan for one object that is in sync.
fn writes(force_reapply: &[&str]) -> Vec<Step> {
    let mut all = [
        Object::new(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x", "namespace": "n"}})).expect("an object"),
    ];
    let owner = Owner {
        apply_set: "set".into(),
        driver: CSI.into(),
        version: "3.7.3".into(),
        salt: "uid".into(),
    };
    stamp(&mut all, &owner);
    let [object] = all;
    let mut live = object.clone().into_value();
    live["metadata"]["uid"] = "u1".into();
    let id = object.id();
    let observed = Observed {
        live: Arc::new(ById::from_iter([(id.clone(), Object::new(live).expect("an object"))])),
        force_reapply: force_reapply.iter().map(|driver| (*driver).to_owned()).collect(),
        ..Observed::default()
    };
    let inventory = Inventory {
        objects: ById::from_iter([(
            id,
            Entry {
                api_version: "v1".into(),
                driver: CSI.into(),
                wave: 2,
                uid: Some("u1".into()),
                applied: vdo::plan::applied(&object).map(str::to_owned),
            },
        )]),
        ..Inventory::default()
    };
    let desired = [Desired {
        object,
        driver: CSI.into(),
        wave: 2,
    }];
    let plan = plan(&Input {
        apply_set: "set",
        desired: &desired,
        observed: &observed,
        inventory: &inventory,
        cluster_id: None,
        approved: None,
        rules: &[],
        kept: &BTreeSet::new(),
        unhealthy: &[],
        record: &vdo::plan::NO_RECORD,
        store: None,
        finalizer: true,
        uninstall: None,
    });
    plan.writes().cloned().collect()
}

/// Applied once more although it looks as it should: the API server is asked, not our memory of it. It is no step towards
/// another state, so nothing is called changed.
#[test]
fn reapply_unhealthy_driver_plans_repair() {
    assert!(writes(&[]).is_empty());
    assert!(writes(&["vsphere-cpi"]).is_empty(), "another driver is left alone");
    let again = writes(&[CSI]);
    assert!(
        matches!(again.as_slice(), [step @ Step::Apply { change: Change::Repair(found), .. }] if found.is_empty() && !step.is_transition()),
        "{again:?}"
    );
}
