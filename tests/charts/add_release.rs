// SPDX-License-Identifier: Apache-2.0
//! `chart add-release`: a release that was taken away comes back from its manifests alone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test should stop where it fails")]

use serde_json::{Value, json};
use vdo_api::types::DriverVersion;
use vdo_api::yaml;
use vdo_core::chart::add_release::{
    AddError, Added, Manifest, Stated, add_release, digest, name, with_deviations, with_line, with_publication, with_version,
};
use vdo_core::chart::{self, Source};

use crate::fixture::{self, release, source};
use crate::sample::{some_or_all, upstream};

fn version(text: &str) -> DriverVersion {
    text.parse().unwrap()
}

/// The source without some versions, whose lines are cut out of the release files.
fn without(mut source: Source, versions: &[&str]) -> Source {
    for gone in versions {
        let path = chart::release_files::path(&version(gone));
        let text = String::from_utf8(source.files[&path].clone()).unwrap();
        let (mut kept, mut inside) = (String::new(), false);
        for line in text.split_inclusive('\n') {
            if line.starts_with("  ") && !line.starts_with("   ") && !line.starts_with("  #") {
                inside = line == format!("  {gone}:\n");
            }
            if !inside {
                kept += line;
            }
        }
        assert_ne!(kept, text, "{gone} is listed");
        source.files.insert(path, kept.into_bytes());
    }
    source
}

/// What a release renders, as one manifest.
fn manifest(name: &str, objects: Vec<Value>) -> Manifest {
    Manifest {
        name: name.to_owned(),
        bytes: yaml::dump_all(&objects).into_bytes(),
        objects,
    }
}

fn everything(source: &Source, of: &str) -> Vec<Value> {
    let chart = release(source, &version(of));
    fixture::render(&chart, chart::as_upstream(&chart))
}

fn add(source: &Source, new: &str, manifests: &[Manifest]) -> Result<Added, AddError> {
    add_release(source, &version(new), Some("2026-01-01"), manifests, None)
}

fn with(mut source: Source, added: &Added) -> Source {
    source.files.insert(added.file.clone(), added.text.clone().into_bytes());
    source
}

#[test]
fn add_release_of_removed_version_renders_the_same() {
    let all = [
        // a patch release
        ("vsphere-csi", &["3.7.3"][..]),
        ("vsphere-csi", &["3.7.2"]),
        // a switch that becomes null, and a feature state
        ("vsphere-csi", &["3.7.3", "3.7.2", "3.7.1"]),
        // the first of a minor: flags, node labels, times of leader election, users, rules
        ("vsphere-csi", &["3.6.3", "3.6.2", "3.6.1", "3.6.0"]),
        ("vsphere-csi", &["3.3.1", "3.3.0"]),
        ("vsphere-csi", &["3.0.3", "3.0.2", "3.0.1", "3.0.0"]),
        ("vsphere-cpi", &["1.34.0"]),
        ("vsphere-cpi", &["1.28.1", "1.28.0"]),
        // switches, and a checksum
        ("antrea", &["2.7.0"]),
        // kinds of group snapshots, which the release before does not have
        ("snapshot-controller", &["8.6.0"]),
    ];
    for (driver, removed) in some_or_all("removed versions", &all, 4) {
        let whole = source(driver);
        let mut cut = without(whole.clone(), removed);
        let new = removed.last().unwrap();
        let path = chart::release_files::path(&version(new));
        if !cut.versions().iter().any(|known| chart::release_files::path(known) == path) {
            cut.files.remove(&path);
        }
        let objects = everything(&whole, new);
        let added = add(&cut, new, &[manifest("all.yaml", objects.clone())]).unwrap_or_else(|error| panic!("{driver} {new}: {error}"));
        let again = with(cut.clone(), &added);
        let rendered = everything(&again, new);
        assert_eq!(rendered, objects, "{driver} {new} from {}\n{}", added.from, added.text);
        for old in cut.versions() {
            assert_eq!(again.release(&old).unwrap(), cut.release(&old).unwrap(), "{driver} {old} stays");
        }
        let recorded = &release(&again, &version(new)).release.upstream.unwrap().objects["all.yaml"];
        let digests = objects.iter().map(|object| (name(object), digest(object)));
        assert_eq!(*recorded, digests.collect());
    }
}

