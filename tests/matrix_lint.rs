//! Every class of mistake in an index is found, with its place; and the published schema describes the index that is published.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failing test should stop where it fails")]

use serde_json::{Value, json};
use vdo::fetch::embedded;
use vdo::matrix::lint::lint;

fn toy() -> Value {
    let entry = |version: &str| {
        json!({
            "version": version,
            "chart": {"urls": [format!("charts/toy-{version}.tgz")], "sha256": "0".repeat(64)},
            "kubernetes": {"min": "1.30", "max": "1.34", "confidence": "primary", "evidence": ["notes"]},
            "vsphere": {"min": "7.0", "max": null, "confidence": "unverified"},
            "features": {"snapshots": {"vsphere": {"min": "7.0.3"}, "evidence": ["notes"]}},
        })
    };
    let mut versions = vec![entry("3.0.0"), entry("2.0.0"), entry("1.0.0")];
    versions[0]["upgradesFrom"] = json!({"min": "2.0.0", "preconditions": ["Backup"]});
    versions[0]["requires"] = json!([{"driver": "base", "min": "1.0.0"}]);
    versions[2]["state"] = json!({"kind": "withdrawn", "reason": "it loses volumes", "use": "2.0.0"});
    json!({
        "apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1,
        "generated": "2026-01-01T00:00:00Z", "expires": "2026-06-01T00:00:00Z",
        "sources": {"notes": {"url": "https://example.com"}},
        "preconditions": {"Backup": "there is a backup"},
        "vcenterBuilds": [{"reported": "6.7.0", "build": 14, "means": "6.7.3"}],
        "drivers": {"toy": {"role": "storage", "versions": versions}, "base": {"role": "other", "versions": [entry("1.0.0")]}},
    })
}

