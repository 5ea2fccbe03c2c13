// SPDX-License-Identifier: Apache-2.0
//! Tests the smaller files of a release: bills of materials, licences, notes, install.yaml, archives, SHA256SUMS, chart package, krew.

use crate::program::{SAYS, stand_in};
use crate::{done, judged, refused, release, root, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The bill of the operator as `make release` makes it, in a clone in a folder of this name: cargo-cyclonedx writes beside each Cargo.toml.
/// Nothing without that tool.
fn bill(test: &str, folder: &Path, name: &str) -> Option<Vec<u8>> {
    judged(test, "cargo-cyclonedx", &["cyclonedx", "--version"])?;
    let clone = folder.join(name);
    judged(test, "git", &["clone", "--quiet", text(root()), text(&clone)])?;
    let options = [
        "--quiet",
        "--format",
        "json",
        "--spec-version",
        "1.5",
        "--no-build-deps",
        "--override-filename",
        "bill",
    ];
    let written = Command::new("cargo-cyclonedx")
        .arg("cyclonedx")
        .args(options)
        .current_dir(&clone)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .expect("it starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let at = |name: &str| clone.join(name).display().to_string();
    let with = format!("webpki-root-certs={}", at("crates/release/bill.json"));
    done(&[
        "bom",
        "--bom",
        &at("bill.json"),
        "--with",
        &with,
        "--rustc",
        "1.2.3",
        "--output",
        &at("operator.json"),
    ]);
    Some(fs::read(at("operator.json")).expect("a bill of materials"))
}

/// The crates whose code is in the programs of these packages, by name and version. A bill can list more: cargo-cyclonedx counts a crate
/// that a feature mentions only in case another one asks for it.
fn linked(packages: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new("cargo");
    let arguments = "tree --locked --edges normal,no-proc-macro --prefix none --no-dedupe --format {p}";
    cargo.current_dir(root()).args(arguments.split(' '));
    for package in packages {
        cargo.args(["--package", package]);
    }
    let tree = cargo.output().expect("cargo");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).expect("text");
    let named = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ").replacen(" v", " ", 1);
    let crates = tree.lines().filter(|line| !line.is_empty()).map(named);
    crates
        .filter(|key| !packages.iter().any(|package| key.starts_with(&format!("{package} "))))
        .collect()
}

/// Its components, by name and version.
fn components(bill: &[u8]) -> BTreeMap<String, Value> {
    let bill: Value = serde_json::from_slice(bill).expect("JSON");
    let named = |one: &Value| format!("{} {}", one["name"].as_str().expect("text"), one["version"].as_str().expect("text"));
    let components = bill["components"].as_array().expect("a list").iter();
    components.map(|one| (named(one), one.clone())).collect()
}

#[test]
fn bill_names_every_crate_of_the_operator_with_licence_and_checksum() {
    const TEST: &str = "bill_names_every_crate_of_the_operator_with_licence_and_checksum";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(bill) = bill(TEST, folder.path(), "clone") else { return };
    let found = components(&bill);
    let wanted = linked(&["vdo"]);
    assert!(wanted.len() > 150, "{}", wanted.len());
    let missing: Vec<_> = wanted.iter().filter(|key| !found.contains_key(*key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(found.contains_key("rust-std 1.2.3"));
    assert!(found.keys().any(|key| key.starts_with("webpki-root-certs ")));
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("the lock file");
    for (key, component) in found {
        assert_ne!(component["licenses"], Value::Null, "{key}");
        let (name, version) = key.split_once(' ').expect("a name and a version");
        let Some((_, rest)) = lock.split_once(&format!("name = \"{name}\"\nversion = \"{version}\"\nsource = ")) else {
            assert_eq!(component["hashes"], Value::Null, "{key}");
            continue;
        };
        let hex = component["hashes"][0]["content"].as_str().expect("text");
        assert_eq!(rest.lines().nth(1), Some(format!("checksum = \"{hex}\"").as_str()), "{key}");
    }
}

#[test]
fn bill_made_in_two_folders_is_the_same() {
    const TEST: &str = "bill_made_in_two_folders_is_the_same";
    let folder = tempfile::tempdir().expect("a folder");
    let Some(one) = bill(TEST, folder.path(), "vdo") else { return };
    let two = bill(TEST, folder.path(), "another place").expect("a bill");
    assert_eq!(String::from_utf8_lossy(&one), String::from_utf8_lossy(&two));
    assert!(
        !String::from_utf8_lossy(&one).contains(text(folder.path())),
        "a path of this machine"
    );
}

#[test]
#[ignore = "needs cargo-about, which takes minutes: .ci/run runs it"]
fn licences_name_every_crate() {
    const TEST: &str = "licences_name_every_crate";
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| root().join(name).display().to_string();
    let (manifest, config, template) = (at("Cargo.toml"), at("crates/release/about.toml"), at("crates/release/about.hbs"));
    let file = folder.path().join("licences.txt").display().to_string();
    let generate = [
        "about",
        "generate",
        "--locked",
        "--workspace",
        "--fail",
        "--manifest-path",
        &manifest,
        "--config",
        &config,
        "--output-file",
        &file,
        &template,
    ];
    let Some(_) = judged(TEST, "cargo-about", &generate) else { return };
    let licences = fs::read_to_string(&file).expect("licences");
    // The project's own crates have its licence.
    let missing: Vec<_> = linked(&["vdo", "vdoctl"])
        .into_iter()
        .filter(|name| !name.starts_with("vdo"))
        .filter(|name| !licences.contains(&format!("  {name} (")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The objects of install.yaml are those that the listed files hold.
#[test]
fn install_yaml_has_the_objects_of_the_kustomization() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("install.yaml");
    let image = "ghcr.io/vdo-project/vdo-operator:v9@sha256:00";
    done(&["install-yaml", "--output", text(&file), "--image", image]);
    let objects = |content: &str| vdo_api::yaml::load_all(content).expect("YAML");
    let id = |object: &Value| format!("{}/{}", object["kind"], object["metadata"]["name"]);
    let installed = objects(&fs::read_to_string(&file).expect("a file"));
    let list = fs::read_to_string(root().join("deploy/kustomization.yaml")).expect("a file");
    let listed: Vec<Value> = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
        .flat_map(|name| objects(&fs::read_to_string(root().join("deploy").join(name)).expect("a file")))
        .collect();
    let ids = |objects: &[Value]| objects.iter().map(id).collect::<BTreeSet<_>>();
    assert_eq!(ids(&installed), ids(&listed));
    // What people delete with it would be all that is in a namespace.
    assert!(installed.iter().all(|object| object["kind"] != "Namespace"));
    let namespaces = fs::read_to_string(folder.path().join("namespace.yaml")).expect("a file");
    assert_eq!(
        ids(&objects(&namespaces)),
        ["\"Namespace\"/\"vmware-system-vdo\"", "\"Namespace\"/\"vmware-system-csi\""]
            .map(str::to_owned)
            .into()
    );
    let deployment = installed
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .expect("the operator");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], image);
}

#[test]
fn notes_of_a_version_without_a_section_say_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, notes) = (folder.path().join("log.md"), folder.path().join("notes.md"));
    fs::write(&log, "# Changelog\n\n## [Unreleased]\n\n- b\n\n## [1.0.0] - 2026-01-01\n\n- a\n").expect("a file");
    let write = |version| done(&["notes", "--version", version, "--changelog", text(&log), "--output", text(&notes)]);
    write("1.0.0");
    assert_eq!(fs::read_to_string(&notes).expect("notes"), "# VDO 1.0.0\n\n- a\n");
    write("2.0.0");
    let unreleased = fs::read_to_string(&notes).expect("notes");
    assert!(
        unreleased.contains("not released yet") && unreleased.ends_with("- b\n"),
        "{unreleased}"
    );
    fs::write(&log, "# Changelog\n").expect("a file");
    let message = refused(&["notes", "--version", "1.0.0", "--changelog", text(&log), "--output", text(&notes)]);
    assert!(message.contains("neither a section"), "{message}");
}

#[test]
fn archive_packed_twice_is_the_same_and_its_program_starts() {
    const TEST: &str = "archive_packed_twice_is_the_same_and_its_program_starts";
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("vdoctl"), stand_in("amd64")).expect("a program");
    let license = root().join("LICENSE").display().to_string();
    for name in ["a.tar.gz", "b.tar.gz"] {
        done(&[
            "archive",
            "--platform",
            "linux/amd64",
            "--program",
            &at("vdoctl"),
            "--file",
            &license,
            "--output",
            &at(name),
        ]);
    }
    assert_eq!(fs::read(at("a.tar.gz")).expect("one"), fs::read(at("b.tar.gz")).expect("two"));
    fs::create_dir(at("out")).expect("a folder");
    let Some(_) = judged(TEST, "tar", &["-xzf", &at("a.tar.gz"), "-C", &at("out")]) else {
        return;
    };
    assert_eq!(fs::read(at("out/LICENSE")).expect("a file"), fs::read(&license).expect("a file"));
    if std::env::consts::ARCH == "x86_64" {
        assert_eq!(Command::new(at("out/vdoctl")).output().expect("it starts").stdout, SAYS.as_bytes());
    }
}

