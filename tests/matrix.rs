//! The matrix: what is refused, what is chosen, and why not the others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo::matrix::{Cause, DriverRequest, Index, NoFit, Query, Rejection, Resolution, UpdatePolicy, resolve};
use vdo::types::{CPI, CSI, DriverName, DriverVersion, KubernetesVersion, VcenterVersion};

#[path = "../examples/generate/matrix.rs"]
#[allow(dead_code, reason = "the generator's other parts are not needed here")]
mod generate;

/// The index with every version of the facts, whichever charts there are by now.
fn full_index() -> Index {
    static INDEX: std::sync::OnceLock<Index> = std::sync::OnceLock::new();
    INDEX.get_or_init(read_full_index).clone()
}

fn read_full_index() -> Index {
    let facts = include_str!("../matrix-index/facts.yaml");
    let any = |_: &str, _: &DriverVersion| {
        Ok(Some(generate::Packed {
            sha256: "0".repeat(64),
            images: Vec::new(),
        }))
    };
    let index = generate::assembled(&vdo::yaml::load_value(facts).unwrap(), any).unwrap();
    Index::parse(index.to_string().as_bytes()).unwrap()
}

/// A question in test shorthand.
#[derive(Clone, Default)]
struct Ask {
    kubernetes: &'static str,
    vcenters: Vec<&'static str>,
    drivers: Vec<&'static str>,
    installed: Vec<(&'static str, &'static str)>,
    pin: Option<(&'static str, &'static str, bool)>,
    policy: UpdatePolicy,
}

fn ask(kubernetes: &'static str, vcenters: &[&'static str]) -> Ask {
    Ask {
        kubernetes,
        vcenters: vcenters.to_vec(),
        drivers: vec![CPI, CSI],
        ..Ask::default()
    }
}

impl Ask {
    fn of(self, index: &Index) -> Result<Resolution, Box<NoFit>> {
        let kubernetes: KubernetesVersion = self.kubernetes.parse().unwrap();
        let name = |(i, version): (usize, &&str)| (format!("vc{}", i + 1), version.parse::<VcenterVersion>().unwrap());
        let vcenters: Vec<_> = self.vcenters.iter().enumerate().map(name).collect();
        let request = |driver: &&'static str| {
            let pin = self.pin.filter(|(pinned, ..)| pinned == driver);
            let request = DriverRequest {
                pin: pin.map(|(_, version, _)| version.parse().unwrap()),
                allow_incompatible: pin.is_some_and(|(_, _, allow)| allow),
                ..DriverRequest::default()
            };
            ((*driver).to_owned(), request)
        };
        let drivers: BTreeMap<DriverName, DriverRequest> = self.drivers.iter().map(request).collect();
        let installed = self.installed.iter().map(|(d, v)| ((*d).to_owned(), v.parse().unwrap())).collect();
        resolve(
            index,
            &Query {
                kubernetes: &kubernetes,
                vcenters: &vcenters,
                drivers: &drivers,
                installed: &installed,
                policy: self.policy,
            },
        )
    }
}

fn versions(resolution: &Resolution) -> Vec<String> {
    resolution.picks.values().map(|pick| pick.version.to_string()).collect()
}

#[test]
fn real_platforms_get_the_newest_that_fits_all() {
    let index = full_index();
    for (kubernetes, vcenters, cpi, csi) in [
        ("v1.34.4", &["8.0.3"][..], "1.34.0", "3.7.3"),
        ("v1.35.0", &["9.0.0.0"], "1.35.1", "3.7.3"),
        ("v1.33.1+rke2r1", &["7.0.3"], "1.33.1", "3.7.3"),
        ("v1.32.9-eks-1a2b3c4", &["8.0.2", "7.0.0"], "1.32.3", "3.6.3"),
        ("v1.33.0-rc.1", &["8.0.3"], "1.33.1", "3.7.3"),
        ("1.34", &[], "1.34.0", "3.7.3"),
    ] {
        let resolution = ask(kubernetes, vcenters).of(&index).unwrap();
        assert_eq!(versions(&resolution), [cpi, csi], "{kubernetes} {vcenters:?}");
    }
}

