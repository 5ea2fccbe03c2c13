// SPDX-License-Identifier: Apache-2.0
//! PodDisruptionBudgets of the controllers: a drain takes one pod of several, and a single one is not in its way.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test should stop where it fails")]

use crate::fixture::{find, release, render, source};
use serde_json::{Value, json};

/// The budget of a Deployment, which is of its name.
fn budget<'a>(objects: &'a [Value], name: &str) -> Option<&'a Value> {
    let mut named = objects.iter().filter(|object| object["metadata"]["name"] == name);
    named.find(|object| object["kind"] == "PodDisruptionBudget")
}

/// Whether the budget is about the pods of the Deployment, and lets one of them go.
fn keeps_the_others(objects: &[Value], name: &str) -> bool {
    let deployment = find(objects, "Deployment", name);
    budget(objects, name).is_some_and(|budget| {
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        let selected = budget["spec"]["selector"]["matchLabels"].as_object().unwrap();
        let selects = !selected.is_empty() && selected.iter().all(|(key, value)| labels[key] == *value);
        selects && budget["metadata"]["namespace"] == deployment["metadata"]["namespace"] && budget["spec"]["maxUnavailable"] == 1
    })
}

#[test]
fn drain_of_every_csi_release_takes_one_controller_of_several_and_a_single_one() {
    let name = "vsphere-csi-controller";
    let source = source("vsphere-csi");
    for version in source.versions() {
        let chart = release(&source, &version);
        for (replicas, switched_on, expected) in [(1, true, false), (2, true, true), (3, true, true), (3, false, false)] {
            let values = json!({"controller": {"replicas": replicas}, "podDisruptionBudgets": switched_on});
            let objects = render(&chart, values);
            assert_eq!(find(&objects, "Deployment", name)["spec"]["replicas"], replicas, "{version}");
            let case = format!("{version}, {replicas} replicas, {switched_on}");
            assert_eq!(budget(&objects, name).is_some(), expected, "{case}");
            assert_eq!(keeps_the_others(&objects, name), expected, "{case}");
        }
    }
}

/// The number of snapshot controllers is the release's own, and always several.
#[test]
fn drain_of_every_snapshot_controller_release_takes_one_of_several() {
    let name = "snapshot-controller";
    let source = source(name);
    for version in source.versions() {
        let chart = release(&source, &version);
        let objects = render(&chart, json!({"podDisruptionBudgets": true}));
        let replicas = find(&objects, "Deployment", name)["spec"]["replicas"].as_u64();
        assert!(replicas.is_some_and(|replicas| replicas > 1), "{version}: {replicas:?}");
        assert!(keeps_the_others(&objects, name), "{version}: {objects:#?}");
        let without = render(&chart, json!({"podDisruptionBudgets": false}));
        assert!(budget(&without, name).is_none(), "{version}");
    }
}
