// SPDX-License-Identifier: Apache-2.0
//! YAML means here what it means to kubectl, and what is written is read back unchanged.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a failing test should stop where it fails; the environment names the place of upstream manifests"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vdo_api::yaml::{self, YamlError};
use vdo_core::chart::{self, Context};
use vdo_core::manifest::differences;

/// What a scalar is to kubectl 1.20 and newer, recorded with `kubectl config view --raw -o json` on a kubeconfig extension.
fn as_kubectl() -> Vec<(&'static str, Value)> {
    vec![
        ("0644", json!(420)),
        ("0440", json!(288)),
        ("0777", json!(511)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("0b101", json!(5)),
        ("08", json!(8)),
        ("0_7", json!(7)),
        ("00", json!(0)),
        ("0", json!(0)),
        ("-0", json!(0)),
        ("+12", json!(12)),
        ("1_000", json!(1000)),
        ("1e3", json!(1000)),
        ("1E3", json!(1000)),
        ("1.", json!(1)),
        ("0.0", json!(0)),
        ("-1.0", json!(-1)),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("+.5", json!(0.5)),
        ("1.34", json!(1.34)),
        ("1.30", json!(1.3)),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("9007199254740992.0", json!(9_007_199_254_740_992_u64)),
        ("18446744073709551615", json!(u64::MAX)),
        ("yes", json!(true)),
        ("Yes", json!(true)),
        ("on", json!(true)),
        ("ON", json!(true)),
        ("y", json!(true)),
        ("Y", json!(true)),
        ("true", json!(true)),
        ("TRUE", json!(true)),
        ("no", json!(false)),
        ("NO", json!(false)),
        ("off", json!(false)),
        ("Off", json!(false)),
        ("n", json!(false)),
        ("N", json!(false)),
        ("False", json!(false)),
        ("null", json!(null)),
        ("Null", json!(null)),
        ("~", json!(null)),
        ("''", json!("")),
        ("'yes'", json!("yes")),
        ("\"0644\"", json!("0644")),
        ("2026-11-20", json!("2026-11-20")),
        ("2001-01-01T00:00:00Z", json!("2001-01-01T00:00:00Z")),
        ("1:30", json!("1:30")),
        ("12:30:45", json!("12:30:45")),
        ("!!str 12", json!("12")),
        ("!!int 7", json!(7)),
        ("!foo bar", json!("bar")),
        ("!!binary aGVsbG8=", json!("hello")),
        ("0o8", json!("0o8")),
        ("0x", json!("0x")),
        ("_1", json!("_1")),
        ("1.2.3", json!("1.2.3")),
        ("=", json!("=")),
        ("abc # c", json!("abc")),
        ("'it''s'", json!("it's")),
        ("\"a\\tb\"", json!("a\tb")),
    ]
}

/// Where we differ from kubectl, and how. No one writes these on purpose; a change in this list is a change of behaviour.
fn unlike_kubectl() -> Vec<(&'static str, Value, Option<Value>)> {
    vec![
        // text, kubectl, here (None: refused)
        ("tRue", json!("tRue"), Some(json!(true))),
        ("nuLL", json!("nuLL"), Some(json!(null))),
        ("1__0", json!(10), Some(json!("1__0"))),
        ("1_", json!(1), Some(json!("1_"))),
        ("1_0.5", json!(10.5), Some(json!("1_0.5"))),
        (
            "9007199254740994.0",
            json!(9_007_199_254_740_994_u64),
            Some(json!(9_007_199_254_740_994.0)),
        ),
        ("1e400", json!("1e400"), None),
        ("<<", json!("<<"), Some(json!("<<"))),
    ]
}

fn scalar(text: &str) -> Result<Value, YamlError> {
    Ok(yaml::load_value(&format!("v: {text}\n"))?["v"].clone())
}

#[test]
fn yaml_scalars_match_kubectl() {
    let all = as_kubectl();
    assert!(all.len() >= 60, "only {}", all.len());
    for (text, expected) in all {
        assert_eq!(scalar(text), Ok(expected), "{text}");
    }
}

#[test]
fn yaml_known_differences_to_kubectl_are_unchanged() {
    for (text, _, here) in unlike_kubectl() {
        assert_eq!(scalar(text).ok(), here, "{text}");
    }
}

#[test]
fn yaml_infinity_and_nan_are_rejected() {
    for text in [".inf", "-.inf", ".nan"] {
        assert!(
            scalar(text).is_err(),
            "{text} has no JSON form and must be refused, as kubectl does"
        );
    }
}

#[test]
fn yaml_error_names_line_and_column() {
    for (text, line, column, part) in [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "duplicate"),
        ("a:\n  - b\n c: d\n", 3, 2, ""),
        ("a: [1, 2\nb: 3\n", 2, 0, ""),
        ("a: *nowhere\n", 1, 4, ""),
    ] {
        match yaml::load_all(text).unwrap_err() {
            YamlError::Read {
                line: at_line,
                column: at_column,
                message,
            } => {
                assert_eq!(at_line, line, "{text:?}: {message}");
                assert!(column == 0 || at_column == column, "{text:?}: column {at_column}: {message}");
                assert!(message.contains(part), "{message}");
            }
            YamlError::Write(message) => panic!("{message}"),
        }
    }
}

