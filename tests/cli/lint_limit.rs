// SPDX-License-Identifier: Apache-2.0
//! `chart lint` and `matrix lint` of what others have written: a child process whose memory is limited does the work.

use crate::compare::{seen, toy};
use crate::vdoctl;
use serde_json::{Value, json};
use std::path::Path;

/// A toy whose list holds itself twice, thirty times over, and becomes text: a terabyte.
fn endless(folder: &Path) {
    let twice = "{% set s = [s, s] %}".repeat(30);
    let template = format!("{{% set s = ['{}'] %}}{twice}\nx: {{{{ s ~ '' }}}}\n", "a".repeat(1000));
    toy(folder, &[("templates/endless.yaml", &template)]);
}

#[test]
fn lint_of_template_that_takes_memory_without_end_names_the_package() {
    let folder = tempfile::tempdir().expect("a folder");
    let chart = folder.path().join("charts/toy");
    endless(&chart);
    let place = chart.display().to_string();
    let (code, data, talk) = seen(vdoctl(&["chart", "lint", &place]));
    let expected = format!("error: chart lint needed more than 512 MiB of memory for {place}\n");
    assert!(
        code == Some(1) && data.is_empty() && talk.starts_with(&expected),
        "{code:?} {data} {talk}"
    );

    let charts = folder.path().join("charts").display().to_string();
    let package = folder.path().join("toy-1.0.0.tgz");
    let to = package.display().to_string();
    let made = seen(vdoctl(&[
        "chart",
        "package",
        "toy",
        "--charts",
        &charts,
        "--version",
        "1.0.0",
        "-o",
        &to,
    ]));
    assert_eq!(made.0, Some(0), "{made:?}");

    let digest = vdo_api::types::Digest::of(&std::fs::read(&package).expect("the package"));
    let version = json!({"version": "1.0.0", "chart": {"urls": ["toy-1.0.0.tgz"], "sha256": digest.hex()},
        "kubernetes": {"confidence": "primary"}, "vsphere": {"confidence": "primary"}});
    let index = json!({"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1,
        "drivers": {"toy": {"role": "other", "versions": [version]}}});
    let file = folder.path().join("index.yaml");
    std::fs::write(&file, index.to_string()).expect("written");
    let file = file.display().to_string();
    let (code, data, talk) = seen(vdoctl(&["matrix", "lint", &file]));
    let expected = format!("error: matrix lint needed more than 512 MiB of memory for {file}\n");
    assert!(
        code == Some(1) && data.is_empty() && talk.starts_with(&expected),
        "{code:?} {data} {talk}"
    );
}

/// What the child says is shown once, in the same words and formats, and with its exit code.
#[test]
fn lint_in_a_process_of_its_own_answers_as_before() {
    let folder = tempfile::tempdir().expect("a folder");
    toy(folder.path(), &[("templates/a.yaml", "x: {{ values.namspace }}\n")]);
    let place = folder.path().display().to_string();
    let (code, data, talk) = seen(vdoctl(&["chart", "lint", &place, "-o", "json"]));
    let document: Value = serde_json::from_str(&data).expect("JSON, once");
    assert_eq!((code, talk.as_str(), &document["good"]), (Some(1), "", &Value::from(false)));
    let mut colourful = vdoctl(&["chart", "lint", "/nowhere", "--color", "always"]);
    colourful.env_remove("NO_COLOR");
    let (code, data, talk) = seen(colourful);
    assert!(
        code == Some(3) && data.is_empty() && talk.starts_with("\u{1b}["),
        "{code:?} {talk:?}"
    );
    assert_eq!(
        (talk.matches("error:").count(), talk.matches("/nowhere").count()),
        (1, 1),
        "{talk:?}"
    );
}
