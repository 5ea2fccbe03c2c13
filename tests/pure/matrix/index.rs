// SPDX-License-Identifier: Apache-2.0
//! How an index is read, and what is refused.

use serde_json::{Value, json};
use vdo_core::matrix::Index;

/// A small index with one of everything.
pub fn toy() -> Value {
    let entry = |version: &str, min: &str, max: &str| {
        json!({
            "version": version,
            "chart": {"urls": [format!("charts/toy-{version}.tgz")], "sha256": "0".repeat(64)},
            "kubernetes": {"min": min, "max": max, "confidence": "primary", "evidence": ["notes"]},
            "vsphere": {"min": "7.0", "max": null, "confidence": "secondary"},
        })
    };
    let mut versions = vec![
        entry("2.0.0", "1.30", "1.34"),
        entry("1.9.0", "1.30", "1.34"),
        entry("1.8.0", "1.28", "1.34"),
        entry("2.1.0-rc.1", "1.30", "1.35"),
    ];
    versions[0]["state"] = json!({"kind": "withdrawn", "reason": "it loses volumes", "since": "2026-10-01", "use": "1.9.0"});
    versions[1]["requires"] = json!([{"driver": "base", "reason": "it reads the node's zone"}]);
    versions[2]["state"] = json!({"kind": "deprecated", "reason": "it is slow"});
    json!({
        "apiVersion": "vdo.vmware.com/matrix/v1",
        "kind": "CompatibilityMatrix",
        "version": 7,
        "expires": "2027-05-20T00:00:00Z",
        "sources": {"notes": {"url": "https://example.com"}},
        "drivers": {
            "toy": {"role": "storage", "versions": versions},
            "base": {"role": "other", "versions": [entry("1.0.0", "1.20", "1.40")]},
        },
    })
}

pub fn parse(value: &Value) -> Index {
    Index::parse(value.to_string().as_bytes()).unwrap()
}

/// One mutation of a good index, and what is said about it.
#[test]
fn matrix_index_malformed_reports_place() {
    let mutate = |change: &dyn Fn(&mut Value)| {
        let mut value = toy();
        change(&mut value);
        let error = Index::parse(value.to_string().as_bytes()).unwrap_err();
        std::error::Error::source(&error).map_or(error.to_string(), |source| format!("{error}: {source}"))
    };
    let first = "/drivers/toy/versions/0";
    let set = |path: &str, to: Value| {
        let pointer = format!("{first}{path}");
        mutate(&|value| *value.pointer_mut(&pointer).unwrap() = to.clone())
    };
    let mut said = vec![
        mutate(&|v| v["apiVersion"] = json!("vdo.vmware.com/matrix/v2")),
        mutate(&|v| v["kind"] = json!("Pod")),
        mutate(&|v| drop(v.as_object_mut().unwrap().remove("version"))),
        mutate(&|v| {
            drop(
                v.pointer_mut(&format!("{first}/chart"))
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .remove("sha256"),
            )
        }),
        set("/chart/sha256", json!("abc")),
        set("/chart/urls", json!([])),
        set("/version", json!("1.9.0")),
        set("/version", json!("newest")),
        set("/kubernetes", json!({"min": "1.35", "max": "1.34", "confidence": "primary"})),
        set("/kubernetes/min", json!(1.3)),
        set("/kubernetes/min", json!("latest")),
        set("/kubernetes/evidence", json!(["rumour"])),
        set("/kubernetes/confidence", json!("certain")),
        set("/state/kind", json!("broken")),
        mutate(&|v| v["drivers"]["toy"]["versions"][1]["requires"][0]["driver"] = json!("bass")),
    ];
    said.push(Index::parse(b"a: 1\na: 2\n").unwrap_err().to_string());
    said.push(Index::parse(&[0xff]).unwrap_err().to_string());
    insta::assert_snapshot!(said.join("\n"));
}

/// A few may come from a newer format; thousands would take quadratic time to take out.
#[test]
fn matrix_index_with_many_unknown_fields_is_refused() {
    let with = |count: usize| {
        let mut value = toy();
        for i in 0..count {
            value[format!("k{i}")] = json!(1);
        }
        Index::parse(value.to_string().as_bytes())
    };
    assert_eq!(with(100).map(|index| index.unknown_fields.len()).ok(), Some(100));
    let error = with(101).unwrap_err().to_string();
    assert!(
        error.contains("more than 100 fields that this version of VDO does not know"),
        "{error}"
    );
    assert!(with(20_000).is_err());
}