#[test]
fn every_class_of_mistake_has_its_place() {
    assert_eq!(lint(&toy().to_string()).findings, [], "the unchanged one is good");
    let found = |change: &dyn Fn(&mut Value)| {
        let mut value = toy();
        change(&mut value);
        let findings = lint(&value.to_string()).findings;
        findings
            .into_iter()
            .map(|f| format!("{} | {} | {}", f.at, f.field, f.problem))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let first = "/drivers/toy/versions/0";
    let set = |path: &str, to: Value| {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = format!("{first}{parent}");
        found(&|value| value.pointer_mut(&parent).unwrap()[key] = to.clone())
    };
    let cases = [
        ("unknown field at the top", found(&|v| v["colour"] = json!("red"))),
        ("unknown field", set("/colour", json!("red"))),
        ("unknown field, deep", set("/kubernetes/maximum", json!("1.35"))),
        (
            "missing field",
            found(&|v| drop(v["drivers"]["toy"]["versions"][0].as_object_mut().unwrap().shift_remove("vsphere"))),
        ),
        ("wrong kind", set("/kubernetes/min", json!(1.3))),
        ("foreign", found(&|v| v["apiVersion"] = json!("v9"))),
        ("expires too early", found(&|v| v["expires"] = json!("2025-01-01T00:00:00Z"))),
        ("no time", found(&|v| v["expires"] = json!("soon"))),
        ("empty range", set("/kubernetes/max", json!("1.20"))),
        ("no version", set("/vsphere/min", json!("U3"))),
        ("listed twice", set("/version", json!("2.0.0"))),
        (
            "builds overlap",
            found(&|v| {
                v["vcenterBuilds"] =
                    json!([{"reported": "6.7.0", "build": 14, "means": "6.7.3"}, {"reported": "6.7.0", "build": 14, "means": "6.7.2"}])
            }),
        ),
        ("feature outside", set("/features/snapshots/vsphere", json!({"max": "6.7"}))),
        (
            "feature empty",
            set("/features/snapshots/vsphere", json!({"min": "8.0", "max": "7.0"})),
        ),
        ("unknown evidence", set("/features/snapshots/evidence", json!(["rumour"]))),
        ("no evidence", set("/kubernetes/evidence", json!([]))),
        ("unknown edge", set("/upgradesFrom/min", json!("2.5.0"))),
        ("edge to itself", set("/upgradesFrom/min", json!("3.0.0"))),
        ("unknown precondition", set("/upgradesFrom/preconditions", json!(["Luck"]))),
        ("unknown driver", set("/requires/0/driver", json!("bass"))),
        ("requires itself", set("/requires/0/driver", json!("toy"))),
        ("requires what is not there", set("/requires/0/min", json!("2.0.0"))),
        (
            "requires the impossible",
            found(&|v| {
                v["drivers"]["base"]["versions"][0]["kubernetes"]["min"] = json!("1.10");
                v["drivers"]["base"]["versions"][0]["kubernetes"]["max"] = json!("1.12");
            }),
        ),
        (
            "cycle of drivers",
            found(&|v| v["drivers"]["base"]["versions"][0]["requires"] = json!([{"driver": "toy"}])),
        ),
        (
            "replacement unknown",
            set("/state", json!({"kind": "withdrawn", "reason": "bad", "use": "9.9.9"})),
        ),
        (
            "replacement cycle",
            found(&|v| {
                v["drivers"]["toy"]["versions"][1]["state"] = json!({"kind": "deprecated", "reason": "old", "use": "1.0.0"});
            }),
        ),
        (
            "replacement withdrawn",
            found(&|v| v["drivers"]["toy"]["versions"][1]["state"] = json!({"kind": "withdrawn", "reason": "bad"})),
        ),
        ("digest of the wrong length", set("/chart/sha256", json!("abc"))),
        ("no chart location", set("/chart/urls", json!([]))),
    ];
    for (title, findings) in &cases {
        assert!(!findings.is_empty(), "{title} is not found");
    }
    let text: Vec<String> = cases.iter().map(|(title, findings)| format!("{title}\n{findings}\n")).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn what_is_no_yaml_is_said_with_its_line() {
    let findings = lint("a: 1\nb: [\n").findings;
    assert_eq!(findings.len(), 1);
    assert!(findings[0].problem.contains("line"), "{}", findings[0].problem);
    let findings = lint(r#"{"CSI": {"2.7.0": {"vSphere": {}, "k8s": {"min": "1.25", "max": "1.23"}}}}"#).findings;
    assert_eq!(findings[0].at, "CSI.2.7.0");
}

#[test]
fn the_published_index_has_no_mistakes_and_follows_the_schema() {
    let text = std::str::from_utf8(embedded::index()).unwrap();
    assert_eq!(lint(text).findings, []);
    let schema: Value = serde_json::from_str(include_str!("../docs/schema/matrix-v1.json")).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems = |index: &Value| validator.iter_errors(index).map(|e| e.to_string()).collect::<Vec<_>>();
    let mut index = vdo::yaml::load_value(text).unwrap();
    assert_eq!(problems(&index), Vec::<String>::new());
    index["drivers"]["vsphere-csi"]["versions"][0]["kubernetes"]["confidence"] = json!("certain");
    assert_eq!(problems(&index).len(), 1);
}

/// Every field of the schema has its row on the page.
#[test]
fn the_page_explains_every_field() {
    fn names(schema: &Value, into: &mut Vec<String>) {
        if let Some(properties) = schema["properties"].as_object() {
            for (name, inner) in properties {
                into.push(name.clone());
                names(inner, into);
            }
        }
        for inner in ["items", "additionalProperties"] {
            if schema[inner].is_object() {
                names(&schema[inner], into);
            }
        }
    }
    let schema: Value = serde_json::from_str(include_str!("../docs/schema/matrix-v1.json")).unwrap();
    let mut all = Vec::new();
    names(&schema, &mut all);
    let page = include_str!("../docs/matrix.md");
    let missing: Vec<&String> = all.iter().filter(|name| !page.contains(&format!("{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