#[test]
fn archive_for_windows_is_unpacked_by_another_reader() {
    const TEST: &str = "archive_for_windows_is_unpacked_by_another_reader";
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    // What Windows looks at before it starts a program: that it is one, and for which processor.
    let mut program = vec![0; 256];
    program[..2].copy_from_slice(b"MZ");
    program[0x3c] = 128;
    program[128..134].copy_from_slice(b"PE\0\0\x64\x86");
    fs::write(at("vdoctl.exe"), &program).expect("a program");
    let license = root().join("LICENSE").display().to_string();
    let packed = |platform: &'static str, program: &str, name: &str| {
        let (program, archive) = (at(program), at(name));
        let rest = ["--program", &program, "--file", &license, "--output", &archive];
        release(&[&["archive", "--platform", platform], &rest[..]].concat())
    };
    for name in ["a.zip", "b.zip"] {
        let output = packed("windows/amd64", "vdoctl.exe", name);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(fs::read(at("a.zip")).expect("one"), fs::read(at("b.zip")).expect("two"));
    for platform in ["windows/arm64", "darwin/amd64", "linux/amd64"] {
        assert!(!packed(platform, "vdoctl.exe", "c.zip").status.success(), "{platform}");
    }
    let Some(_) = judged(TEST, "python3", &["-m", "zipfile", "--extract", &at("a.zip"), &at("out")]) else {
        return;
    };
    assert_eq!(fs::read(at("out/vdoctl.exe")).expect("a file"), program);
    assert_eq!(fs::read(at("out/LICENSE")).expect("a file"), fs::read(&license).expect("a file"));
    let listed = judged(TEST, "python3", &["-m", "zipfile", "--list", &at("a.zip")]).expect("it was there");
    assert!(listed.contains("2023-11-14 22:13:20"), "{listed}");
}