/// What a field that is not known holds is passed over, however much that is; what is known is bounded in values, and not in bytes alone.
#[test]
fn matrix_index_unknown_field_is_not_built_and_known_ones_are_counted() {
    let with = |field: &str, text: &str| {
        let good = toy().to_string();
        let json = good.replacen(r#""version":"2.0.0""#, &format!(r#""version":"2.0.0",{field}:{text}"#), 1);
        assert_ne!(json, good);
        [json.clone(), format!("# YAML\n{json}")].map(|text| Index::parse(text.as_bytes()))
    };
    let many = format!("[{}{{}}]", "{},".repeat(100_000));
    for index in with("\"colour\"", &many) {
        assert_eq!(index.unwrap().unknown_fields, ["drivers.toy 2.0.0.colour"]);
    }
    for index in with("\"images\"", &many) {
        let error = index.unwrap_err().to_string();
        assert!(error.contains("drivers.toy entry 1: it has too many values"), "{error}");
    }
    let mut value = toy();
    value["sources"] = (0..60_000)
        .map(|i| (format!("s{i}"), json!({"url": "u"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let error = Index::parse(value.to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains("at the top level: it has too many values"), "{error}");
}

#[test]
fn matrix_index_unknown_fields_are_reported_in_json_and_yaml() {
    let mut value = toy();
    value["colour"] = json!("red");
    value["sources"]["notes"]["kidn"] = json!("issue");
    value["drivers"]["toy"]["versions"][0]["colour"] = json!("blue");
    value["drivers"]["toy"]["versions"][0]["kubernetes"]["notes"] = json!("deep");
    value["drivers"]["toy"]["versions"][0]["state"]["sinse"] = json!("2026");
    value["drivers"]["toy"]["versions"][1]["requires"][0]["maxi"] = json!("1.0.0");
    let from_json = parse(&value);
    let mut unknown = from_json.unknown_fields.clone();
    unknown.sort();
    assert_eq!(
        unknown,
        [
            "colour",
            "drivers.toy 1.9.0.requires.0.maxi (did you mean max?)",
            "drivers.toy 2.0.0.colour",
            "drivers.toy 2.0.0.kubernetes.notes (did you mean note?)",
            "drivers.toy 2.0.0.state.sinse (did you mean since?)",
            "sources.notes.kidn (did you mean kind?)",
        ]
    );
    // what is left is read as if the rest were not there
    assert_eq!(
        Index {
            unknown_fields: Vec::new(),
            ..from_json.clone()
        },
        parse(&toy())
    );
    let from_yaml = Index::parse(vdo_api::yaml::dump(&value).unwrap().as_bytes()).unwrap();
    assert_eq!(from_json, from_yaml);
}

/// JSON is read entry by entry by a reader of its own. A comment before it makes it YAML, for the other one: what both say is the same.
#[test]
fn matrix_index_json_and_yaml_readers_agree() {
    let read = |text: &str| {
        let chain = |error: &dyn std::error::Error| error.source().map_or(error.to_string(), |source| format!("{error}: {source}"));
        let [json, yaml] = [text.to_owned(), format!("# YAML\n{text}")].map(|text| Index::parse(text.as_bytes()));
        let said = json.as_ref().err().map(|error| chain(error));
        match (&json, &yaml) {
            (Ok(json), Ok(yaml)) => assert_eq!(json, yaml),
            // the reader of YAML says where in the text, which has one line more
            (Err(json), Err(yaml)) => assert_eq!(std::mem::discriminant(json), std::mem::discriminant(yaml), "{text}"),
            _ => panic!("one reader takes what the other refuses: {json:?} {yaml:?} {text}"),
        }
        said
    };
    assert_eq!(
        read(&serde_json::to_string(&vdo_api::yaml::load_value(include_str!("../../../matrix-index/index.yaml")).unwrap()).unwrap()),
        None
    );
    let good = toy().to_string();
    assert_eq!(read(&good), None);
    let name = r#""version":"2.0.0""#;
    assert!(good.contains(name), "{good}");
    for (from, to, refused) in [
        (name, r#""version":"2.0.0","version":"2.0.1""#, true),
        (name, r#""version":"2.0.0","features":{"a":{},"a":{}}"#, true),
        (name, r#""version":"2.0.0","colour":"red""#, false),
        (name, r#""version":"newest""#, true),
        (name, r#""version":2.0"#, true),
        (r#""drivers":{"#, r#""drivers":{"toy":{"role":"storage","versions":[]},"#, true),
        (r#""drivers":{"#, r#""preconditions":{"a":"x","a":"y"},"drivers":{"#, true),
        (r#""drivers":{"#, r#""expires":"soon","drivers":{"#, true),
    ] {
        assert_eq!(read(&good.replacen(from, to, 1)).is_some(), refused, "{to}");
    }
    read(&format!("{good} x"));
    read(&good[..good.len() - 1]);
}

/// What is known of versions is kept once where it is the same, so that an index of thousands is a matter of megabytes.
#[test]
fn matrix_index_equal_facts_are_stored_once() {
    let mut value = toy();
    let entry = value["drivers"]["toy"]["versions"][0].clone();
    let versions: Vec<Value> = (0..5_000)
        .map(|i| {
            let mut entry = entry.clone();
            entry["version"] = format!("9.{}.{}", i / 100, i % 100).into();
            entry["kubernetes"]["max"] = format!("1.{}", 40 + i % 7).into();
            entry
        })
        .collect();
    value["drivers"]["toy"]["versions"] = versions.into();
    let text = value.to_string();
    for text in [text.clone(), format!("# YAML\n{text}")] {
        let index = Index::parse(text.as_bytes()).unwrap();
        let facts: std::collections::BTreeSet<_> = index.drivers["toy"]
            .versions
            .iter()
            .map(|entry| std::sync::Arc::as_ptr(&entry.facts))
            .collect();
        assert_eq!((index.drivers["toy"].versions.len(), facts.len()), (5_000, 7));
    }
}

#[test]
fn matrix_nearest_versions_are_the_neighbours() {
    let index = parse(&toy());
    for (version, expected) in [
        ("1.7.0", &["1.8.0"][..]),
        ("1.8.0", &["1.9.0"]),
        ("1.8.5", &["1.8.0", "1.9.0"]),
        ("2.0.0", &["1.9.0", "2.1.0-rc.1"]),
        ("3.0.0", &["2.1.0-rc.1"]),
    ] {
        let nearest = index.drivers["toy"].nearest(&version.parse().unwrap());
        let nearest: Vec<String> = nearest.iter().map(ToString::to_string).collect();
        assert_eq!(nearest, expected, "{version}");
    }
}

/// Whatever names something that the index has to explain is held against it.
#[test]
fn matrix_index_names_without_explanation_are_refused() {
    let refused = |part: &str, value: Value| {
        let mut index = toy();
        index["drivers"]["toy"]["versions"][0][part] = value;
        Index::parse(index.to_string().as_bytes()).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
    };
    let rumour =
        "the matrix index has an error at drivers.toy 2.0.0: the evidence \"rumour\" is not listed under sources; add it to sources";
    let support = |evidence: &str| json!({"min": "7.0", "max": null, "confidence": "secondary", "evidence": [evidence]});
    for (part, value, expected) in [
        ("vsphere", support("rumour"), rumour),
        ("vsphere", support("notes"), "accepted"),
        ("features", json!({"f": {"evidence": ["rumour"]}}), rumour),
        ("features", json!({"f": {"evidence": ["notes"]}}), "accepted"),
        ("requires", json!([{"driver": "base", "evidence": ["rumour"]}]), rumour),
        ("requires", json!([{"driver": "base", "evidence": ["notes"]}]), "accepted"),
        (
            "upgradesFrom",
            json!({"preconditions": ["Luck"]}),
            "the matrix index has an error at drivers.toy 2.0.0: the precondition \"Luck\" is not defined under preconditions",
        ),
    ] {
        assert_eq!(refused(part, value), expected, "{part}");
    }
}

#[test]
fn matrix_index_entry_without_version_is_counted_from_one() {
    let mut index = toy();
    index["drivers"]["toy"]["versions"][1]
        .as_object_mut()
        .unwrap()
        .shift_remove("version");
    let error = Index::parse(index.to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains("at drivers.toy entry 2: "), "{error}");
}

/// A file of the original operator is recognised by its tables; one of them is enough, and an index never is one.
#[test]
fn matrix_original_format_is_recognised_by_its_tables() {
    let version = json!({"1.0.0": {"vSphere": {}, "k8s": {"max": "1.25"}}});
    for (value, drivers) in [
        (json!({"CPI": version}), Some(1)),
        (json!({"CSI": version}), Some(1)),
        (json!({"CPI": version, "CSI": version, "CNI": {}}), Some(2)),
        (json!({"CNI": version}), None),
        (json!({"CSI": version, "apiVersion": "v1"}), None),
        (json!({"CSI": version, "drivers": {}}), None),
    ] {
        let index = Index::parse(value.to_string().as_bytes());
        assert_eq!(index.ok().map(|index| index.drivers.len()), drivers, "{value}");
    }
    let skewed = |bounds: Value| {
        let value = json!({"CPI": {"1.0.0": {"vSphere": {}, "k8s": bounds}}});
        Index::parse(value.to_string().as_bytes()).is_ok()
    };
    assert!(skewed(json!({"skewVersion": "1.25"})) && skewed(json!({"min": "1.24", "max": "1.25"})));
    assert!(!skewed(json!({"skewVersion": "1.25", "max": "1.26"})) && !skewed(json!({"skewVersion": "1.25", "min": "1.24"})));
}

/// Charts are lent to versions without one, and what the lender knows of sources and builds fills what is missing.
#[test]
fn matrix_charts_are_lent_only_to_versions_without_one() {
    let original = json!({"CSI": {"2.0.0": {"vSphere": {}, "k8s": {}}, "9.0.0": {"vSphere": {}, "k8s": {}}}});
    let original = Index::parse(original.to_string().as_bytes()).unwrap();
    let lender = |build: u64| {
        let mut value = toy();
        value["vcenterBuilds"] = json!([{"reported": "6.7.0", "build": build, "means": "6.7.3"}]);
        value["drivers"] = json!({"vsphere-csi": value["drivers"]["toy"].clone(), "base": value["drivers"]["base"].clone()});
        parse(&value)
    };
    let urls = |index: &Index| -> Vec<usize> {
        index.drivers["vsphere-csi"]
            .versions
            .iter()
            .map(|entry| entry.chart.urls.len())
            .collect()
    };
    let builds = |index: &Index| -> Vec<u64> { index.vcenter_builds.iter().map(|floor| floor.build).collect() };
    assert_eq!(urls(&original), [0, 0]);
    let lent = original.with_charts_of(&lender(14));
    assert_eq!(
        (urls(&lent), builds(&lent), lent.sources.contains_key("notes")),
        (vec![0, 1], vec![14], true)
    );
    let mut other = lender(15);
    for entry in &mut other.drivers.get_mut("vsphere-csi").unwrap().versions {
        entry.chart.urls.push("a second one".into());
    }
    let again = lent.with_charts_of(&other);
    assert_eq!((urls(&again), builds(&again)), (vec![0, 1], vec![14]), "what is there stays");
}

#[test]
fn matrix_index_text_instead_of_map_is_reported() {
    let mut index = toy();
    index["preconditions"] = json!("none");
    let error = Index::parse(index.to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains("expected a map"), "{error}");
}

/// What servers and people give instead of an index.
#[test]
fn matrix_index_something_else_is_named() {
    for (bytes, what) in [
        (&b""[..], "this is an empty document"),
        (b" \n", "this is an empty document"),
        (b"<!DOCTYPE html>", "this is a web page"),
        (b"\n <html>", "this is a web page"),
        (b"\x1f\x8b\x08\x00", "this is an archive"),
        (b"PK\x03\x04\x14", "this is an archive"),
        (b"PK\x03", "neither YAML nor JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"text", "apiVersion"),
    ] {
        let error = Index::parse(bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{bytes:?}: {error}");
    }
}

#[test]
fn matrix_requirement_in_words_names_its_versions_and_its_condition() {
    for (fields, expected) in [
        (json!({}), "base"),
        (json!({"min": "1.0.0"}), "base 1.0.0 and newer"),
        (json!({"max": "2.0.0"}), "base up to 2.0.0"),
        (json!({"min": "1.0.0", "max": "2.0.0"}), "base 1.0.0 to 2.0.0"),
        (json!({"min": "1.0.0", "max": "1.0.0"}), "base 1.0.0"),
        (json!({"when": {"featureState": "f", "is": false}}), "base when f is false"),
    ] {
        let mut requirement = json!({"driver": "base"});
        requirement.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let requirement: vdo_core::matrix::Requirement = serde_json::from_value(requirement).unwrap();
        assert_eq!(requirement.to_string(), expected);
    }
}
