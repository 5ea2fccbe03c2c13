//! Every release of every chart against the driver's own manifest of that version: equal, except where the chart says so.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a failing test should stop where it fails; the place of upstream manifests is told by the environment"
)]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vdo::chart::{self, Chart, Context, Source, compare};
use vdo::types::{Digest, DriverVersion};
use vdo::yaml;

#[path = "../examples/generate/matrix.rs"]
#[expect(dead_code, reason = "only the reader of chart folders is used here")]
mod matrix;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn source(driver: &str) -> Source {
    matrix::source(&root().join("charts").join(driver)).unwrap()
}

fn chart(source: &Source, version: &DriverVersion) -> Chart {
    chart::open(&chart::package(source, version).unwrap()).unwrap()
}

/// The drivers' own manifests, when this machine has them.
fn upstream() -> Option<PathBuf> {
    let path = std::env::var_os("VDO_UPSTREAM_DIR").map_or_else(|| root().join("../shared/upstream"), PathBuf::from);
    path.is_dir().then_some(path)
}

/// What the driver ships, and the values with which the chart renders it.
struct Shipped {
    driver: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
    values: Value,
}

fn shipped() -> [Shipped; 3] {
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
    ]
}

#[test]
fn releases_render_what_the_driver_ships() {
    let Some(upstream) = upstream() else {
        eprintln!("skipped: no upstream manifests; set VDO_UPSTREAM_DIR to a folder with them");
        return;
    };
    let mut compared = Vec::new();
    for what in shipped() {
        let source = source(what.driver);
        for version in source.versions() {
            let folder = upstream.join(what.folder).join(version.to_string());
            if !folder.is_dir() {
                continue;
            }
            let chart = chart(&source, &version);
            let original = manifests(&chart, &folder, what.files);
            let label = format!("{} with {}", chart.label(), what.values);
            assert_eq!(
                judged(&chart, &original, &what.values, &label),
                compare::Judgement::default(),
                "{label}"
            );
            compared.push(label);
        }
    }
    assert!(compared.len() >= 25, "compared only {compared:?}");
}

/// The objects of the driver's own files, which must be the files that the release names.
fn manifests(chart: &Chart, folder: &Path, files: &[&str]) -> Vec<Value> {
    let known = &chart.release.upstream.as_ref().unwrap().files;
    let read = |file: &&str| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let (_, digest) = known.iter().find(|(path, _)| path.ends_with(file)).unwrap();
        assert_eq!(
            Some(Digest::of(text.as_bytes()).hex()),
            *digest,
            "{}: {file} is not the one that was compared",
            chart.label()
        );
        yaml::load_all(&text).unwrap()
    };
    files.iter().flat_map(read).collect()
}

fn judged(chart: &Chart, original: &[Value], values: &Value, label: &str) -> compare::Judgement {
    let rendered = chart::render(chart, values, &Context::default()).unwrap();
    let differences = compare::compare(original, &rendered).unwrap();
    let effective = chart::values::effective(chart, values).unwrap();
    let intended = compare::applicable(&chart.deviations, &chart.metadata.version, &effective);
    let judgement = compare::judge(&differences, &intended);
    for difference in &judgement.unexpected {
        eprintln!("{label}: {difference}");
    }
    for deviation in &judgement.stale {
        eprintln!("{label}: listed, but not there: {} {}", deviation.object, deviation.path);
    }
    judgement
}

/// Upstream's manifests of one minor differ in image tags alone, except that CSI 3.7.1 changes the volume limit and CPI 1.25.1
/// moves the affinity, which the chart has in its place from 1.25.0 on. So a release whose manifest nobody has here is held by its
/// neighbour that was compared.
#[test]
fn patch_releases_differ_in_images_alone() {
    for what in shipped() {
        let source = source(what.driver);
        let mut minors: BTreeMap<(u64, u64, bool), (DriverVersion, Vec<Value>)> = BTreeMap::new();
        for version in source.versions() {
            let chart = chart(&source, &version);
            let mut objects = chart::render(&chart, &what.values, &Context::default()).unwrap();
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
fn the_misplaced_affinity_is_a_deviation_of_one_version() {
    let source = source("vsphere-cpi");
    for (version, stale) in [("1.25.0", 0), ("1.25.1", 3)] {
        let chart = chart(&source, &version.parse().unwrap());
        let rendered = chart::render(&chart, &Value::Null, &Context::default()).unwrap();
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
fn every_version_that_the_drivers_have_published_is_there() {
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
        "1.25: 4, 1.26: 3, 1.27: 1, 1.28: 2, 1.29: 3, 1.30: 3, 1.31: 2, 1.32: 3, 1.33: 2, 1.34: 1, 1.35: 2, 1.36: 1"
    );
    assert_eq!(
        count("vsphere-csi"),
        "2.7: 4, 3.0: 4, 3.1: 3, 3.2: 1, 3.3: 2, 3.4: 1, 3.5: 2, 3.6: 4, 3.7: 4"
    );
}
