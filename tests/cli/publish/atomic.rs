// SPDX-License-Identifier: Apache-2.0
//! Two publishers at once, and a publisher that is killed.

use super::super::{seen, vdoctl};
use super::folder::{Publisher, files};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vdo_api::types::Secret;
use vdo_author::publish::{Draft, Release, writes};
use vdo_core::matrix::Index;
use vdo_source::fetch::{Access, MatrixSource};
use vdo_source::signature::{Form, PrivateKey, PublicKeys, Signature};

/// The version of the matrix in a folder, as an operator with this key sees it: verified, and every chart there as it is promised.
fn trusted(folder: &str, public: &str) -> u64 {
    let source = MatrixSource::Local(folder.into());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let look = source.fetch(&Access::default(), None).await.expect("an index").signed;
        let keys = PublicKeys::parse(&fs::read(public).expect("a key")).expect("keys");
        keys.verify(&look.index, look.signature.as_deref()).expect("signed");
        let index = Index::parse(&look.index).expect("an index");
        for entry in index.drivers.values().flat_map(|driver| &driver.versions) {
            source.chart(&Access::default(), &entry.chart).await.expect("its chart");
        }
        index.version
    })
}

#[test]
fn publish_stopped_after_any_write_leaves_the_last_version_or_the_next() {
    for bundle_only in [false, true] {
        let publisher = Publisher::toy();
        let folder = publisher.matrix();
        if bundle_only {
            // As cosign alone leaves it.
            fs::remove_file(Path::new(&folder).join("index.yaml.sig")).expect("removed");
        }
        let last = trusted(&folder, &publisher.public());
        let key = PrivateKey::parse(&Secret::new(fs::read_to_string(publisher.key()).expect("a key"))).expect("a key");
        let package = fs::read(publisher.toy_package("1.0.1", "apps/v1", "toy", "")).expect("a package");
        let index = fs::read(Path::new(&folder).join("index.yaml")).expect("an index");
        let draft = Draft::read(&index).expect("a draft");
        let mut draft = draft.clone();
        let version = "1.0.0".parse().expect("a version");
        let mut entry = draft.fields("toy", &version).expect("fields").clone();
        entry.insert("version".into(), "1.0.1".into());
        entry.insert(
            "chart".into(),
            serde_json::json!({"urls": ["charts/toy-1.0.1.tgz"], "sha256": vdo_api::types::Digest::of(&package).hex()}),
        );
        draft.add(&"toy".into(), vdo_api::types::DriverRole::Other, entry).expect("added");
        let later = draft.index().generated.expect("a time") + jiff::SignedDuration::from_secs(1);
        let index = draft.finish(later, None).expect("an index");
        let signatures = Form::ALL.map(|form| (form, key.sign(&index, form).expect("signed"))).into();
        let release = Release {
            index,
            signatures,
            charts: [("charts/toy-1.0.1.tgz".to_owned(), package)].into(),
        };
        let old = if bundle_only {
            "index.yaml.sigstore.json"
        } else {
            "index.yaml.sig"
        };
        let old = Signature::parse(&fs::read(Path::new(&folder).join(old)).expect("a signature")).expect("a signature");
        let mut seen = Vec::new();
        for write in writes(Some(&old), &release) {
            let file = Path::new(&folder).join(&write.path);
            match write.content {
                Some(bytes) => fs::write(file, bytes).expect("written"),
                None => fs::remove_file(file).unwrap_or_default(),
            }
            seen.push(trusted(&folder, &publisher.public()));
        }
        assert!(
            seen.is_sorted() && seen.first() == Some(&last) && seen.last() == Some(&(last + 1)),
            "{seen:?}"
        );
        let signature = fs::read_to_string(Path::new(&folder).join("index.yaml.sig")).expect("a signature");
        assert_eq!(
            signature.lines().count(),
            1,
            "in the end there is the signature of the new one alone"
        );
    }
}

