// SPDX-License-Identifier: Apache-2.0
//! What `vdoctl chart` shows and packs.

use crate::{seen, snap, vdoctl};
use insta::assert_snapshot;

#[test]
fn chart_render_prints_yaml_documents() {
    let output = vdoctl(&["chart", "render", "cpi", "--version", "1.34.0"])
        .output()
        .expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).expect("text");
    let first: String = text.lines().take(12).map(|line| format!("{line}\n")).collect();
    assert_snapshot!("chart_render_begins", first);
    assert_eq!(vdo_api::yaml::load_all(&text).expect("YAML").len(), text.matches("---\n").count());
}

#[test]
fn chart_render_table_matches_snapshot() {
    snap(
        "chart_render_table",
        &["chart", "render", "vsphere-csi", "--version", "v3.7.3", "-o", "table"],
    );
}

#[test]
fn chart_images_with_registry_matches_snapshot() {
    snap(
        "chart_images",
        &[
            "chart",
            "images",
            "csi",
            "--version",
            "3.7.3",
            "--set",
            "images.registry=registry.example.com/m",
        ],
    );
}

#[test]
fn chart_images_json_matches_snapshot() {
    snap(
        "chart_images_json",
        &["chart", "images", "cpi", "--version", "1.34.0", "-o", "json"],
    );
}

#[test]
fn chart_values_last_file_or_set_flag_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let two = file("two.yaml", "images: {registry: two.example.com}\nlogLevel: 3\n");
    let registry = |arguments: &[&str], stdin: &str| {
        let mut command = vdoctl(&["chart", "images", "cpi", "--version", "1.34.0"]);
        let output = command.args(arguments).write_stdin(stdin).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout)
            .split('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(registry(&["-f", &two], ""), "two.example.com");
    assert_eq!(
        registry(&["-f", &two, "--set", "images.registry=three.example.com"], ""),
        "three.example.com"
    );
    assert_eq!(registry(&["-f", "-"], "images: {registry: four.example.com}"), "four.example.com");
}

#[test]
fn chart_set_flag_null_reaches_chart() {
    let gone = seen(vdoctl(&[
        "chart",
        "images",
        "cpi",
        "--version",
        "1.34.0",
        "--set",
        "images.registry=null",
    ]));
    assert!(gone.contains("must not be removed"), "a null reaches the chart: {gone}");
}

#[test]
fn chart_values_file_unreadable_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let bad = file("bad.yaml", "a: [");
    let list = file("list.yaml", "[a]");
    for (path, code, says) in [
        (bad.as_str(), 4, "line 1"),
        (&list, 4, "not a map"),
        ("/nowhere.yaml", 3, "/nowhere.yaml"),
    ] {
        let output = vdoctl(&["chart", "render", "csi", "--version", "3.7.3", "-f", path])
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{path}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(says), "{path}: {output:?}");
    }
}

#[test]
fn chart_unknown_driver_suggests_nearest() {
    snap("chart_wrong_driver", &["chart", "render", "vsphere-cis", "--version", "3.7.3"]);
}

#[test]
fn chart_unknown_version_suggests_nearest() {
    snap("chart_wrong_version", &["chart", "render", "csi", "--version", "3.7.9"]);
}

#[test]
fn chart_version_without_patch_matches_snapshot() {
    snap("chart_minor_only", &["chart", "render", "csi", "--version", "3.4"]);
}

#[test]
fn chart_unknown_value_suggests_nearest() {
    snap(
        "chart_wrong_value",
        &["chart", "render", "csi", "--version", "3.7.3", "--set", "controler.replicas=1"],
    );
}

#[test]
fn matrix_unknown_driver_suggests_nearest() {
    snap("matrix_wrong_driver", &["matrix", "list", "calico"]);
}

#[test]
fn chart_package_has_digest_of_matrix() {
    let output = vdoctl(&["chart", "package", "cpi", "--version", "1.34.0", "-o", "-", "--color", "always"])
        .output()
        .expect("it runs");
    let digest = vdo_api::types::Digest::of(&output.stdout).to_string();
    assert!(String::from_utf8_lossy(&output.stderr).contains(&digest), "{digest}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cpi.tgz");
    let same = vdoctl(&["chart", "package", "cpi", "--version", "1.34.0", "-o"])
        .arg(&path)
        .output()
        .expect("it runs");
    assert!(same.status.success() && same.stdout.is_empty());
    assert_eq!(std::fs::read(&path).expect("written"), output.stdout);
}