/// `latest` is not a version: the tag follows the version of the release.
#[test]
fn add_release_of_manifests_without_a_version_names_the_version_in_the_tag() {
    let whole = source("antrea");
    let mut objects = everything(&whole, "2.7.0");
    for object in &mut objects {
        let text = object.to_string().replace(":v2.7.0\"", ":latest\"");
        *object = vdo_api::types::from_json(&text).unwrap();
    }
    let mut cut = without(whole.clone(), &["2.7.0"]);
    cut.files.remove("releases/2.7.yaml");
    let added = add(&cut, "2.7.0", &[manifest("antrea.yml", objects)]).unwrap();
    assert_eq!(added.release["images"], whole.release(&version("2.7.0")).unwrap()["images"]);
    let unexpected: Vec<_> = added.differences.iter().filter(|(_, intended)| intended.is_none()).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
}

/// The text around an entry, its comments and its order, is left alone.
#[test]
fn add_release_keeps_comments_and_order_of_the_file() {
    let mut source = source("vsphere-csi");
    let path = "releases/3.6.yaml".to_owned();
    let text = String::from_utf8(source.files[&path].clone()).unwrap();
    let text = text.replace("  3.6.1:\n", "  # the first with a fix\n  3.6.1: # as tagged\n");
    source.files.insert(path, text.clone().into_bytes());
    let objects = everything(&source, "3.6.2");
    let cut = without(source, &["3.6.2"]);
    let added = add(&cut, "3.6.2", &[manifest("vsphere-csi-driver.yaml", objects)]).unwrap();
    let before = String::from_utf8(cut.files["releases/3.6.yaml"].clone()).unwrap();
    let again = without(with(cut, &added), &["3.6.2"]);
    assert_eq!(String::from_utf8(again.files["releases/3.6.yaml"].clone()).unwrap(), before);
    assert!(before.contains("  # the first with a fix\n  3.6.1: # as tagged\n"), "{before}");
    let entry = added
        .text
        .find("  3.6.2:\n    date: \"2026-01-01\"\n    upstream:\n      tag: v3.6.2\n      files:\n");
    assert!(entry.is_some(), "{}", added.text);
    assert!(
        added.text.find("  3.6.1:") < entry && entry < added.text.find("  3.6.3:\n"),
        "{}",
        added.text
    );
    assert!(
        added.text.contains("        manifests/vanilla/vsphere-csi-driver.yaml: "),
        "the path of the repository is known"
    );
    assert!(
        added
            .text
            .contains("\n    images:\n      driver: {tag: v3.6.2}\n      syncer: {tag: v3.6.2}\n"),
        "{}",
        added.text
    );
}

/// What the templates cannot render stays as a difference, and everything else is written anyway.
#[test]
fn add_release_unknown_change_remains_as_difference() {
    let source = source("vsphere-csi");
    let mut objects = everything(&source, "3.8.0");
    for object in &mut objects {
        if object["kind"] == "Deployment" && object["metadata"]["name"] == "vsphere-csi-controller" {
            let pod = &mut object["spec"]["template"]["spec"];
            pod["hostNetwork"] = true.into();
            let containers = pod["containers"].as_array_mut().unwrap();
            let attacher = containers.iter_mut().find(|container| container["name"] == "csi-attacher").unwrap();
            attacher["image"] = "registry.k8s.io/sig-storage/csi-attacher:v9.0.0".into();
            attacher["args"].as_array_mut().unwrap().push("--new-flag=1".into());
        }
    }
    let added = add(&source, "3.9.0", &[manifest("new.yaml", objects)]).unwrap();
    let found: Vec<String> = added
        .differences
        .iter()
        .filter(|(_, d)| d.is_none())
        .map(|(d, _)| d.path.clone())
        .collect();
    assert_eq!(found, ["/spec/template/spec/hostNetwork"]);
    assert_eq!(added.file, "releases/3.9.yaml");
    let release = with(source, &added).release(&version("3.9.0")).unwrap();
    assert_eq!(release["images"]["attacher"]["tag"], "v9.0.0");
    assert_eq!(release["flags"]["attacher"], json!(["--worker-threads=100", "--new-flag=1"]));
    assert!(
        added.text.starts_with("# What differs in the releases 3.9 of the driver."),
        "{}",
        added.text
    );
}