#[test]
fn the_reason_is_part_of_the_choice() {
    let index = full_index();
    let because = |ask: Ask, driver: &str| ask.of(&index).unwrap().picks[driver].because.clone();
    let base = ask("v1.34.4", &["8.0.3", "7.0.3"]);
    assert_eq!(because(base.clone(), CPI), "its minor must equal Kubernetes 1.34");
    assert_eq!(
        because(base.clone(), CSI),
        "newest that supports Kubernetes 1.34 and vCenter 7.0.3 and 8.0.3"
    );
    let pinned = Ask {
        pin: Some((CSI, "3.6.3", false)),
        ..base.clone()
    };
    assert_eq!(because(pinned.clone(), CSI), "pinned in spec");
    assert_eq!(pinned.of(&index).unwrap().picks[CSI].newest, Some("3.7.3".parse().unwrap()));
    let installed = Ask {
        installed: vec![(CSI, "3.6.3")],
        ..base
    };
    assert_eq!(because(installed, CSI), "installed and still fits");
}

#[test]
fn installed_versions_stay_or_go_by_policy() {
    let index = full_index();
    for (policy, kubernetes, installed, expected) in [
        (UpdatePolicy::Compatible, "v1.34.4", "3.6.3", Ok("3.6.3")),
        (UpdatePolicy::Latest, "v1.34.4", "3.6.3", Ok("3.7.3")),
        (UpdatePolicy::Disabled, "v1.34.4", "3.5.1", Ok("3.5.1")),
        // no longer fits
        (UpdatePolicy::Compatible, "v1.34.4", "3.5.1", Ok("3.7.3")),
        // not in the matrix: older may be left, newer is not walked back from
        (UpdatePolicy::Compatible, "v1.34.4", "2.6.2", Ok("3.7.3")),
        (UpdatePolicy::Compatible, "v1.34.4", "3.8.0", Err(())),
        (UpdatePolicy::Disabled, "v1.34.4", "3.8.0", Err(())),
        // the installed one does not fit, so going back is allowed
        (UpdatePolicy::Compatible, "v1.32.4", "3.7.3", Ok("3.6.3")),
    ] {
        let question = Ask {
            installed: vec![(CSI, installed)],
            drivers: vec![CSI],
            policy,
            ..ask(kubernetes, &["8.0.3"])
        };
        let found = question.of(&index).map(|resolution| versions(&resolution)[0].clone());
        assert_eq!(found.as_deref().map_err(|_| ()), expected, "{policy:?} {kubernetes} {installed}");
    }
}