#[test]
fn yaml_unexpected_second_document_is_rejected_with_line() {
    match yaml::load_value("a: 1\n---\nb: 2\n").unwrap_err() {
        YamlError::Read { line, message, .. } => {
            assert!(line >= 2, "line {line}");
            assert_eq!(message, "a second document begins here, but only one document is expected");
        }
        YamlError::Write(message) => panic!("{message}"),
    }
}

#[test]
fn yaml_line_of_each_path_is_found() {
    let text =
        "# a comment\na: 1\nb:\n  c:\n  - d: 1\n    e: |\n      f: no key\n  - {g: 2}\n\"h.i\": {j: 1,\n  k: 2}\nl: &x\n  m: 1\nn: *x\n";
    for (path, line) in [
        (&["a"][..], Some(2)),
        (&["b"], Some(3)),
        (&["b", "c"], Some(4)),
        (&["b", "c", "0"], Some(5)),
        (&["b", "c", "0", "e"], Some(6)),
        (&["b", "c", "0", "e", "f"], Some(6)),
        (&["b", "c", "1", "g"], Some(8)),
        (&["b", "c", "2"], Some(4)),
        (&["h.i", "k"], Some(10)),
        (&["l", "m"], Some(12)),
        (&["n"], Some(13)),
        (&["z"], None),
        (&[], None),
    ] {
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        assert_eq!(yaml::line_of(text, &path), line, "{path:?}");
    }
    assert_eq!(yaml::line_of("a: [", &["a".to_owned()]), None);
}

#[test]
fn yaml_hostile_text_is_rejected_quickly() {
    let anchor = format!("a: &a [{}]\nb: [{}]\n", "x, ".repeat(30_000), "*a, ".repeat(20_000));
    let laughs = (0..12).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
        format!("{text}a{}: &a{} [{}]\n", i + 1, i + 1, format!("*a{i}, ").repeat(10))
    });
    let deep = "[".repeat(50_000);
    for text in [anchor, laughs, deep] {
        let started = std::time::Instant::now();
        let error = yaml::load_all(&text).unwrap_err();
        assert!(started.elapsed().as_secs() < 5, "{:?} for {error}", started.elapsed());
    }
}

#[test]
fn yaml_unindented_continuation_lines_are_read() {
    let text = "a:\n  description: 'one\n  two'\n  other: \"three\n  four\"\n";
    assert_eq!(
        yaml::load_value(text),
        Ok(json!({"a": {"description": "one two", "other": "three four"}}))
    );
}

#[test]
fn yaml_empty_documents_skipped_and_merge_keys_merged() {
    let text = "---\n---\na: 1\n---\n# nothing\n---\nbase: &b {x: 1}\nmore: {<<: *b, y: 2}\n";
    let expected = vec![json!({"a": 1}), json!({"base": {"x": 1}, "more": {"x": 1, "y": 2}})];
    assert_eq!(yaml::load_all(text), Ok(expected));
    assert_eq!(yaml::load_all(""), Ok(vec![]));
}

#[test]
fn yaml_dumped_scalars_round_trip() {
    let words: Vec<&str> = as_kubectl()
        .into_iter()
        .map(|(text, _)| text)
        .chain(unlike_kubectl().into_iter().map(|row| row.0))
        .collect();
    for word in words {
        let value = json!({"v": word, word: 1, "list": [word, {"deep": word}]});
        let text = yaml::dump(&value).unwrap();
        assert_eq!(yaml::load_value(&text), Ok(value), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn yaml_dumped_random_text_round_trips(text in prop_oneof![any::<String>(), "[ \\n\\t:#'\"a-]{0,12}", "(\\PC| |\n){90,120}"]) {
        let value = json!({"v": text, "list": [text], &text: {"nested": text}});
        let documents = [value.clone(), json!({"next": 1})];
        let written = yaml::dump_all(&documents);
        prop_assert_eq!(yaml::load_all(&written), Ok(documents.to_vec()), "{}", written);
    }
}

/// The second opinion: libyaml's semantics, by a crate that shares no code with ours.
fn second_opinion(text: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(text).map(|document| {
        let value: Value = serde::Deserialize::deserialize(document).unwrap();
        value
    });
    documents.filter(|value| !value.is_null()).collect()
}

#[test]
fn yaml_rendered_charts_parse_like_libyaml() {
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        let source = crate::generate::matrix::source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(driver)).unwrap();
        for version in source.versions() {
            let chart = chart::open(&chart::package(&source, &version).unwrap()).unwrap();
            let objects = chart::render(&chart, &Value::Null, &Context::default()).unwrap();
            let text = yaml::dump_all(&objects);
            assert_eq!(yaml::load_all(&text).unwrap(), objects, "{driver} {version}");
            assert_eq!(second_opinion(&text), objects, "{driver} {version}");
        }
    }
}

