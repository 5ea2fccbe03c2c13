// SPDX-License-Identifier: Apache-2.0
//! What is done about a driver that does not get well.

use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo_api::types::ById;
use vdo_core::chart;
use vdo_core::drivers::CSI;
use vdo_core::health::{Verdict, assess, is_judged};
use vdo_core::manifest::{Object, Owner, stamp};
use vdo_core::plan::{Change, Desired, Entry, Input, Inventory, Observed, Step, plan};
use vdo_source::fetch::embedded;

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
                applied: vdo_core::plan::applied(&object).map(str::to_owned),
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
        record: &vdo_core::plan::NO_RECORD,
        store: None,
        finalizer: true,
        uninstall: None,
    });
    plan.writes().cloned().collect()
}

/// Applied once more although it looks as it should: the API server is asked, not our memory of it. It is not a step towards
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

/// Every kind that a chart renders, with and without options.
#[test]
fn health_every_kind_of_a_chart_is_assessed() {
    let mut kinds = BTreeSet::new();
    for (_, source) in embedded::sources() {
        for version in source.versions() {
            let chart = chart::open(&chart::package(&source, &version).expect("a package")).expect("a chart");
            let values = match chart.values.get("webhook") {
                Some(_) => {
                    json!({"webhook": {"enabled": true, "caBundle": "Q0E="}, "storageClasses": [{"name": "x", "storagePolicy": "y"}]})
                }
                None => json!(null),
            };
            for object in chart::render(&chart, &values, &chart::Context::default()).expect("objects") {
                kinds.insert(object["kind"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    let pods = ["DaemonSet", "Deployment"];
    assert!(
        pods.iter().all(|kind| kinds.contains(*kind)) && kinds.contains("ValidatingWebhookConfiguration"),
        "{kinds:?}"
    );
    let object = |kind: &str, metadata| {
        let mut object = json!({"apiVersion": "example/v1", "kind": kind, "metadata": metadata});
        object["spec"] = json!({});
        Object::new(object).expect("an object")
    };
    for kind in &kinds {
        let fresh = object(kind, json!({"name": "x", "namespace": "n", "generation": 2}));
        let waits = pods.contains(&kind.as_str()) || matches!(kind.as_str(), "APIService" | "CustomResourceDefinition");
        assert_eq!(assess(&fresh).0 == Verdict::Current, !waits, "{kind}");
        let bare = Object::new(json!({"apiVersion": "example/v1", "kind": kind, "metadata": {"name": "x"}})).expect("an object");
        assert!(is_judged(&bare) || assess(&bare).0 == Verdict::Current, "{kind}");
        let leaving = object(
            kind,
            json!({"name": "x", "namespace": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        );
        let expected = format!("{kind} n/x is being deleted");
        assert!(matches!(assess(&leaving).0, Verdict::Waiting(_, why) if why == expected), "{kind}");
    }
}