#[test]
fn refusals_say_what_why_and_what_would_help() {
    let index = full_index();
    let csi = |ask: Ask| Ask { drivers: vec![CSI], ..ask };
    let pin = |version, allow| Ask {
        pin: Some((CSI, version, allow)),
        ..csi(ask("v1.34.4", &["8.0.3"]))
    };
    let installed = |version, policy| Ask {
        installed: vec![(CSI, version)],
        policy,
        ..csi(ask("v1.34.4", &["8.0.3"]))
    };
    let questions = [
        ("Kubernetes too new for CPI", ask("v1.37.0", &["8.0.3"])),
        ("Kubernetes too new for CSI", csi(ask("v1.36.0", &["8.0.3"]))),
        ("Kubernetes too old", csi(ask("v1.20.3", &["8.0.3"]))),
        ("vCenter too old", csi(ask("v1.34.4", &["8.0.3", "6.7.0"]))),
        ("pin unknown", pin("3.7.9", false)),
        ("pin newer than all", pin("4.0.0", true)),
        ("pin does not fit", pin("3.5.1", false)),
        ("installed is newer", installed("3.8.0", UpdatePolicy::Latest)),
        ("installed is unknown", installed("3.8.0", UpdatePolicy::Disabled)),
        (
            "driver unknown",
            Ask {
                drivers: vec!["antrea"],
                ..ask("v1.34.4", &[])
            },
        ),
    ];
    let text = questions.map(|(title, question)| format!("{title}\n  {}\n", question.of(&index).unwrap_err()));
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn an_incompatible_pin_is_taken_only_when_insisted_on() {
    let index = full_index();
    let question = Ask {
        pin: Some((CSI, "3.5.1", true)),
        ..ask("v1.34.4", &["8.0.3"])
    };
    let pick = question.of(&index).unwrap().picks[CSI].clone();
    assert_eq!(pick.version.to_string(), "3.5.1");
    assert_eq!(
        pick.overridden.as_deref(),
        Some("supports Kubernetes 1.31 to 1.33, the cluster has 1.34")
    );
}

/// A small index with one of everything.
fn toy() -> Value {
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

fn parse(value: &Value) -> Index {
    Index::parse(value.to_string().as_bytes()).unwrap()
}

#[test]
fn withdrawn_prerelease_and_requirements_are_honoured() {
    let index = parse(&toy());
    let toy = |drivers: &[&'static str]| Ask {
        drivers: drivers.to_vec(),
        ..ask("v1.33.0", &["8.0.3"])
    };
    let both = toy(&["base", "toy"]).of(&index).unwrap();
    assert_eq!(versions(&both), ["1.0.0", "1.9.0"]);
    let alone = toy(&["toy"]).of(&index).unwrap();
    assert_eq!(versions(&alone), ["1.8.0"]);
    assert_eq!(alone.picks["toy"].deprecated.as_deref(), Some("it is slow"));

    let pinned = Ask {
        pin: Some(("toy", "2.1.0-rc.1", false)),
        ..toy(&["toy"])
    };
    assert_eq!(versions(&pinned.of(&index).unwrap()), ["2.1.0-rc.1"]);
    // what is installed and withdrawn is left, even for something older
    let withdrawn = Ask {
        installed: vec![("toy", "2.0.0")],
        ..toy(&["base", "toy"])
    };
    assert_eq!(versions(&withdrawn.clone().of(&index).unwrap()), ["1.0.0", "1.9.0"]);
    // and the choice says from where it comes, and why that cannot stay
    let left = withdrawn.clone().of(&index).unwrap().picks["toy"].clone();
    assert_eq!(left.from.unwrap().to_string(), "2.0.0");
    assert_eq!(left.leaves.unwrap().to_string(), "is withdrawn: it loses volumes (use 1.9.0)");
    let kept = Ask {
        policy: UpdatePolicy::Disabled,
        ..withdrawn
    };
    let kept = kept.of(&index).unwrap();
    assert_eq!(versions(&kept), ["1.0.0", "2.0.0"]);
    let pick = &kept.picks["toy"];
    assert_eq!(
        (pick.leaves.as_ref(), pick.overridden.as_deref()),
        (None, Some("is withdrawn: it loses volumes (use 1.9.0)"))
    );

    let refused = Ask {
        pin: Some(("toy", "2.0.0", false)),
        ..toy(&["toy"])
    };
    insta::assert_snapshot!(refused.of(&index).unwrap_err());
}

#[test]
fn every_rejection_is_listed_newest_first() {
    let error = ask("v1.34.4", &["6.7.0"]).of(&full_index()).unwrap_err();
    assert_eq!(error.driver, CPI);
    assert!(matches!(error.cause, Cause::NothingFits));
    let found: Vec<String> = error.rejected.iter().map(|r| r.version.to_string()).collect();
    assert_eq!(found[..5], ["1.36.0", "1.35.1", "1.35.0", "1.34.0", "1.33.1"]);
    assert_eq!(found.len(), 27);
    assert!(matches!(error.rejected[3].reason, Rejection::Vsphere { .. }));
    assert_eq!(error.others.len(), 1, "the other driver is reported too");
    assert!(error.fitting.is_empty());
    // where one driver has a choice, it is told that it is not the one
    let error = ask("v1.36.0", &["8.0.3"]).of(&full_index()).unwrap_err();
    let fitting: Vec<_> = error.fitting.iter().map(|(name, version)| format!("{name} {version}")).collect();
    assert_eq!((error.driver.as_str(), fitting), (CSI, vec!["vsphere-cpi 1.36.0".to_owned()]));
    let error = ask("v1.34.4", &["6.7.0"]).of(&full_index()).unwrap_err();
    assert_eq!((error.others[0].driver.as_str(), error.others[0].rejected.len()), (CSI, 25));
}

/// One mutation of a good index, and what is said about it.
#[test]
fn bad_indexes_are_refused_with_the_place() {
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

#[test]
fn unknown_fields_are_reported_and_json_equals_yaml() {
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
fn both_readers_say_the_same() {
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
        read(&serde_json::to_string(&vdo::yaml::load_value(std::str::from_utf8(vdo::fetch::embedded::index()).unwrap()).unwrap()).unwrap()),
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
fn versions_share_what_is_known_of_them() {
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

#[test]
fn an_index_grows_stale() {
    let index = parse(&toy());
    use UpdatePolicy::{Compatible, Disabled, Frozen, Latest};
    for (now, policies) in [
        ("2027-05-19T23:59:59Z", [Compatible, Latest, Disabled]),
        ("2027-05-20T00:00:01Z", [Frozen, Frozen, Disabled]),
    ] {
        let now = now.parse().unwrap();
        assert_eq!(index.is_stale(now), policies[0] == Frozen, "{now}");
        assert_eq!(
            [Compatible, Latest, Disabled].map(|policy| index.policy(policy, now)),
            policies,
            "{now}"
        );
    }
}

/// Past its date an index installs what is missing, and changes nothing that runs: neither because something newer is in it, nor because
/// what runs does not fit any more. A pin is a decision of its own.
#[test]
fn an_index_past_its_date_changes_nothing_that_runs() {
    let index = full_index();
    let frozen = |installed: &[(&'static str, &'static str)], pin| {
        let question = Ask {
            installed: installed.to_vec(),
            pin,
            policy: UpdatePolicy::Frozen,
            ..ask("v1.34.4", &["8.0.3"])
        };
        question.of(&index)
    };
    assert_eq!(versions(&frozen(&[], None).unwrap()), ["1.34.0", "3.7.3"]);
    let kept = frozen(&[(CSI, "3.6.0")], None).unwrap();
    assert_eq!(versions(&kept), ["1.34.0", "3.6.0"]);
    assert_eq!(
        kept.picks[CSI].because,
        "installed, and nothing is changed by a matrix past its date"
    );
    assert_eq!(
        (
            kept.picks[CSI].overridden.as_deref(),
            kept.picks[CSI].newest.as_ref().unwrap().to_string()
        ),
        (None, "3.7.3".into())
    );
    let kept = frozen(&[(CSI, "3.5.1")], None).unwrap();
    assert_eq!(versions(&kept), ["1.34.0", "3.5.1"]);
    assert_eq!(
        kept.picks[CSI].overridden.as_deref(),
        Some("supports Kubernetes 1.31 to 1.33, the cluster has 1.34")
    );
    assert_eq!(
        versions(&frozen(&[(CSI, "3.6.0")], Some((CSI, "3.7.3", false))).unwrap()),
        ["1.34.0", "3.7.3"]
    );
    assert!(frozen(&[(CSI, "3.8.0")], None).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn order_does_not_matter(
        order in Just((0..60).collect::<Vec<usize>>()).prop_shuffle(),
        vcenters in Just(vec!["6.7.0", "7.0.3", "8.0.3", "9.0.0.0"]).prop_shuffle(),
        kubernetes in prop_oneof![Just("v1.27.0"), Just("v1.32.1"), Just("v1.34.4"), Just("v1.36.0")],
        count in 0usize..5,
    ) {
        let mut chosen = vcenters;
        chosen.truncate(count);
        let question = |vcenters: &[&'static str]| {
            let kubernetes: KubernetesVersion = kubernetes.parse().unwrap();
            // names follow the version, so that the same set of vCenters is meant in either order
            let vcenters: Vec<_> = vcenters.iter().map(|v| (format!("vc-{v}"), v.parse::<VcenterVersion>().unwrap())).collect();
            let drivers: BTreeMap<DriverName, DriverRequest> = [CPI, CSI].map(|d| (d.to_owned(), DriverRequest::default())).into();
            move |index: &Index| resolve(index, &Query {
                kubernetes: &kubernetes, vcenters: &vcenters, drivers: &drivers, installed: &BTreeMap::new(), policy: UpdatePolicy::Latest,
            })
        };
        let index = full_index();
        let mut shuffled = index.clone();
        for driver in shuffled.drivers.values_mut() {
            let length = driver.versions.len();
            let entries = driver.versions.clone();
            driver.versions = order.iter().filter(|i| **i < length).map(|i| entries[*i].clone()).collect();
        }
        let mut sorted = chosen.clone();
        sorted.sort_unstable();
        prop_assert_eq!(question(&chosen)(&shuffled), question(&sorted)(&index));
    }

    #[test]
    fn whatever_is_chosen_fits(kubernetes in 25u64..40, vcenter in (6u64..10, 0u64..8), installed in proptest::option::of(0usize..3)) {
        let index = full_index();
        let kubernetes: KubernetesVersion = format!("v1.{kubernetes}.0").parse().unwrap();
        let vcenters = [("vc".to_owned(), format!("{}.0.{}", vcenter.0, vcenter.1).parse::<VcenterVersion>().unwrap())];
        let drivers: BTreeMap<DriverName, DriverRequest> = BTreeMap::from([(CSI.to_owned(), DriverRequest::default())]);
        let installed: BTreeMap<DriverName, DriverVersion> =
            installed.map(|i| (CSI.to_owned(), index.drivers[CSI].versions[i].version.clone())).into_iter().collect();
        let query = Query { kubernetes: &kubernetes, vcenters: &vcenters, drivers: &drivers, installed: &installed, policy: UpdatePolicy::Compatible };
        if let Ok(resolution) = resolve(&index, &query) {
            let entry = index.drivers[CSI].entry(&resolution.picks[CSI].version).unwrap();
            prop_assert!(entry.kubernetes.range.contains(kubernetes.numbers()));
            prop_assert!(entry.vsphere.range.contains(vcenters[0].1.numbers()));
        }
    }
}
