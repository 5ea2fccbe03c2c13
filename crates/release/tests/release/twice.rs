// SPDX-License-Identifier: Apache-2.0
//! Tests `make release`: two builds of one commit give the same signed bytes, and each program starts on its processor.

use crate::{root, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use vdo_source::signature::PublicKeys;

const TEST: &str = "release_built_twice_is_the_same_and_its_programs_start";

/// Runs a command to its end and returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Builds the release of a repository's current commit in a folder of this name, with a target folder of its own, signed with the key;
/// what the script printed, and every file of the release and of the image.
fn built(repository: &Path, base: &Path, name: &str, key: &rcgen::KeyPair) -> (String, BTreeMap<String, Vec<u8>>) {
    let (source, target) = (base.join(name), base.join(format!("{name} target")));
    run(Command::new("git").args(["clone", "--quiet"]).arg(repository).arg(&source));
    let mut command = Command::new("bash");
    command.arg(source.join("crates/release/build.sh")).arg("release");
    command
        .env("CARGO_TARGET_DIR", &target)
        .env("VDO_SIGNING_KEY", key.serialize_pem())
        .env_remove("SOURCE_DATE_EPOCH");
    let said = run(&mut command);
    let mut files = BTreeMap::new();
    read(&target, &target, &mut files);
    // The second build finds room where the first was.
    fs::remove_dir_all(&target).expect("the target folder");
    (said, files)
}

/// The files below `image`, `bundle-image`, `catalog`, `catalog-image` and `release-VERSION`, by their paths.
fn read(target: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path.strip_prefix(target).expect("below it").display().to_string();
        if !["image", "bundle-image", "catalog", "release-"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            continue;
        }
        match path.is_dir() {
            true => read(target, &path, files),
            false => drop(files.insert(name, fs::read(&path).expect("a file"))),
        }
    }
}

/// Verifies the signature of the sums, and by them every file of the release. Takes the signature away: ECDSA puts a random number into it.
fn verify(files: &mut BTreeMap<String, Vec<u8>>, key: &rcgen::KeyPair) {
    let name = |end: &str| files.keys().find(|name| name.ends_with(end)).cloned().expect(end);
    let (sums, signature) = (name("/SHA256SUMS"), name("/SHA256SUMS.sigstore.json"));
    let signature = files.remove(&signature).expect("a signature");
    let keys = PublicKeys::parse(key.public_key_pem().as_bytes()).expect("a key");
    keys.verify(&files[&sums], Some(&signature)).expect("the signature of the sums");
    let folder = sums.trim_end_matches("SHA256SUMS");
    let listed: BTreeMap<_, _> = String::from_utf8(files[&sums].clone())
        .expect("text")
        .lines()
        .map(|line| line.split_once("  ").expect("a sum and a name"))
        .map(|(sum, name)| (format!("{folder}{name}"), sum.to_owned()))
        .collect();
    let found: BTreeMap<_, _> = files
        .iter()
        .filter(|(name, _)| name.starts_with(folder) && **name != sums)
        .map(|(name, bytes)| (name.clone(), hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))))
        .collect();
    assert_eq!(listed, found);
}

#[test]
#[ignore = "needs four optimised builds, an hour: `make test-all` makes them"]
fn release_built_twice_is_the_same_and_its_programs_start() {
    let base = tempfile::tempdir().expect("a folder");
    let key = rcgen::KeyPair::generate().expect("a key");
    let (said, mut first) = built(root(), base.path(), "one", &key);
    // Of the first folder, because the commit of this one may be another one an hour later.
    let (again, mut second) = built(&base.path().join("one"), base.path(), "another place", &key);
    assert!(first.len() > 8, "{:?}", first.keys());
    for files in [&mut first, &mut second] {
        verify(files, &key);
    }
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(
            *bytes == second[name],
            "{name} differs: {} and {} bytes",
            bytes.len(),
            second[name].len()
        );
    }
    let mut stderr = std::io::stderr();
    let _ = std::io::Write::write_all(&mut stderr, again.as_bytes());
    for (name, bytes) in first.iter().filter(|(name, _)| name.starts_with("release-")) {
        let name = name.rsplit('/').next().expect("a name");
        let size = format!("{:12}  {name}", bytes.len());
        assert!(said.lines().any(|line| line == size), "no size of {name}: {said}");
    }
    for architecture in ["amd64", "arm64"] {
        let line = |text: &str| said.lines().any(|line| line.contains(&format!("linux/{architecture}: {text}")));
        if line("NOT built") {
            skipped(TEST, &format!("a compiler for {architecture}"));
        } else if line("NOT started") {
            skipped(TEST, &format!("qemu-user for {architecture}"));
        } else {
            assert!(line("the image's program says: vdo-operator "), "{architecture}: {said}");
        }
    }
}
