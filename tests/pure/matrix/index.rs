//! How an index is read, and what is refused.

use serde_json::{Value, json};
use vdo::matrix::Index;

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
    assert!(error.contains("more than 100 fields that this version does not know"), "{error}");
    assert!(with(20_000).is_err());
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
    let from_yaml = Index::parse(vdo::yaml::dump(&value).unwrap().as_bytes()).unwrap();
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
            // where in the text is told by the one that reads it as YAML, which has one line more
            (Err(json), Err(yaml)) => assert_eq!(std::mem::discriminant(json), std::mem::discriminant(yaml), "{text}"),
            _ => panic!("one reader takes what the other refuses: {json:?} {yaml:?} {text}"),
        }
        said
    };
    assert_eq!(
        read(&serde_json::to_string(&vdo::yaml::load_value(include_str!("../../../matrix-index/index.yaml")).unwrap()).unwrap()),
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

/// What is known of versions is kept once where it is the same, so that an index of 100,000 is a matter of megabytes.
#[test]
fn matrix_index_equal_facts_are_stored_once() {
    let mut value = toy();
    let entry = value["drivers"]["toy"]["versions"][0].clone();
    let versions: Vec<Value> = (0..30_000)
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
        assert_eq!((index.drivers["toy"].versions.len(), facts.len()), (30_000, 7));
    }
}
