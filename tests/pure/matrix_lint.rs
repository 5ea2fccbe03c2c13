// SPDX-License-Identifier: Apache-2.0
//! Every class of mistake in an index is found, with its place; and the published schema describes the index that is published.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failing test should stop where it fails")]

use serde_json::{Value, json};
use vdo_core::matrix::Index;
use vdo_core::matrix::lint::Finding;

const INDEX: &str = include_str!("../../matrix-index/index.yaml");

/// The mistakes in a text, in its order.
fn lint(text: &str) -> Vec<Finding> {
    let lender = Index::parse(INDEX.as_bytes()).unwrap();
    vdo_core::matrix::lint::lint(text, &lender).located(text)
}

fn words(findings: Vec<Finding>) -> String {
    let word = |f: Finding| format!("{} | {} | {}", f.at, f.field, f.problem);
    findings.into_iter().map(word).collect::<Vec<_>>().join("\n")
}

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
fn matrix_lint_each_mistake_has_its_place() {
    assert_eq!(lint(&toy().to_string()), [], "the unchanged one is good");
    let found = |change: &dyn Fn(&mut Value)| {
        let mut value = toy();
        change(&mut value);
        words(lint(&value.to_string()))
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
fn matrix_lint_broken_yaml_has_line() {
    let findings = lint("a: 1\nb: [\n");
    assert_eq!(findings.len(), 1);
    assert!(findings[0].line.is_some_and(|line| line >= 2), "{findings:?}");
}

#[test]
fn matrix_lint_duplicate_key_has_line() {
    let findings = lint("a: 1\nc: 2\na: 3\n");
    assert_eq!((findings.len(), findings[0].line), (1, Some(3)), "{findings:?}");
}

/// Every finding has the line of what it is about, also in JSON; one about what is missing has the line of what lacks it.
#[test]
fn matrix_lint_findings_have_lines_in_text_order() {
    let mut value = toy();
    let first = &mut value["drivers"]["toy"]["versions"][0];
    first["chart"]["sha256"] = json!("abc");
    first["kubernetes"]["max"] = json!("1.20");
    first.as_object_mut().unwrap().shift_remove("vsphere");
    value["drivers"]["toy"]["versions"][2]["colour"] = json!("red");
    for text in [vdo_api::yaml::dump(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
        let line = |part: &str, after: usize| {
            let found = text.lines().enumerate().skip(after).find(|(_, line)| line.contains(part));
            found.map(|(i, _)| i as u64 + 1).unwrap()
        };
        let driver = usize::try_from(line("toy", 0)).unwrap();
        let place = |finding: &Finding| (finding.line.unwrap(), finding.field.clone());
        let found: Vec<_> = lint(&text).iter().map(place).collect();
        let kubernetes = line("kubernetes", driver);
        // in block YAML an entry begins with its first field, in JSON with its brace
        let entry = line("3.0.0", driver) - u64::from(text.starts_with('{'));
        assert_eq!(
            found,
            [
                (entry, "vsphere".to_owned()),
                (line("abc", 0), "chart.sha256".to_owned()),
                (kubernetes, "kubernetes".to_owned()),
                (line("colour", 0), "colour".to_owned()),
            ],
            "{text}"
        );
    }
}

/// A file of the original operator: all its mistakes at once, each with its place.
#[test]
fn matrix_lint_original_format_every_mistake_is_found() {
    let text = r#"{
  "CSI": {
    "2.7.0": {"vSphere": {"min": "6.7.3", "max": "8.0.1"}, "k8s": {"min": "1.25", "max": "1.23"}},
    "2.7.1": {"vSphere": {"min": "7.0", "max": "6.7"}, "k8s": {"min": "1.23", "maks": "1.25"}},
    "2.7.2": {"vSphere": {"min": 6.7}, "k8s": {"skewVersion": "1.25", "min": "1.24"}, "isCPIRequird": true},
    "2.7.3": {"vSphere": {}, "k8s": {"min": "1.30"}, "isCPIRequired": true},
    "3.0.0": {"k8s": {"min": "newest"}, "isCPIRequired": "yes", "deploymentPath": "x"},
    "9.9.9": {"vSphere": {}, "k8s": {}},
    "newest": {"vSphere": {}, "k8s": {}}
  },
  "CPI": {"1.25.0": {"vSphere": {}, "k8s": {"skewVersion": "1.25"}}},
  "CIS": {}
}"#;
    let found = lint(text);
    let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
    assert!(lines.iter().all(Option::is_some), "{found:?}");
    let lined = |f: &Finding| format!("{}: {} | {} | {}", f.line.unwrap(), f.at, f.field, f.problem);
    insta::assert_snapshot!(found.iter().map(lined).collect::<Vec<_>>().join("\n"));
}

/// What keeps a version from ever being chosen may lie in another one.
#[test]
fn matrix_lint_unselectable_through_requirement_is_found() {
    let entry = |version: &str, min: &str, max: &str, requires: Value| {
        json!({
            "version": version, "chart": {"urls": ["charts/x.tgz"], "sha256": "0".repeat(64)}, "requires": requires,
            "kubernetes": {"min": min, "max": max, "confidence": "unverified"},
            "vsphere": {"min": null, "max": null, "confidence": "unverified"},
        })
    };
    let need = |driver: &str| json!([{"driver": driver}]);
    let find = |a: Value, b: Value, c: Value| {
        let index = json!({
            "apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1,
            "drivers": {"a": {"role": "other", "versions": a}, "b": {"role": "other", "versions": b}, "c": {"role": "other", "versions": c}},
        });
        words(lint(&index.to_string()))
    };
    // c is for another Kubernetes than b, which needs it; so a has nothing to stand on
    let chain = find(
        json!([entry("1.0.0", "1.30", "1.34", need("b"))]),
        json!([entry("1.0.0", "1.30", "1.34", need("c"))]),
        json!([entry("1.0.0", "1.20", "1.21", json!([]))]),
    );
    // b and c would each do, but never at once
    let apart = find(
        json!([entry("1.0.0", "1.20", "1.34", json!([{"driver": "b"}, {"driver": "c"}]))]),
        json!([entry("1.0.0", "1.30", "1.34", json!([]))]),
        json!([entry("1.0.0", "1.20", "1.21", json!([]))]),
    );
    // one that is needed only when something is switched on does not count
    let when = json!([{"driver": "c", "when": {"featureState": "x", "is": false}}]);
    let sometimes = find(
        json!([entry("1.0.0", "1.30", "1.34", when)]),
        json!([]),
        json!([entry("1.0.0", "1.20", "1.21", json!([]))]),
    );
    assert_eq!(sometimes, "");
    insta::assert_snapshot!(format!("chain\n{chain}\n\napart\n{apart}"));
}

#[test]
fn matrix_lint_embedded_index_has_no_mistakes() {
    let text = INDEX;
    assert_eq!(lint(text), []);
}

#[test]
fn matrix_schema_accepts_embedded_index_only() {
    let text = INDEX;
    let schema: Value = serde_json::from_str(include_str!("../../docs/schema/matrix-v1.json")).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems = |index: &Value| validator.iter_errors(index).map(|e| e.to_string()).collect::<Vec<_>>();
    let mut index = vdo_api::yaml::load_value(text).unwrap();
    assert_eq!(problems(&index), Vec::<String>::new());
    index["drivers"]["vsphere-csi"]["versions"][0]["kubernetes"]["confidence"] = json!("certain");
    assert_eq!(problems(&index).len(), 1);
}

/// Every field of the schema has its row on the page.
#[test]
fn matrix_page_every_schema_field_is_documented() {
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
    let schema: Value = serde_json::from_str(include_str!("../../docs/schema/matrix-v1.json")).unwrap();
    let mut all = Vec::new();
    names(&schema, &mut all);
    let page = include_str!("../../docs/matrix.md");
    let missing: Vec<&String> = all.iter().filter(|name| !page.contains(&format!("{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What is just right is not a mistake, and what is just wrong is one.
#[test]
fn matrix_lint_bounds_are_exact() {
    let found = |change: &dyn Fn(&mut Value)| {
        let mut value = toy();
        change(&mut value);
        words(lint(&value.to_string()))
    };
    let first = |v: &mut Value, field: &str, to: Value| v["drivers"]["toy"]["versions"][0][field] = to;
    let requires = |min: &str, max: &str| json!([{"driver": "base", "min": min, "max": max}]);
    for (what, findings, expected) in [
        (
            "it expires when it was generated",
            found(&|v| v["expires"] = v["generated"].clone()),
            "this time must be later than generated",
        ),
        (
            "one version is needed",
            found(&|v| first(v, "requires", requires("1.0.0", "1.0.0"))),
            "",
        ),
        (
            "the ends are swapped",
            found(&|v| first(v, "requires", requires("1.0.1", "1.0.0"))),
            "no version of base lies between 1.0.1 and 1.0.0",
        ),
        (
            "what is needed is too old",
            found(&|v| first(v, "requires", requires("0.1.0", "0.9.0"))),
            "the version of base that it needs is not listed",
        ),
        (
            "a newer edge",
            found(&|v| first(v, "upgradesFrom", json!({"min": "4.0.0"}))),
            "4.0.0 is not older than 3.0.0",
        ),
        (
            "another build of the same version",
            found(&|v| {
                v["vcenterBuilds"] =
                    json!([{"reported": "6.7.0", "build": 14, "means": "6.7.3"}, {"reported": "6.7.0", "build": 15, "means": "6.7.3"}])
            }),
            "",
        ),
        (
            "evidence of a build",
            found(&|v| v["vcenterBuilds"][0]["evidence"] = json!(["rumour"])),
            "vcenterBuilds.0.evidence.0 | \"rumour\" is not listed under sources",
        ),
        (
            "evidence of a requirement",
            found(&|v| first(v, "requires", json!([{"driver": "base", "evidence": ["rumour"]}]))),
            "requires.0.evidence.0 | \"rumour\" is not listed under sources",
        ),
        (
            "secondary evidence",
            found(&|v| first(v, "vsphere", json!({"min": "7.0", "max": null, "confidence": "secondary"}))),
            "vsphere.confidence | it names no evidence",
        ),
        (
            "a feature above the vCenters",
            found(&|v| {
                first(v, "vsphere", json!({"min": "7.0", "max": "8.0", "confidence": "unverified"}));
                first(v, "features", json!({"f": {"vsphere": {"min": "9.0"}}}));
            }),
            "contains no vCenter version that this driver version supports",
        ),
        (
            "a feature that begins where the vCenters end",
            found(&|v| {
                first(v, "vsphere", json!({"min": "7.0", "max": "8.0", "confidence": "unverified"}));
                first(v, "features", json!({"f": {"vsphere": {"min": "8.0"}}}));
            }),
            "",
        ),
        (
            "what is needed is for other vCenters",
            found(&|v| {
                v["drivers"]["base"]["versions"][0]["vsphere"] = json!({"min": null, "max": "6.7", "confidence": "unverified"});
                v["drivers"]["base"]["versions"][0]["features"] = json!({});
            }),
            "no combination of Kubernetes and vCenter is supported both by this version and by the versions of base that it needs",
        ),
        (
            "a replacement that is only deprecated",
            found(&|v| v["drivers"]["toy"]["versions"][1]["state"] = json!({"kind": "deprecated", "reason": "old"})),
            "",
        ),
    ] {
        match expected {
            "" => assert_eq!(findings, "", "{what}"),
            part => assert!(findings.contains(part), "{what}: {findings}"),
        }
    }
}

/// Every entry of which chart and digest can be read is left to the caller who can compare it with the package.
#[test]
fn matrix_lint_report_lists_charts_to_check() {
    let lender = Index::parse(INDEX.as_bytes()).unwrap();
    let mut value = toy();
    let versions = value["drivers"]["toy"]["versions"].as_array_mut().unwrap();
    versions[0]["images"] = json!([{"name": "driver", "ref": "example.com/driver:v3"}]);
    versions[1]["chart"]["sha256"] = json!("abc");
    let report = vdo_core::matrix::lint::lint(&value.to_string(), &lender);
    let promise = |p: &vdo_core::matrix::lint::Promise| format!("{} {} {} {}", p.driver, p.version, p.chart.urls.join(" "), p.images.len());
    let charts: Vec<String> = report.charts.iter().map(promise).collect();
    assert_eq!(
        charts,
        [
            "toy 3.0.0 charts/toy-3.0.0.tgz 1",
            "toy 1.0.0 charts/toy-1.0.0.tgz 0",
            "base 1.0.0 charts/toy-1.0.0.tgz 0"
        ]
    );
}

/// Quotes are advised only for a number that stands where a text should.
#[test]
fn matrix_lint_quotes_are_advised_only_for_numbers() {
    let found = |path: &str, to: Value| {
        let mut value = toy();
        *value.pointer_mut(path).unwrap() = to;
        words(lint(&value.to_string()))
    };
    for (path, to, quotes) in [
        ("/drivers/toy/versions/0/version", json!(3.1), true),
        ("/drivers/toy/versions/0/version", json!([]), false),
        ("/drivers/toy/versions/0/kubernetes/confidence", json!("certain"), false),
        ("/vcenterBuilds/0/build", json!(1.5), false),
    ] {
        let findings = found(path, to);
        assert!(!findings.is_empty(), "{path}");
        assert_eq!(findings.contains("put versions in quotes"), quotes, "{findings}");
    }
}