#[test]
fn add_release_of_what_cannot_be_added_is_refused() {
    let listed = source("vsphere-csi");
    let objects = || vec![manifest("a.yaml", everything(&listed, "3.7.3"))];
    let mut flow = without(listed.clone(), &["3.7.3"]);
    let flat = format!(
        "common: {{}}\nversions: {{3.7.0: {}}}\n",
        listed
            .release(&version("3.7.0"))
            .map(|mut release| {
                release.as_object_mut().unwrap().shift_remove("version");
                release
            })
            .unwrap()
    );
    flow.files.insert("releases/3.7.yaml".to_owned(), flat.into_bytes());
    for (source, says) in [
        (&listed, "releases/3.7.yaml already lists 3.7.3"),
        (&Source::default(), "no release to start from"),
        (&flow, "write versions as a block"),
    ] {
        let error = add(source, "3.7.3", &objects()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let unknown = add_release(
        &without(listed.clone(), &["3.7.3"]),
        &version("3.7.3"),
        Some("2026-01-01"),
        &objects(),
        Some(&version("9.9.9")),
    );
    assert!(unknown.unwrap_err().to_string().contains("has no release 9.9.9"));
}

#[test]
fn facts_patch_release_joins_the_line_of_its_minor() {
    let facts = std::fs::read_to_string(fixture::root().join("matrix-index/facts.yaml")).unwrap();
    let joined = with_version(&facts, "vsphere-csi", &version("3.7.3"), &version("3.7.4")).unwrap();
    assert_eq!(joined, facts.replace("[\"3.7.3\", \"3.7.2\"", "[\"3.7.4\", \"3.7.3\", \"3.7.2\""));
    for (driver, from, new) in [
        ("vsphere-csi", "3.7.3", "3.8.0"),
        ("vsphere-csi", "3.7.9", "3.7.10"),
        ("toy", "3.7.3", "3.7.4"),
    ] {
        assert_eq!(with_version(&facts, driver, &version(from), &version(new)), None, "{driver} {new}");
    }
    let block = "drivers:\n  toy:\n    lines:\n    - versions:\n      - 1.0.0\n";
    assert_eq!(with_version(block, "toy", &version("1.0.0"), &version("1.0.1")), None);
}

fn stated<'a>(kubernetes: &'a vdo_api::types::VersionRange, sources: &'a [(String, Option<String>)]) -> Stated<'a> {
    Stated { kubernetes, sources }
}

/// The first version of a minor gets a line of its own: with what is stated, and the rest taken over and marked so.
#[test]
fn facts_first_version_of_a_minor_gets_a_line() {
    let facts = std::fs::read_to_string(fixture::root().join("matrix-index/facts.yaml")).unwrap();
    let range = vdo_api::types::VersionRange::new(Some("1.36"), Some("1.38")).unwrap();
    let sources = [(
        "csi-rel-3.9.0".to_owned(),
        Some("https://example.com/releases/tag/v3.9.0".to_owned()),
    )];
    let changed = with_line(
        &facts,
        "vsphere-csi",
        &version("3.8.0"),
        &version("3.9.0"),
        &stated(&range, &sources),
    )
    .unwrap();
    let read = yaml::load_value(&changed).unwrap();
    let [new, old] = [0_usize, 1].map(|at| read["drivers"]["vsphere-csi"]["lines"][at].clone());
    assert_eq!(new["versions"], json!(["3.9.0"]));
    assert_eq!(
        new["kubernetes"],
        json!({"min": "1.36", "max": "1.38", "evidence": ["csi-rel-3.9.0"], "confidence": "primary"})
    );
    assert_eq!(new["vsphere"]["confidence"], "unverified");
    assert!(new["vsphere"]["note"].as_str().unwrap().starts_with("Taken over from 3.8.0"));
    assert_eq!(new["features"], old["features"]);
    assert_eq!(read["sources"]["csi-rel-3.9.0"]["kind"], "release-notes");
    // Nothing else moved.
    let mut rest = read.clone();
    rest["drivers"]["vsphere-csi"]["lines"].as_array_mut().unwrap().remove(0);
    rest["sources"].as_object_mut().unwrap().shift_remove("csi-rel-3.9.0");
    assert_eq!(rest, yaml::load_value(&facts).unwrap());
    // What is an exception of the older one is not taken over.
    let changed = with_line(&facts, "vsphere-csi", &version("3.6.3"), &version("3.6.9"), &stated(&range, &[])).unwrap();
    assert!(changed.contains("- versions: [\"3.6.9\"]") && changed.matches("except:").count() == facts.matches("except:").count());
    assert_eq!(
        with_line(&facts, "toy", &version("1.0.0"), &version("1.1.0"), &stated(&range, &[])),
        None
    );
}

#[test]
fn facts_of_the_next_publication_have_its_version_and_dates_once() {
    let facts = "version: 2\ngenerated: \"2026-11-20T00:00:00Z\"\nexpires: \"2027-05-20T00:00:00Z\"\nsources: {}\n";
    let today = "2026-12-01".parse().unwrap();
    let next = with_publication(facts, 2, today).unwrap();
    assert_eq!(
        next,
        "version: 3\ngenerated: \"2026-12-01T00:00:00Z\"\nexpires: \"2027-05-31T00:00:00Z\"\nsources: {}\n"
    );
    assert_eq!(with_publication(&next, 2, today), None, "it is the next one already");
}

/// What no switch reaches is listed as intended, and then undone as it was.
#[test]
fn add_release_differences_become_deviations() {
    let whole = source("vsphere-cpi");
    let mut cut = without(whole.clone(), &["1.37.0"]);
    let mut objects = everything(&whole, "1.37.0");
    let pods = objects.iter_mut().find(|object| object["kind"] == "DaemonSet").unwrap();
    pods["spec"]["template"]["spec"]["dnsPolicy"] = "None".into();
    let text = String::from_utf8(cut.files["deviations.yaml"].clone()).unwrap();
    let at = text
        .find("  versions: [1.37.0]")
        .map(|at| text[..at].rfind("- object").unwrap())
        .unwrap();
    cut.files.insert("deviations.yaml".into(), text.as_bytes()[..at].to_vec());
    let added = add_release(&cut, &version("1.37.0"), None, &[manifest("a.yaml", objects)], None).unwrap();
    assert!(added.release.get("date").is_none());
    let found: Vec<_> = added
        .differences
        .iter()
        .filter(|(_, deviation)| deviation.is_none())
        .map(|(found, _)| found)
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let (changed, listed) = with_deviations(&text[..at], found.clone().into_iter(), &version("1.37.0"), "a reason: with a colon").unwrap();
    assert!(changed.starts_with(&text[..at]) && listed[0].intends(found[0]));
    assert_eq!(listed[0].original, Some(json!("None")));
}

/// The driver's own manifests, where this machine has them: the release comes out as it is written here, digests included.
#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn add_release_of_upstream_manifest_equals_the_written_release() {
    let folder = upstream().expect("VDO_UPSTREAM_DIR is set");
    for (driver, own, new) in [
        ("vsphere-csi", "vsphere-csi-driver", "3.8.0"),
        ("vsphere-csi", "vsphere-csi-driver", "3.7.3"),
        ("vsphere-csi", "vsphere-csi-driver", "3.6.3"),
        ("vsphere-cpi", "cloud-provider-vsphere", "1.34.0"),
        ("vsphere-cpi", "cloud-provider-vsphere", "1.32.3"),
        // its manifests name no version of its images
        ("antrea", "antrea", "2.7.0"),
    ] {
        let whole = source(driver);
        let mut cut = without(whole.clone(), &[new]);
        let alone = [
            ("vsphere-cpi", "1.34.0", "releases/1.34.yaml"),
            ("vsphere-csi", "3.8.0", "releases/3.8.yaml"),
            ("antrea", "2.7.0", "releases/2.7.yaml"),
        ];
        if let Some((.., file)) = alone.into_iter().find(|(of, version, _)| (*of, *version) == (driver, new)) {
            cut.files.remove(file);
        }
        let mut files: Vec<_> = std::fs::read_dir(folder.join(own).join(new))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let read = |path: &std::path::PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            Manifest {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                objects: yaml::load_all(&text).unwrap(),
                bytes: text.into_bytes(),
            }
        };
        let manifests: Vec<Manifest> = files.iter().map(read).collect();
        let expected = whole.release(&version(new)).unwrap();
        let date = expected["date"].as_str();
        let added = add_release(&cut, &version(new), date, &manifests, None).unwrap();
        let unexpected: Vec<_> = added.differences.iter().filter(|(_, deviation)| deviation.is_none()).collect();
        assert!(
            unexpected.is_empty() && added.stale.is_empty(),
            "{driver} {new}: {unexpected:?} {:?}",
            added.stale
        );
        let mut found = with(cut, &added).release(&version(new)).unwrap();
        for image in found["images"].as_object_mut().unwrap().keys().cloned().collect::<Vec<_>>() {
            // no one but the registry knows the digest of an image
            if let Some(digest) = expected["images"][&image].get("digest") {
                found["images"][&image]["digest"] = digest.clone();
            }
        }
        assert_eq!(found, expected, "{driver} {new}");
    }
}