/// Every YAML file of the repository, and the drivers' own manifests where `VDO_UPSTREAM_DIR` names them.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = ["charts", "deploy", "matrix-index", "tests/fixtures", "tests/cluster/data"]
        .map(|folder| root.join(folder))
        .into();
    folders.extend(crate::sample::upstream());
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // Templates are YAML only once they are rendered.
            if path.is_dir() && !path.ends_with("templates") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 35, "found only {} files", files.len());
    files
}

#[test]
fn yaml_files_of_repository_parse_like_libyaml() {
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (ours, theirs) = (yaml::load_all(&text).unwrap(), second_opinion(&text));
        assert_eq!(ours.len(), theirs.len(), "{}", path.display());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            // As objects: libyaml keeps 32.0 apart from 32, JSON does not.
            let found = [differences(ours, theirs), differences(theirs, ours)].concat();
            assert!(found.is_empty(), "{}: {found:#?}", path.display());
        }
    }
}

/// Where the two parsers differ, and ours is kubectl's way: the reason for the choice, held in place.
#[test]
fn yaml_known_differences_to_libyaml_are_unchanged() {
    for text in ["0440", "yes", "n", "1_000", "1e3", "08"] {
        let theirs = second_opinion(&format!("v: {text}\n"))[0]["v"].clone();
        assert_ne!(
            scalar(text).unwrap(),
            theirs,
            "{text}: no longer a difference; update docs/decisions/001-yaml.md"
        );
    }
    let merged = "base: &b {x: 1}\nmore: {<<: *b}\n";
    assert_eq!(second_opinion(merged)[0]["more"], json!({"<<": {"x": 1}}));
    assert_eq!(second_opinion("a: 1\na: 2\n")[0], json!({"a": 2}));
}

/// The real kubectl: `config view --raw` shows what it read of a kubeconfig, without a server.
fn kubectl() -> PathBuf {
    use vdo_testbed::{Binaries, Part};
    Binaries::ensure(&[Part::Kubectl]).unwrap().path(Part::Kubectl)
}

/// What kubectl reads of a YAML value.
fn read_by_kubectl(kubectl: &Path, text: &str) -> Result<Value, String> {
    all_read_by_kubectl(kubectl, &[text]).map(|mut all| all.remove(0))
}

/// What kubectl reads of YAML values in one run; each text is put below a key by indenting it.
fn all_read_by_kubectl(kubectl: &Path, texts: &[&str]) -> Result<Vec<Value>, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let mut config = "apiVersion: v1\nkind: Config\nextensions:\n".to_owned();
    for (at, text) in texts.iter().enumerate() {
        let indented: String = text.lines().map(|line| format!("      {line}\n")).collect();
        config += &format!("- name: x{at}\n  extension:\n    payload:\n{indented}");
    }
    std::fs::write(&file, config).unwrap();
    let output = std::process::Command::new(kubectl)
        .args(["config", "view", "--raw", "-o", "json", "--kubeconfig"])
        .arg(&file)
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = shown["extensions"].as_array().unwrap();
    let of = |at| found.iter().find(|one| one["name"] == format!("x{at}")).unwrap();
    Ok((0..texts.len()).map(|at| of(at)["extension"]["payload"].clone()).collect())
}

#[test]
fn yaml_recorded_scalars_match_installed_kubectl() {
    let kubectl = kubectl();
    let all: Vec<(&str, Value)> = as_kubectl()
        .into_iter()
        .chain(unlike_kubectl().into_iter().map(|row| (row.0, row.1)))
        .collect();
    let text: String = all.iter().enumerate().map(|(at, (text, _))| format!("k{at}: {text}\n")).collect();
    let read = read_by_kubectl(&kubectl, &text).unwrap();
    let mut wrong = Vec::new();
    for (at, (text, expected)) in all.iter().enumerate() {
        let found = &read[format!("k{at}")];
        if found != expected {
            wrong.push(format!("{text}: kubectl reads {found}, recorded is {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn yaml_files_of_repository_match_kubectl() {
    let kubectl = kubectl();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        // documents are separated by a line here, and by the parser there: both have to find the same
        let parts: Vec<&str> = text.split("\n---").map(|part| part.trim_start_matches("---")).collect();
        let mut theirs = all_read_by_kubectl(&kubectl, &parts).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        theirs.retain(|document| !document.is_null());
        assert_eq!(yaml::load_all(&text).unwrap(), theirs, "{}", path.display());
    }
}
