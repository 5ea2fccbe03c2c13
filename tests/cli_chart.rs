//! `vdoctl chart compare`, and charts that are not in vdoctl: how a new release of a driver is taken in.

use assert_cmd::Command;
use insta::assert_snapshot;
use serde_json::Value;
use std::path::Path;

fn vdoctl(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("vdoctl").expect("vdoctl is built with the tests");
    command.env_clear().args(arguments);
    command
}

/// Exit code, stdout and stderr.
fn seen(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// What the chart itself renders, as a manifest to compare it with.
fn rendered(arguments: &[&str]) -> String {
    let (code, text, error) = seen(vdoctl(&[&["chart", "render"], arguments].concat()));
    assert_eq!(code, Some(0), "{error}");
    text
}

#[test]
fn what_differs_is_shown_and_what_is_intended_is_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let compare = |arguments: &[&str], manifest: &str| {
        let path = folder.path().join("manifest.yaml");
        std::fs::write(&path, manifest).expect("written");
        let mut command = vdoctl(&[&["chart", "compare"], arguments].concat());
        command.arg(&path);
        seen(command)
    };
    let csi = ["csi", "--version", "3.7.3"];
    let own = rendered(&csi);
    let (code, data, talk) = compare(&csi, &own);
    assert_eq!((code, data.as_str()), (Some(0), ""));
    assert_eq!(
        talk,
        "vsphere-csi 3.7.3: 15 objects compared with 15 of the driver: 0 differences, 0 of them intended\n"
    );
    // The order of documents means nothing.
    let reversed: Vec<&str> = own.split("---\n").collect::<Vec<_>>().into_iter().rev().collect();
    assert_eq!(compare(&csi, &reversed.join("---\n")).0, Some(0));

    let changed = own.replacen("replicas: 3", "replicas: 5", 1) + "---\n{apiVersion: v1, kind: Service, metadata: {name: new}}\n";
    let (code, data, talk) = compare(&csi, &changed);
    assert_eq!(code, Some(1));
    assert_snapshot!("compare_changed", format!("{data}{talk}"));
    let (code, data, _) = compare(&["csi", "--version", "3.7.3", "-o", "json"], &changed);
    let document: Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!((code, &document["kind"]), (Some(1), &Value::from("ChartComparison")));
    assert_eq!(document["differences"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["differences"][0]["intended"], false);

    // The deviations of the cloud provider are not there when it is compared with itself.
    let cpi = ["cpi", "--version", "1.34.0"];
    let (code, data, talk) = compare(&cpi, &rendered(&cpi));
    assert_eq!(code, Some(1));
    assert_snapshot!("compare_stale", format!("{data}{talk}"));

    let webhook = [
        "csi",
        "--version",
        "3.7.3",
        "--set",
        "webhook.enabled=true",
        "--set",
        "webhook.caBundle=Q0E=",
    ];
    let (code, data, _) = compare(&webhook, &rendered(&webhook).replace("Q0E=", "${CA_BUNDLE}"));
    assert_eq!(code, Some(0));
    assert_snapshot!("compare_intended", data);
}

#[test]
fn what_cannot_be_compared_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (list, bad) = (file("list.yaml", "- a\n"), file("bad.yaml", "a: ["));
    for (path, code, says) in [
        (list.as_str(), 4, "document 1 is not a Kubernetes object: it is not a map"),
        (&bad, 4, "line 1"),
        ("/nowhere.yaml", 3, "/nowhere.yaml"),
    ] {
        let (found, data, talk) = seen(vdoctl(&["chart", "compare", "csi", "--version", "3.7.3", path]));
        assert_eq!((found, data.as_str()), (Some(code), ""), "{talk}");
        assert!(talk.contains(says), "{talk}");
    }
    assert_eq!(seen(vdoctl(&["chart", "compare", "csi", "--version", "3.7.3"])).0, Some(2));
}

#[test]
fn a_release_that_vdoctl_does_not_know_comes_from_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/vsphere-cpi");
    let target = folder.path().join("vsphere-cpi");
    for part in ["templates", "releases"] {
        std::fs::create_dir_all(target.join(part)).expect("made");
        for entry in std::fs::read_dir(charts.join(part)).expect("a folder") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), target.join(part).join(entry.file_name())).expect("copied");
        }
    }
    for file in ["Chart.yaml", "values.yaml", "values.schema.json", "deviations.yaml"] {
        std::fs::copy(charts.join(file), target.join(file)).expect("copied");
    }
    let newest = std::fs::read_to_string(charts.join("releases/1.36.0.yaml")).expect("text");
    std::fs::write(target.join("releases/1.99.0.yaml"), newest.replace("1.36.0", "1.99.0")).expect("written");
    let place = folder.path().display().to_string();
    let (code, data, talk) = seen(vdoctl(&["chart", "images", "cpi", "--version", "1.99.0", "--charts", &place]));
    assert_eq!(
        (code, data.as_str()),
        (Some(0), "registry.k8s.io/cloud-pv-vsphere/cloud-provider-vsphere:v1.99.0\n"),
        "{talk}"
    );
    let (code, _, talk) = seen(vdoctl(&["chart", "images", "cpi", "--version", "1.98.0", "--charts", &place]));
    assert_eq!(code, Some(4), "{talk}");
    assert!(talk.contains("the chart has no release 1.98.0"), "{talk}");
    let (code, _, talk) = seen(vdoctl(&["chart", "images", "other", "--version", "1.0.0", "--charts", &place]));
    assert_eq!(code, Some(3), "{talk}");
}