#[test]
fn publish_again_after_a_kill_completes_the_signatures() {
    let publisher = Publisher::toy();
    let file = |name: &str| Path::new(&publisher.matrix()).join(name);
    let bundle_of_last = fs::read(file("index.yaml.sigstore.json")).expect("a bundle");
    let package = publisher.toy_package("1.0.1", "apps/v1", "toy", "");
    let publish = publisher.with(&["matrix", "publish", &package]);
    assert!(seen(vdoctl(&publish)).starts_with("exit 0"));
    let complete = publisher.files();
    // As a kill between the index and its second signature leaves the folder.
    fs::write(file("index.yaml.sigstore.json"), bundle_of_last).expect("written");
    fs::write(file(".index.yaml.sigstore.json.0123456789abcdef.part"), "half").expect("written");
    let again = seen(vdoctl(&publish));
    assert!(again.contains("nothing to publish"), "{again}");
    let keys = PublicKeys::parse(&fs::read(publisher.public()).expect("a key")).expect("keys");
    let index = fs::read(file("index.yaml")).expect("an index");
    let bundle = fs::read(file("index.yaml.sigstore.json")).expect("a bundle");
    keys.verify(&index, Some(&bundle)).expect("the bundle is of the new index");
    assert_eq!(publisher.files().keys().collect::<Vec<_>>(), complete.keys().collect::<Vec<_>>());
}

#[test]
fn publish_killed_at_any_moment_leaves_the_last_version_or_the_next_and_goes_on() {
    let publisher = Publisher::toy();
    let mut last = trusted(&publisher.matrix(), &publisher.public());
    for (number, moment) in (1..=12).zip((0..).step_by(7)) {
        let package = publisher.toy_package(&format!("1.0.{number}"), "apps/v1", "toy", "");
        let begin = || {
            let mut command = Command::new(vdo_testbed::vdoctl());
            command.env_clear().args(publisher.with(&["matrix", "publish", &package]));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs")
        };
        let (mut running, begun) = (begin(), Instant::now());
        while begun.elapsed() < Duration::from_millis(moment) {
            std::hint::spin_loop();
        }
        running.kill().expect("it is ours");
        running.wait().expect("it ends");
        let now = trusted(&publisher.matrix(), &publisher.public());
        assert!(now == last || now == last + 1, "killed after {moment} ms: {last} became {now}");
        assert!(begin().wait().expect("it ends").success(), "run again after {moment} ms");
        last = trusted(&publisher.matrix(), &publisher.public());
    }
    let versions = super::json(&["matrix", "list", "toy", "--matrix", &publisher.matrix()]);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(13));
    let left = files(Path::new(&publisher.matrix()));
    let hidden = left
        .keys()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    assert_eq!(hidden.count(), 0, "what is not complete is taken away: {:?}", left.keys());
}

#[test]
fn publish_beside_another_publisher_one_wins_and_the_other_is_refused() {
    let publisher = Publisher::toy();
    let turn = fs::File::open(publisher.matrix()).expect("a folder");
    turn.lock().expect("it is free");
    let before = publisher.files();
    let package = publisher.toy_package("1.0.1", "apps/v1", "toy", "");
    let late = seen(vdoctl(&publisher.with(&["matrix", "publish", &package])));
    assert!(
        late.starts_with("exit 4") && late.contains("another vdoctl is publishing"),
        "{late}"
    );
    assert_eq!(publisher.files(), before);
    drop(turn);

    let packages: Vec<String> = (1..=6)
        .map(|number| publisher.toy_package(&format!("1.0.{number}"), "apps/v1", "toy", ""))
        .collect();
    let mut waiting: Vec<&str> = packages.iter().map(String::as_str).collect();
    let mut rounds = 0;
    while !waiting.is_empty() {
        rounds += 1;
        let begin = |package: &&str| {
            let mut command = Command::new(vdo_testbed::vdoctl());
            command.env_clear().args(publisher.with(&["matrix", "publish", package]));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs")
        };
        let mut running: Vec<_> = waiting.iter().map(begin).collect();
        let ends: Vec<Option<i32>> = running.iter_mut().map(|one| one.wait().expect("it ends").code()).collect();
        assert!(
            ends.iter().all(|code| matches!(code, Some(0 | 4))) && ends.contains(&Some(0)),
            "{ends:?}"
        );
        waiting = waiting
            .into_iter()
            .zip(ends)
            .filter(|(_, code)| *code != Some(0))
            .map(|(package, _)| package)
            .collect();
        assert!(rounds <= 6, "one of them wins each time");
    }
    let index = trusted(&publisher.matrix(), &publisher.public());
    let versions = super::json(&["matrix", "list", "toy", "--matrix", &publisher.matrix()]);
    assert_eq!(
        (versions["versions"].as_array().map(Vec::len), index),
        (Some(7), 8),
        "nothing that was published is lost"
    );
}
