// SPDX-License-Identifier: Apache-2.0
//! Every release of every chart against the driver's own manifest of that version: equal, except for the chart's listed deviations.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::types::DriverVersion;
use vdo_api::yaml;
use vdo_core::chart::{self, Chart, add_release, compare};

use crate::fixture::{release, render, source};
use crate::sample::upstream;

/// What the driver ships, and the values with which the chart renders it.
struct Shipped {
    driver: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
    values: Value,
}

fn shipped() -> [Shipped; 5] {
    let csi = |files, values| Shipped {
        driver: "vsphere-csi",
        folder: "vsphere-csi-driver",
        files,
        values,
    };
    [
        Shipped {
            driver: "vsphere-cpi",
            folder: "cloud-provider-vsphere",
            files: &["vsphere-cloud-controller-manager.yaml"],
            values: json!({}),
        },
        csi(&["namespace.yaml", "vsphere-csi-driver.yaml"], json!({})),
        csi(
            &["namespace.yaml", "vsphere-csi-driver.yaml", "validatingwebhook.yaml"],
            json!({"webhook": {"enabled": true, "caBundle": "Q0E="}}),
        ),
        Shipped {
            driver: "antrea",
            folder: "antrea",
            files: &["antrea.yml"],
            values: json!({}),
        },
        Shipped {
            driver: "snapshot-controller",
            folder: "external-snapshotter",
            files: &[
                "groupsnapshot.storage.k8s.io_volumegroupsnapshotclasses.yaml",
                "groupsnapshot.storage.k8s.io_volumegroupsnapshotcontents.yaml",
                "groupsnapshot.storage.k8s.io_volumegroupsnapshots.yaml",
                "rbac-snapshot-controller.yaml",
                "setup-snapshot-controller.yaml",
                "snapshot.storage.k8s.io_volumesnapshotclasses.yaml",
                "snapshot.storage.k8s.io_volumesnapshotcontents.yaml",
                "snapshot.storage.k8s.io_volumesnapshots.yaml",
            ],
            values: json!({}),
        },
    ]
}

/// Needs no file of the driver: its objects are recorded as digests in the release files.
#[test]
fn chart_release_renders_like_recorded_upstream_objects() {
    let mut compared = Vec::new();
    for what in shipped() {
        let source = source(what.driver);
        for version in source.versions() {
            let chart = release(&source, &version);
            let recorded = &chart.release.upstream.as_ref().unwrap().objects;
            if recorded.is_empty() {
                continue;
            }
            let label = format!("{} with {}", chart.label(), what.values);
            let is = |path: &str, file: &str| path.rsplit('/').next() == Some(file);
            let of_file = |file: &&str| recorded.iter().find(|(path, _)| is(path, file)).unwrap().1.clone();
            let shipped: BTreeMap<String, String> = what.files.iter().flat_map(of_file).collect();
            let found = without_deviations(&chart, &what.values);
            let found: BTreeMap<String, String> = found
                .iter()
                .map(|object| (add_release::name(object), add_release::digest(object)))
                .collect();
            let absent = intended(&chart, &what.values)
                .into_iter()
                .filter(|d| d.path.is_empty() && d.kind == compare::Kind::Absent);
            let absent: BTreeMap<String, String> = absent
                .map(|d| (d.object.to_string(), shipped[&d.object.to_string()].clone()))
                .collect();
            let found: BTreeMap<String, String> = found.into_iter().chain(absent).collect();
            if found != shipped {
                let (name, wrong) = found
                    .iter()
                    .chain(&shipped)
                    .find(|(name, _)| found.get(*name) != shipped.get(*name))
                    .unwrap();
                panic!(
                    "{label}: {name} ({wrong}) is not what the driver ships\n{}",
                    differences(&chart, what.folder, what.files, &what.values)
                );
            }
            compared.push(label);
        }
    }
    assert!(compared.len() >= 25, "compared only {compared:?}");
}

/// The intended differences, which must say what the original has.
fn intended(chart: &Chart, values: &Value) -> Vec<compare::Deviation> {
    let effective = chart::values::effective(chart, values).unwrap();
    compare::applicable(&chart.deviations, &chart.metadata.version, &effective)
}

/// What the chart renders, with every intended difference undone.
fn without_deviations(chart: &Chart, values: &Value) -> Vec<Value> {
    let mut objects = render(chart, values);
    for deviation in intended(chart, values) {
        let name = deviation.object.to_string();
        let at = objects.iter().position(|object| add_release::name(object) == name);
        match (deviation.path.as_str(), deviation.kind) {
            ("", compare::Kind::Absent) => assert_eq!(at, None, "{name} is not left out"),
            ("", _) => drop(objects.remove(at.unwrap())),
            (path, kind) => {
                let (parent, key) = path.rsplit_once('/').unwrap();
                let parent = objects[at.unwrap()].pointer_mut(parent).unwrap().as_object_mut().unwrap();
                let before = match kind {
                    compare::Kind::Added => parent.shift_remove(key),
                    _ => parent.insert(key.to_owned(), deviation.original.clone().unwrap()),
                };
                assert_ne!(before, deviation.original, "{name} {path} does not deviate");
            }
        }
    }
    objects
}