#[test]
fn sums_are_checked_by_sha256sum() {
    const TEST: &str = "sums_are_checked_by_sha256sum";
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in [("b", "2"), ("a c", "1"), ("a.sigstore.json", "{}")] {
        fs::write(folder.path().join(name), content).expect("a file");
    }
    done(&["sums", text(folder.path())]);
    let sums = fs::read_to_string(folder.path().join("SHA256SUMS")).expect("sums");
    assert_eq!(sums.lines().map(|line| &line[66..]).collect::<Vec<_>>(), ["a c", "b"]);
    done(&["sums", text(folder.path())]);
    assert_eq!(fs::read_to_string(folder.path().join("SHA256SUMS")).expect("sums"), sums);
    let script = format!("cd '{}' && sha256sum --check --strict SHA256SUMS", text(folder.path()));
    judged(TEST, "sh", &["-c", &script]);
}

#[test]
fn chart_package_has_the_version_of_the_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("chart");
    fs::create_dir_all(source.join("templates")).expect("a folder");
    fs::write(source.join("Chart.yaml"), "apiVersion: v2\nname: vdo\nversion: 1.2.3\n").expect("a file");
    fs::write(source.join("templates/a.yaml"), "kind: ConfigMap\n").expect("a file");
    fs::write(source.join("templates/a.yaml~"), "").expect("a file");
    fs::write(source.join(".helmignore"), "*~\n").expect("a file");
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    for output in [&one, &two] {
        done(&["chart", "--source", text(&source), "--version", "1.2.3", "--output", text(output)]);
    }
    let bytes = |folder: &Path| fs::read(folder.join("vdo-1.2.3.tgz")).expect("a package");
    assert_eq!(bytes(&one), bytes(&two));
    let mut names = Vec::new();
    let package = bytes(&one);
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(package.as_slice()));
    for entry in archive.entries().expect("tar") {
        names.push(entry.expect("an entry").path().expect("a path").display().to_string());
    }
    assert_eq!(names, ["vdo/", "vdo/Chart.yaml", "vdo/templates/", "vdo/templates/a.yaml"]);
    let message = refused(&["chart", "--source", text(&source), "--version", "1.2.4", "--output", text(&one)]);
    assert!(message.contains("correct it there"), "{message}");
}

#[test]
fn krew_manifest_has_the_sum_of_each_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("vdoctl-v1-linux-amd64.tar.gz"), "abc").expect("a file");
    fs::write(at("vdoctl-v1-windows-amd64.zip"), "abc").expect("a file");
    let archive = format!("linux/amd64={}", at("vdoctl-v1-linux-amd64.tar.gz"));
    let windows = format!("windows/amd64={}", at("vdoctl-v1-windows-amd64.zip"));
    let base = "https://example.test/v1/";
    done(&[
        "krew",
        "--version",
        "v1",
        "--base",
        base,
        "--archive",
        &archive,
        "--archive",
        &windows,
        "--output",
        &at("vdo.yaml"),
    ]);
    let manifest = vdo_api::yaml::load_value(&fs::read_to_string(at("vdo.yaml")).expect("a file")).expect("YAML");
    let platform = &manifest["spec"]["platforms"][0];
    assert_eq!(platform["uri"], "https://example.test/v1/vdoctl-v1-linux-amd64.tar.gz");
    assert_eq!(
        platform["sha256"],
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(platform["selector"]["matchLabels"]["arch"], "amd64");
    let programs = [0, 1].map(|place| manifest["spec"]["platforms"][place]["bin"].clone());
    assert_eq!(programs, ["vdoctl", "vdoctl.exe"]);
}
