// SPDX-License-Identifier: Apache-2.0
//! Tests `vdo-release matrix`: the folder is complete, reproducible, and signed with the key in VDO_SIGNING_KEY.

use super::{done, root, text};
use std::fs;
use std::path::Path;
use std::process::Command;
use vdo_core::matrix::Index;
use vdo_source::fetch::{Access, MatrixSource};
use vdo_source::signature::PublicKeys;

fn files(folder: &Path, below: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = format!("{below}{}", path.file_name().expect("a name").to_string_lossy());
        match path.is_dir() {
            true => all.extend(files(&path, &format!("{name}/"))),
            false => all.push((name, fs::read(&path).expect("a file"))),
        }
    }
    all.sort();
    all
}

#[test]
fn matrix_folder_is_complete_and_the_same_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (folder.path().join("one"), folder.path().join("the other"));
    for place in [&one, &two] {
        let said = done(&["matrix", "--output", text(place)]);
        assert!(said.contains("NOT signed"), "{said}");
    }
    let found = files(&one, "");
    assert_eq!(found, files(&two, ""));
    let index = found.iter().find(|(name, _)| name == "index.yaml").expect("an index");
    let index = Index::parse(&index.1).expect("an index");
    let source = MatrixSource::Local(one.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let entries = index.drivers.values().flat_map(|driver| &driver.versions);
    let mut charts = 0;
    for entry in entries {
        // Of the folder, and not of the program.
        assert!(one.join(&entry.chart.urls[0]).is_file(), "{:?}", entry.chart.urls);
        runtime.block_on(source.chart(&Access::default(), &entry.chart)).expect("its chart");
        charts += 1;
    }
    assert_eq!(found.len(), charts + 2, "charts, index and sums");
    let sums = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(&one)
        .output();
    let sums = sums.expect("sha256sum");
    assert!(sums.status.success(), "{}", String::from_utf8_lossy(&sums.stdout));
    let listed = fs::read_to_string(one.join("SHA256SUMS")).expect("sums").lines().count();
    assert_eq!(listed, charts + 1);
}

#[test]
fn matrix_folder_with_a_key_is_signed_in_both_forms() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = rcgen::KeyPair::generate().expect("a key");
    let place = folder.path().join("matrix");
    let output = Command::new(env!("CARGO_BIN_EXE_vdo-release"))
        .args(["matrix", "--output", text(&place)])
        .current_dir(root())
        .env("VDO_SIGNING_KEY", key.serialize_pem())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let keys = PublicKeys::parse(key.public_key_pem().as_bytes()).expect("a key");
    let index = fs::read(place.join("index.yaml")).expect("an index");
    for name in ["index.yaml.sig", "index.yaml.sigstore.json"] {
        let signature = fs::read(place.join(name)).expect(name);
        keys.verify(&index, Some(&signature)).expect(name);
    }
}
