// SPDX-License-Identifier: Apache-2.0
//! Tests of `storage_class_and_zones.rs`: which StorageClass, snapshot class and zones a selftest uses.

use super::*;
use serde_json::{Value, json};

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn of_class(name: &str, default: bool, created: &str, mode: &str) -> Class {
    let default = if default { "true" } else { "false" };
    read(
        json!({"metadata": {"name": name, "creationTimestamp": created, "annotations": {"storageclass.kubernetes.io/is-default-class": default}},
        "provisioner": CSI_DRIVER, "volumeBindingMode": mode}),
    )
}

#[test]
fn class_of_selftest_is_the_named_one_or_the_newest_default() {
    let all = [
        of_class("old", true, "2026-01-01T00:00:00Z", "Immediate"),
        of_class("new", true, "2026-02-01T00:00:00Z", "Immediate"),
        of_class("other", false, "2026-03-01T00:00:00Z", "Immediate"),
    ];
    let name = |named: Option<&str>| {
        class(&all, named)
            .map(|class| class.metadata.name.as_str())
            .map_err(|error| (error.exit, error.what))
    };
    assert_eq!(name(None), Ok("new"));
    assert_eq!(name(Some("other")), Ok("other"));
    assert_eq!(name(Some("gone")), Err((Exit::NotFound, "StorageClass gone does not exist".into())));
    assert!(class(&all[2..], None).is_err_and(|error| error.remedy.contains("--storage-class")));
}

#[test]
fn snapshot_class_of_selftest_is_the_default_or_the_only_one() {
    let of = |name: &str, driver: &str, default: bool| -> SnapshotClass {
        read(json!({"metadata": {"name": name, "annotations": {DEFAULT_SNAPSHOT_ANNOTATION: default.to_string()}}, "driver": driver}))
    };
    let cases = [
        (vec![], Err("there is no VolumeSnapshotClass for d")),
        (vec![of("a", "other", true)], Err("there is no VolumeSnapshotClass for d")),
        (vec![of("a", "d", false), of("b", "other", false)], Ok("a")),
        (vec![of("a", "d", false), of("b", "d", true)], Ok("b")),
        (
            vec![of("a", "d", false), of("b", "d", false)],
            Err("2 VolumeSnapshotClasses are for d, and none is the default"),
        ),
    ];
    for (all, expected) in cases {
        assert_eq!(snapshot_class(&all, "d"), expected.map(str::to_owned).map_err(str::to_owned));
    }
}

#[test]
fn zones_of_selftest_are_those_of_nodes_that_may_run_pods() {
    let node = |name: &str, zone: &str, spec: Value| -> Node {
        read(json!({"metadata": {"name": name, "labels": {"zone": zone, "other": name}}, "spec": spec}))
    };
    let csi = |name: &str, driver: &str| -> CsiNode {
        read(json!({"metadata": {"name": name}, "spec": {"drivers": [{"name": driver, "topologyKeys": ["zone"]}]}}))
    };
    let nodes = [
        node("a", "z1", json!({})),
        node("b", "z2", json!({})),
        node("c", "z1", json!({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]})),
        node("cordoned", "z3", json!({"unschedulable": true})),
        node("tainted", "z3", json!({"taints": [{"key": "k", "effect": "NoSchedule"}]})),
        node("other-driver", "z4", json!({})),
        node("not-registered", "z5", json!({})),
    ];
    let csi_nodes = [
        csi("a", "d"),
        csi("b", "d"),
        csi("c", "d"),
        csi("cordoned", "d"),
        csi("tainted", "d"),
        csi("other-driver", "x"),
    ];
    let found = usable(&nodes, &csi_nodes, "d");
    let late = of_class("late", true, "", "WaitForFirstConsumer");
    let shown: Vec<(String, String, usize)> = zones(&late, &found)
        .expect("zones")
        .into_iter()
        .map(|(place, nodes)| (place.suffix.clone(), place.zone(), nodes))
        .collect();
    assert_eq!(shown, [("-0".into(), "z1".into(), 2), ("-1".into(), "z2".into(), 1)]);
    let early = of_class("early", true, "", "Immediate");
    assert!(zones(&early, &found).is_err_and(|error| error.what.contains("Immediate")));
    assert!(zones(&late, &[BTreeMap::new()]).is_err_and(|error| error.remedy.contains("--zones")));
}
