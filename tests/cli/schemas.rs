// SPDX-License-Identifier: Apache-2.0
//! The documents that verbs print are what their schemas say.

use super::matrix::EDGES;
use super::{FROZEN, vdoctl};
use crate::schema::{faults, faults_of};
use serde_json::Value;
use std::collections::BTreeSet;

const PLATFORM: [&str; 4] = ["--kubernetes", "1.34", "--vcenter", "8.0.3"];

/// The document that a command line prints.
fn document(words: &str, more: &[&str]) -> Value {
    let line: Vec<&str> = words.split(' ').chain(more.iter().copied()).chain(["-o", "json"]).collect();
    let output = vdoctl(&line).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let parsed = serde_json::from_str(&text);
    assert!(parsed.is_ok(), "{line:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    parsed.expect("JSON")
}

#[test]
fn documents_of_verbs_without_a_cluster_fit_their_schemas() {
    let frozen = ["--matrix", FROZEN];
    let asked = [&frozen[..], &PLATFORM].concat();
    let nothing = [&frozen[..], &["--kubernetes", "1.20", "--vcenter", "8.0.3"]].concat();
    let steps = [&["--matrix", EDGES, "--installed", "csi=3.0.0"][..], &PLATFORM].concat();
    let mut kinds = BTreeSet::new();
    for (words, more) in [
        ("version --client", &[][..]),
        ("explain", &[]),
        ("explain PasswordExpired", &[]),
        ("explain StorageReady", &[]),
        ("explain 6", &[]),
        ("matrix list", &frozen),
        ("matrix show csi 3.7.3", &frozen),
        ("matrix resolve", &asked),
        ("matrix resolve", &nothing),
        ("matrix resolve", &steps),
        ("matrix resolve --what-if-kubernetes 1.36", &asked),
        ("matrix explain", &asked),
        ("matrix explain", &nothing),
        ("matrix explain", &steps),
        ("matrix why-not csi 3.5.1", &asked),
        ("matrix diff", &[FROZEN, EDGES]),
        ("matrix lint", &[FROZEN]),
        ("chart images cpi --version 1.34.0", &[]),
    ] {
        let document = document(words, more);
        assert_eq!(faults(&document), [""; 0], "{words}");
        kinds.insert(document["kind"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(kinds.len(), 14, "{kinds:?}");
}

#[test]
fn schema_refuses_what_is_not_its_document() {
    let mut list = document("matrix list", &["--matrix", FROZEN]);
    list["versions"][0]["state"]["word"] = 1.into();
    assert_eq!(faults(&list).len(), 1);
    list["matrix"].as_object_mut().expect("a matrix").remove("decidedBy");
    assert_eq!(faults_of(&format!("{list}\n{list}")).len(), 4);
}
