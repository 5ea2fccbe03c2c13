// SPDX-License-Identifier: Apache-2.0
//! Publishing a matrix: what is written, what is refused, and what two publishers or a kill leave behind.

mod atomic;
mod checks;
pub(super) mod folder;

use super::schema::faults;
use super::{code, seen, vdoctl};
use folder::Publisher;
use serde_json::Value;
use std::fs;

/// The output of a command for programs.
fn json(arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
    let output = vdoctl(&arguments).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let parsed = serde_json::from_str(&text);
    assert!(parsed.is_ok(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    let document = parsed.expect("JSON");
    assert_eq!(faults(&document), [""; 0], "{arguments:?}");
    document
}

#[test]
fn publish_new_csi_version_is_listed_chosen_and_signed() {
    let publisher = Publisher::copy();
    let before = json(&["matrix", "verify", &publisher.matrix(), "--keys", &publisher.public()]);
    let package = publisher.csi_3_7_4();
    let published = json(&publisher.with(&["matrix", "publish", &package]));
    let version = &published["versions"][0];
    assert_eq!(
        (version["driver"].as_str(), version["version"].as_str()),
        (Some("vsphere-csi"), Some("3.7.4"))
    );
    assert_eq!(version["kubernetes"], serde_json::json!(["1.33", "1.34", "1.35"]), "{version}");
    assert_eq!(version["comparison"]["from"], "3.7.3");
    assert_eq!(
        version["comparison"]["added"],
        serde_json::json!(["ConfigMap vmware-system-csi/vsphere-csi-notes"]),
        "{version}"
    );
    assert_eq!(version["comparison"]["breaking"], serde_json::json!([]));
    let rights = version["rights"].as_array().expect("rights");
    assert!(
        rights
            .iter()
            .any(|right| right.as_str().is_some_and(|right| right.contains("vdo-operator"))),
        "{rights:?}"
    );

    let after = json(&["matrix", "verify", &publisher.matrix(), "--keys", &publisher.public()]);
    assert_ne!(before["digest"], after["digest"]);
    assert_eq!(code(&["matrix", "lint", &publisher.matrix()]), 0);
    let chosen = json(&[
        "matrix",
        "resolve",
        "--kubernetes",
        "1.33",
        "--vcenter",
        "8.0.3",
        "--matrix",
        &publisher.matrix(),
    ]);
    let csi = chosen["drivers"]
        .as_array()
        .expect("drivers")
        .iter()
        .find(|driver| driver["name"] == "vsphere-csi");
    assert_eq!(csi.expect("csi")["version"], "3.7.4");
    let entry = &json(&["matrix", "show", "csi", "3.7.4", "--matrix", &publisher.matrix()])["entry"];
    assert_eq!(
        entry["kubernetes"]["confidence"], "unverified",
        "what was taken over rests on nothing: {entry}"
    );
}

#[test]
fn publish_raises_version_and_dates_and_keeps_the_time_that_it_is_good() {
    let publisher = Publisher::toy();
    let index =
        |publisher: &Publisher| json(&publisher.with(&["matrix", "deprecate", "toy", "1.0.0", "--reason", "old"]))["matrix"].clone();
    let (first, second) = (
        index(&publisher),
        json(&publisher.with(&["matrix", "withdraw", "toy", "1.0.0", "--reason", "bad"]))["matrix"].clone(),
    );
    assert_eq!(first["version"].as_u64().map(|version| version + 1), second["version"].as_u64());
    let time = |matrix: &Value, field: &str| -> jiff::Timestamp { matrix[field].as_str().expect("a time").parse().expect("a time") };
    let span = |matrix: &Value| time(matrix, "expires").duration_since(time(matrix, "generated"));
    assert_eq!(span(&first), span(&second));
    assert!(time(&second, "generated") >= time(&first, "generated"));
    let third = &json(&publisher.with(&["matrix", "deprecate", "toy", "1.0.0", "--reason", "old", "--valid-for", "10d"]))["matrix"];
    assert_eq!(span(third), jiff::SignedDuration::from_hours(240));
}

#[test]
fn publish_dry_run_shows_the_difference_and_writes_nothing() {
    let publisher = Publisher::toy();
    let before = publisher.files();
    let package = publisher.toy_package("1.1.0", "apps/v1", "toy", "");
    let shown = seen(vdoctl(&publisher.with(&[
        "matrix",
        "publish",
        &package,
        "--kubernetes",
        "1.33..1.35",
        "--vsphere",
        "7.0..",
        "--dry-run",
    ])));
    assert!(shown.starts_with("exit 0"), "{shown}");
    for words in [
        "+    - version: \"1.1.0\"",
        "would be published: matrix version",
        "toy 1.1.0: 1 image",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(publisher.files(), before);
    let shown = seen(vdoctl(&publisher.with(&[
        "matrix",
        "withdraw",
        "toy",
        "1.0.0",
        "--reason",
        "loses volumes",
        "--dry-run",
    ])));
    assert!(
        shown.contains("+        reason: loses volumes") && shown.contains("would be withdrawn"),
        "{shown}"
    );
    assert_eq!(publisher.files(), before);
}

#[test]
fn publish_version_that_is_there_changes_nothing_and_other_content_is_refused() {
    let publisher = Publisher::toy();
    let before = publisher.files();
    let same = publisher.toy_package("1.0.0", "apps/v1", "toy", "");
    let flags = ["--kubernetes", "1.33..1.35", "--vsphere", "7.0.."];
    let shown = seen(vdoctl(&publisher.with(&[&["matrix", "publish", &same], &flags[..]].concat())));
    assert!(shown.starts_with("exit 0") && shown.contains("nothing to publish"), "{shown}");
    let other = publisher.toy_package("1.0.0", "apps/v1", "toy", "  extra: yes\n");
    let shown = seen(vdoctl(&publisher.with(&[&["matrix", "publish", &other], &flags[..]].concat())));
    assert!(
        shown.starts_with("exit 4") && shown.contains("a published version is never changed"),
        "{shown}"
    );
    assert_eq!(publisher.files(), before);
}

#[test]
fn publish_signed_matrix_without_its_key_is_refused() {
    let publisher = Publisher::toy();
    let before = publisher.files();
    let unsigned = ["matrix", "withdraw", "toy", "1.0.0", "--reason", "bad", "--to", &publisher.matrix()];
    let shown = seen(vdoctl(&unsigned));
    assert!(shown.starts_with("exit 2") && shown.contains("--key-file"), "{shown}");
    let other = Publisher::toy();
    let shown = seen(vdoctl(&[&unsigned[..], &["--key-file", &other.key()]].concat()));
    assert!(
        shown.starts_with("exit 4") && shown.contains("is not signed by this key"),
        "{shown}"
    );
    assert_eq!(publisher.files(), before);
}

#[test]
fn publish_withdrawn_version_is_left_and_the_reason_is_shown() {
    let publisher = Publisher::copy();
    let old = Publisher::copy();
    let marked = json(&publisher.with(&["matrix", "withdraw", "csi", "3.7.3", "--reason", "loses volumes", "--use", "3.7.2"]));
    assert_eq!(
        (marked["driver"].as_str(), marked["state"].as_str()),
        (Some("vsphere-csi"), Some("withdrawn"))
    );
    let installed = [
        "--kubernetes",
        "1.33",
        "--vcenter",
        "8.0.3",
        "--installed",
        "csi=3.7.3,cpi=1.33.1",
        "--matrix",
        &publisher.matrix(),
    ];
    let chosen = json(&[&["matrix", "resolve"], &installed[..]].concat());
    let csi = chosen["drivers"]
        .as_array()
        .expect("drivers")
        .iter()
        .find(|driver| driver["name"] == "vsphere-csi")
        .expect("csi")
        .clone();
    assert_eq!(csi["version"], "3.7.2", "{csi}");
    assert!(csi["leaves"].as_str().is_some_and(|why| why.contains("loses volumes")), "{csi}");

    let diff = json(&[
        "matrix",
        "diff",
        &old.matrix(),
        &publisher.matrix(),
        "--kubernetes",
        "1.33",
        "--vcenter",
        "8.0.3",
    ]);
    assert_eq!(diff["versions"][0]["changes"][0], "is withdrawn: loses volumes");
    let moves: Vec<String> = diff["choices"]
        .as_array()
        .expect("choices")
        .iter()
        .map(|choice| {
            format!(
                "{} {} {}",
                choice["cluster"].as_str().unwrap_or_default(),
                choice["old"],
                choice["new"]
            )
        })
        .collect();
    assert_eq!(
        moves,
        [
            "new \"3.7.3\" \"3.7.2\"",
            "installed, Compatible \"3.7.3\" \"3.7.2\"",
            "installed, Latest \"3.7.3\" \"3.7.2\""
        ]
    );
    assert_eq!(code(&["matrix", "diff", &old.matrix(), &old.matrix()]), 0);
    assert_eq!(code(&["matrix", "diff", &old.matrix(), &publisher.matrix()]), 1);
}

#[test]
fn publish_withdrawn_version_that_is_not_listed_is_refused() {
    let publisher = Publisher::toy();
    for (arguments, exit, said) in [
        (&["toy", "9.9.9"][..], "exit 4", "toy has no version 9.9.9"),
        (&["nothing", "1.0.0"], "exit 3", "nothing"),
        (&["toy", "1.0.0", "--use", "9.9.9"], "exit 4", "9.9.9"),
    ] {
        let line = [&["matrix", "withdraw"], arguments, &["--reason", "bad"]].concat();
        let shown = seen(vdoctl(&publisher.with(&line)));
        assert!(shown.starts_with(exit) && shown.contains(said), "{arguments:?}: {shown}");
    }
}

#[test]
fn publish_into_what_is_no_matrix_is_refused() {
    let publisher = Publisher::toy();
    let package = publisher.toy_package("1.1.0", "apps/v1", "toy", "");
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    let publish = |to: &str| {
        seen(vdoctl(&[
            "matrix",
            "publish",
            &package,
            "--to",
            to,
            "--kubernetes",
            "1.33..1.35",
            "--vsphere",
            "7.0..",
        ]))
    };
    let nowhere = publish(&format!("{place}/nowhere"));
    assert!(nowhere.starts_with("exit 3") && nowhere.contains("vdoctl matrix init"), "{nowhere}");
    for (content, said) in [
        ("<html>log in</html>", "not a matrix index"),
        ("CSI: {}\nCPI: {}\n", "original operator"),
        (
            "apiVersion: vdo.vmware.com/matrix/v2\nkind: CompatibilityMatrix\nversion: 1\ndrivers: {}\n",
            "matrix/v2",
        ),
    ] {
        fs::write(folder.path().join("index.yaml"), content).expect("written");
        let shown = publish(&place);
        assert!(shown.starts_with("exit 4") && shown.contains(said), "{content}: {shown}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
    let web = publish("https://vdo.example.com/index.yaml");
    assert!(web.starts_with("exit 2") && web.contains("cannot be published"), "{web}");
}

#[test]
fn init_of_a_folder_with_something_in_it_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("precious"), "x").expect("written");
    let place = folder.path().display().to_string();
    let shown = seen(vdoctl(&["matrix", "init", &place, "--empty"]));
    assert!(shown.starts_with("exit 4") && shown.contains("is not an empty folder"), "{shown}");
    let inside = format!("{place}/new matrix");
    assert_eq!(code(&["matrix", "init", &inside, "--empty"]), 0);
    assert_eq!(code(&["matrix", "lint", &inside]), 0);
    assert_eq!(code(&["matrix", "init", &inside, "--empty"]), 4);
}