/// Field by field, where the driver's manifests are available.
fn differences(chart: &Chart, folder: &str, files: &[&str], values: &Value) -> String {
    let Some(manifests) = upstream() else {
        return "set VDO_UPSTREAM_DIR to a folder with the drivers' own manifests to see it field by field".into();
    };
    let folder = manifests.join(folder).join(chart.metadata.version.to_string());
    let read = |file: &&str| yaml::load_all(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap();
    let original: Vec<Value> = files.iter().flat_map(read).collect();
    let rendered = render(chart, values);
    let found = compare::judge(&compare::compare(&original, &rendered).unwrap(), &intended(chart, values));
    let unexpected = found.unexpected.iter().map(ToString::to_string);
    let stale = found
        .stale
        .iter()
        .map(|d| format!("listed, but not there: {} {}", d.object, d.path));
    unexpected.chain(stale).collect::<Vec<_>>().join("\n")
}

/// Upstream's manifests of one minor differ in image tags alone, except that CSI 3.7.1 changes the volume limit and CPI 1.25.1
/// moves the affinity, which the chart has in its place from 1.25.0 on. So a release whose manifest no one has here is held by its
/// neighbour that was compared.
#[test]
fn chart_patch_releases_differ_only_in_images() {
    for what in shipped() {
        let source = source(what.driver);
        let mut minors: BTreeMap<(u64, u64, bool), (DriverVersion, Vec<Value>)> = BTreeMap::new();
        for version in source.versions() {
            let chart = release(&source, &version);
            let mut objects = render(&chart, &what.values);
            objects.iter_mut().for_each(without_images);
            let parts: Vec<u64> = version.to_string().split('.').map(|part| part.parse().unwrap()).collect();
            let first = minors
                .entry((parts[0], parts[1], version.to_string() == "3.7.0"))
                .or_insert_with(|| (version.clone(), objects.clone()));
            assert_eq!(first.1, objects, "{}: {} and {version}", what.driver, first.0);
        }
    }
}

fn without_images(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("image");
            fields.values_mut().for_each(without_images);
        }
        Value::Array(items) => items.iter_mut().for_each(without_images),
        _ => {}
    }
}

/// The affinity of 1.25.0 as the driver ships it, written down here because few machines have that file.
#[test]
fn chart_misplaced_affinity_is_deviation_of_one_version() {
    let source = source("vsphere-cpi");
    for (version, stale) in [("1.25.0", 0), ("1.25.1", 3)] {
        let chart = release(&source, &version.parse().unwrap());
        let rendered = render(&chart, Value::Null);
        let mut original = rendered.clone();
        let pod = original
            .iter_mut()
            .find(|object| object["kind"] == "DaemonSet")
            .map(|object| &mut object["spec"]["template"]["spec"])
            .unwrap();
        let affinity = pod.as_object_mut().unwrap().shift_remove("affinity").unwrap();
        pod["nodeAffinity"] = affinity["nodeAffinity"].clone();
        pod["volumes"][0]["configMap"]["affinity"] = Value::Null;
        let differences = compare::compare(&original, &rendered).unwrap();
        let intended = compare::applicable(&chart.deviations, &chart.metadata.version, &chart.values);
        assert_eq!(compare::judge(&differences, &intended).unexpected.len(), stale, "{version}");
    }
}

#[test]
fn chart_versions_published_upstream_are_complete() {
    let count = |driver: &str| {
        let mut minors: BTreeMap<String, u32> = BTreeMap::new();
        for version in source(driver).versions() {
            let minor = version.to_string().rsplit_once('.').unwrap().0.to_owned();
            *minors.entry(minor).or_default() += 1;
        }
        minors
            .into_iter()
            .map(|(minor, patches)| format!("{minor}: {patches}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(
        count("vsphere-cpi"),
        "1.25: 4, 1.26: 3, 1.27: 1, 1.28: 2, 1.29: 3, 1.30: 3, 1.31: 2, 1.32: 3, 1.33: 2, 1.34: 1, 1.35: 2, 1.36: 1, 1.37: 1"
    );
    assert_eq!(
        count("vsphere-csi"),
        "2.7: 4, 3.0: 4, 3.1: 3, 3.2: 1, 3.3: 2, 3.4: 1, 3.5: 2, 3.6: 5, 3.7: 4, 3.8: 1"
    );
    assert_eq!(count("antrea"), "2.6: 1, 2.7: 1");
    assert_eq!(count("snapshot-controller"), "8.2: 1, 8.6: 1");
}
