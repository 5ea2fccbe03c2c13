//! What the resolver makes of the facts: every platform, old vCenters, features, steps, and a look ahead.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failing test should stop where it fails")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vdo::matrix::{DriverRequest, Index, NoFit, Query, Resolution, UpdatePolicy, When, apart, outlook, resolve, upgradeable};
use vdo::types::{CPI, CSI, DriverName, DriverVersion, KubernetesVersion, VcenterVersion};

#[path = "../examples/generate/matrix.rs"]
#[allow(dead_code, reason = "the generator's other parts are not needed here")]
mod generate;

fn facts() -> Value {
    let any = |_: &str, _: &DriverVersion| {
        Ok(Some(generate::Packed {
            sha256: "0".repeat(64),
            images: Vec::new(),
        }))
    };
    let facts = vdo::yaml::load_value(include_str!("../matrix-index/facts.yaml")).unwrap();
    generate::assembled(&facts, any).unwrap()
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| Index::parse(facts().to_string().as_bytes()).unwrap())
}

struct Ask {
    kubernetes: KubernetesVersion,
    vcenters: Vec<(String, VcenterVersion)>,
    drivers: BTreeMap<DriverName, DriverRequest>,
    installed: BTreeMap<DriverName, DriverVersion>,
    policy: UpdatePolicy,
}

fn ask(index: &Index, kubernetes: &str, vcenters: &[&str]) -> Ask {
    let named = |(i, v): (usize, &&str)| (format!("vc{}", i + 1), index.vcenter(&v.parse().unwrap(), None));
    Ask {
        kubernetes: kubernetes.parse().unwrap(),
        vcenters: vcenters.iter().enumerate().map(named).collect(),
        drivers: index.drivers.keys().map(|name| (name.clone(), DriverRequest::default())).collect(),
        installed: BTreeMap::new(),
        policy: UpdatePolicy::Compatible,
    }
}

impl Ask {
    fn query(&self) -> Query<'_> {
        Query {
            kubernetes: &self.kubernetes,
            vcenters: &self.vcenters,
            drivers: &self.drivers,
            installed: &self.installed,
            policy: self.policy,
        }
    }

    fn of(&self, index: &Index) -> Result<Resolution, Box<NoFit>> {
        resolve(index, &self.query())
    }

    fn installed(mut self, all: &[(&str, &str)]) -> Self {
        self.installed = all.iter().map(|(name, v)| ((*name).to_owned(), v.parse().unwrap())).collect();
        self
    }
}

fn words(result: &Result<Resolution, Box<NoFit>>) -> String {
    match result {
        Ok(resolution) => resolution
            .picks
            .values()
            .map(|pick| pick.version.to_string())
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => format!("none for {}", error.all().map(|e| e.driver.as_str()).collect::<Vec<_>>().join(", ")),
    }
}

#[test]
fn every_minor_has_its_drivers() {
    for (kubernetes, vcenter, expected) in [
        ("v1.24.17", "8.0.3", "none for vsphere-cpi"),
        ("v1.25.16", "8.0.3", "1.25.3 3.0.3"),
        ("v1.26.15", "8.0.3", "1.26.2 3.1.2"),
        ("v1.27.16+vmware.1", "8.0.3", "1.27.0 3.3.1"),
        ("v1.28.15", "8.0.3", "1.28.1 3.3.1"),
        // 1.29.1 and 1.29.2 can probably not be pulled, so the older one goes first
        ("v1.29.14-gke.100", "7.0.3", "1.29.0 3.3.1"),
        ("v1.30.14", "8.0.3", "1.30.2 3.3.1"),
        ("v1.31.9+k3s1", "8.0.3", "1.31.1 3.5.1"),
        ("v1.32.9-eks-1a2b3c4", "8.0.3", "1.32.3 3.6.3"),
        ("v1.33.1+rke2r1", "8.0.3", "1.33.1 3.7.3"),
        ("v1.34.4-eks-1234567", "9.0.0.0", "1.34.0 3.7.3"),
        ("1.35", "8.0.3.00500", "1.35.1 3.7.3"),
        ("v1.36.0-rc.0", "9.0.0.0", "none for vsphere-csi"),
        ("v1.40.0", "8.0.3", "none for vsphere-cpi, vsphere-csi"),
        // 6.7 U3 says 6.7.0, and only the build tells; 3.2 and newer refuse it
        ("v1.27.3", "6.7.0-14367737", "1.27.0 3.1.2"),
        ("v1.27.3", "6.7.0-14367736", "none for vsphere-cpi, vsphere-csi"),
        ("v1.27.3", "6.7.0 build 18485185", "1.27.0 3.1.2"),
        ("v1.27.3", "6.7.3", "1.27.0 3.1.2"),
        ("v1.34.0", "6.7.0-18485185", "none for vsphere-csi"),
    ] {
        assert_eq!(
            words(&ask(index(), kubernetes, &[vcenter]).of(index())),
            expected,
            "{kubernetes} {vcenter}"
        );
    }
}

#[test]
fn several_vcenters_and_features_narrow_the_choice() {
    // 2.7 knows one vCenter only, and nothing newer is for 1.23
    let alone = ask(index(), "v1.23.4", &["7.0.3"]);
    let csi = |mut ask: Ask, features: &[&str]| {
        ask.drivers.remove(CPI);
        ask.drivers.get_mut(CSI).unwrap().features = features.iter().map(|f| ((*f).to_owned(), format!("spec.{f}"))).collect();
        ask
    };
    assert_eq!(words(&csi(alone, &[]).of(index())), "2.7.3");
    let error = csi(ask(index(), "v1.23.4", &["7.0.3", "8.0.3"]), &[]).of(index()).unwrap_err();
    let last = error.rejected.iter().find(|r| r.version.to_string() == "2.7.3").unwrap();
    assert_eq!(
        last.to_string(),
        "2.7.3 can use one vCenter only, and there are 2 vSphere connections"
    );
    assert_eq!(error.advice.as_deref(), Some("With one vSphere connection 2.7.3 would fit"));

    let with = |features: &[&str]| csi(ask(index(), "v1.34.0", &["8.0.3", "7.0.2"]), features).of(index());
    assert_eq!(words(&with(&["onlineExpansion"])), "3.7.3");
    let error = with(&["snapshots"]).unwrap_err();
    assert_eq!(
        error
            .rejected
            .iter()
            .find(|r| r.version.to_string() == "3.7.3")
            .unwrap()
            .to_string(),
        "3.7.3 can do snapshots, which spec.snapshots asks for, only with vCenter 7.0.3 and newer, vc2 has 7.0.2"
    );
    assert_eq!(
        error.advice.as_deref(),
        Some("Upgrading vc2 to 7.0.3 would let 3.7.3 be installed; without spec.snapshots 3.7.3 would fit as it is")
    );
    // two things are wrong, so no single one of them is the remedy
    let error = with(&["snapshots", "transactions"]).unwrap_err();
    assert!(!error.advice.unwrap_or_default().contains("without"));
    assert!(with(&["flying"]).is_err());
}

/// A version, its oldest and newest Kubernetes, and more fields.
type Line<'a> = (&'a str, &'a str, &'a str, Value);

fn toy(entries: &[Line<'_>]) -> Index {
    toys(&[("toy", entries)])
}

fn toys(drivers: &[(&str, &[Line<'_>])]) -> Index {
    let drivers: serde_json::Map<String, Value> = drivers
        .iter()
        .map(|(name, entries)| ((*name).to_owned(), json!({"role": "storage", "versions": written(entries)})))
        .collect();
    let text = json!({
        "apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1,
        "preconditions": {"Backup": "there is a backup"}, "drivers": drivers,
    });
    Index::parse(text.to_string().as_bytes()).unwrap()
}

fn written(entries: &[Line<'_>]) -> Vec<Value> {
    let versions = entries.iter().map(|(version, min, max, more)| {
        let mut entry = json!({
            "version": version, "chart": {"urls": ["charts/x.tgz"], "sha256": "0".repeat(64)},
            "kubernetes": {"min": min, "max": max, "confidence": "unverified"},
            "vsphere": {"min": null, "max": null, "confidence": "unverified"},
        });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    });
    versions.collect()
}

#[test]
fn a_driver_is_judged_by_the_vcenters_it_uses() {
    // 3.7 takes no 6.7, and 2.7 one vCenter only; the cloud provider alone speaks to the old one
    let with = |kubernetes: &str, vcenters: &[&str], used: &[&str]| {
        let mut ask = ask(index(), kubernetes, vcenters);
        ask.drivers.get_mut(CSI).unwrap().connections = Some(used.iter().map(|name| (*name).to_owned()).collect());
        words(&ask.of(index()))
    };
    assert_eq!(with("v1.34.0", &["8.0.3", "6.7.3"], &["vc1", "vc2"]), "none for vsphere-csi");
    assert_eq!(with("v1.34.0", &["8.0.3", "6.7.3"], &["vc1"]), "1.34.0 3.7.3");
    assert_eq!(with("v1.34.0", &["8.0.3", "6.7.3"], &["vc2"]), "none for vsphere-csi");
}

#[test]
fn an_upgrade_whose_precondition_does_not_hold_waits() {
    let backed = json!({"upgradesFrom": {"preconditions": ["Backup"]}});
    let index = toy(&[
        ("3.0.0", "1.30", "1.40", backed.clone()),
        ("2.1.0", "1.30", "1.40", json!({})),
        ("2.0.0", "1.30", "1.40", backed.clone()),
        ("1.0.0", "1.30", "1.34", json!({})),
    ]);
    let say = |installed: &str, kubernetes: &str, policy: UpdatePolicy, unmet: Option<&[&str]>, pin: Option<(&str, bool)>| {
        let mut question = ask(&index, kubernetes, &[]);
        if !installed.is_empty() {
            question = question.installed(&[("toy", installed)]);
        }
        question.policy = policy;
        let request = question.drivers.get_mut("toy").unwrap();
        request.unmet = unmet.map(|names| {
            names
                .iter()
                .map(|name| ((*name).to_owned(), "none is there; make one".to_owned()))
                .collect()
        });
        request.pin = pin.map(|(pin, _)| pin.parse().unwrap());
        request.allow_incompatible = pin.is_some_and(|(_, forced)| forced);
        match question.of(&index) {
            Ok(resolution) => {
                let pick = &resolution.picks["toy"];
                let waits = pick.waits.as_ref().map(|waits| format!(", {waits}")).unwrap_or_default();
                format!("{}{} {:?}", pick.version, waits, pick.preconditions())
            }
            Err(error) => error.to_string(),
        }
    };
    let (latest, compatible) = (UpdatePolicy::Latest, UpdatePolicy::Compatible);
    let waits = "3.0.0 cannot be upgraded to yet: Backup: none is there; make one";
    // nobody has checked: the choice says what to check
    assert_eq!(say("2.0.0", "v1.34.0", latest, None, None), "3.0.0 [\"Backup\"]");
    assert_eq!(say("2.0.0", "v1.34.0", latest, Some(&[]), None), "3.0.0 []");
    // what needs no backup is taken, and what does waits
    assert_eq!(
        say("2.0.0", "v1.34.0", latest, Some(&["Backup"]), None),
        format!("2.1.0, {waits} []")
    );
    assert_eq!(
        say("2.1.0", "v1.34.0", latest, Some(&["Backup"]), None),
        format!("2.1.0, {waits} []")
    );
    assert_eq!(
        say("2.0.0", "v1.34.0", compatible, Some(&["Backup"]), None),
        format!("2.0.0, {waits} []")
    );
    // a first installation is no upgrade
    assert_eq!(say("", "v1.34.0", latest, Some(&["Backup"]), None), "3.0.0 []");
    // neither a pin nor a platform that has moved on goes round it; insisting does
    let pinned = say("2.0.0", "v1.34.0", latest, Some(&["Backup"]), Some(("3.0.0", false)));
    assert!(
        pinned.starts_with("toy is pinned to 3.0.0, which cannot be upgraded to yet: Backup: none is there"),
        "{pinned}"
    );
    assert_eq!(
        say("2.0.0", "v1.34.0", latest, Some(&["Backup"]), Some(("3.0.0", true))),
        "3.0.0 []"
    );
    let index = toy(&[("2.0.0", "1.30", "1.40", backed), ("1.0.0", "1.30", "1.34", json!({}))]);
    let mut question = ask(&index, "v1.36.0", &[]).installed(&[("toy", "1.0.0")]);
    question.drivers.get_mut("toy").unwrap().unmet = Some([("Backup".to_owned(), "none is there".to_owned())].into());
    let error = question.of(&index).unwrap_err();
    assert_eq!(
        error.advice.as_deref(),
        Some("2.0.0 can be installed when this is seen to: none is there"),
        "{error}"
    );
}

#[test]
fn an_upgrade_goes_through_the_versions_in_between() {
    let from = |min: &str| json!({"upgradesFrom": {"min": min, "preconditions": ["Backup"]}});
    let index = toy(&[
        ("4.0.0", "1.30", "1.40", from("3.0.0")),
        ("3.1.0", "1.30", "1.40", from("2.0.0")),
        ("2.5.0", "1.30", "1.40", json!({})),
        ("1.0.0", "1.30", "1.40", json!({})),
    ]);
    let mut question = ask(&index, "v1.34.0", &[]).installed(&[("toy", "1.0.0")]);
    question.policy = UpdatePolicy::Latest;
    let pick = question.of(&index).unwrap().picks["toy"].clone();
    let path: Vec<String> = pick
        .path
        .iter()
        .map(|step| format!("{} {}", step.version, step.preconditions.join(",")))
        .collect();
    assert_eq!(path, ["2.5.0 ", "3.1.0 Backup", "4.0.0 Backup"]);
    assert!(pick.preconditions().is_empty(), "the next step needs nothing");
    assert_eq!(
        (pick.version.to_string(), pick.target.to_string()),
        ("2.5.0".into(), "4.0.0".into())
    );
    assert!(pick.because.starts_with("a step on the way to 4.0.0: "), "{}", pick.because);
    let question = question.installed(&[("toy", "3.1.0")]);
    assert_eq!(question.of(&index).unwrap().picks["toy"].preconditions(), ["Backup"]);
    // a look ahead names the steps, each with what must hold before it
    let question = question.installed(&[("toy", "1.0.0")]);
    let seen = outlook(&index, &question.query(), Some(&"1.35".parse().unwrap()), &[]);
    let change = &seen.stages[0].result.as_ref().unwrap()[0];
    let path: Vec<String> = change
        .path
        .iter()
        .map(|step| format!("{} {}", step.version, step.preconditions.join(",")))
        .collect();
    assert_eq!(path, ["2.5.0 ", "3.1.0 Backup", "4.0.0 Backup"]);

    // the version in between does not fit, so the way is barred
    let index = toy(&[
        ("4.0.0", "1.30", "1.40", from("3.0.0")),
        ("3.1.0", "1.20", "1.21", json!({})),
        ("1.0.0", "1.20", "1.21", json!({})),
    ]);
    let error = ask(&index, "v1.34.0", &[]).installed(&[("toy", "1.0.0")]).of(&index).unwrap_err();
    assert_eq!(
        error.rejected[0].to_string(),
        "4.0.0 upgrades only from 3.0.0 and newer; 1.0.0 is installed, and no version in between fits"
    );
    assert_eq!(
        error.advice.as_deref(),
        Some("4.0.0 can be reached through 3.1.0, pinned with allowIncompatible")
    );
}

#[test]
fn looking_ahead_says_which_driver_changes_when() {
    let question = ask(index(), "v1.32.4", &["8.0.3"]).installed(&[(CPI, "1.32.3"), (CSI, "3.5.1")]);
    let seen = outlook(index(), &question.query(), Some(&"1.35".parse().unwrap()), &[]);
    let lines: Vec<String> = seen
        .stages
        .iter()
        .map(|stage| {
            let changes = stage.result.as_ref().unwrap();
            let change = |c: &vdo::matrix::Change| {
                let when = if c.when == When::Before { "before" } else { "with" };
                format!("{} {} {when}", c.driver, c.path.last().unwrap().version)
            };
            format!(
                "{}: {}",
                stage.kubernetes,
                changes.iter().map(change).collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "v1.32.4: ",
            "1.33: vsphere-cpi 1.33.1 with",
            // 3.7.3 runs on 1.33 already, so it is changed before the cluster goes to 1.34
            "1.34: vsphere-cpi 1.34.0 with, vsphere-csi 3.7.3 before",
            "1.35: vsphere-cpi 1.35.1 with",
        ]
    );
    // what was foretold is what is chosen when it has happened
    let last = seen.stages.last().unwrap();
    let then = Ask {
        kubernetes: "v1.35.2".parse().unwrap(),
        installed: last.runs.clone(),
        ..question
    };
    assert_eq!(words(&then.of(index())), "1.35.1 3.7.3");

    let seen = outlook(index(), &then.query(), Some(&"1.37".parse().unwrap()), &[]);
    assert_eq!(seen.stages.len(), 2, "it ends where nothing fits");
    assert!(seen.stages[1].result.is_err());

    let older = ask(index(), "v1.27.4", &["6.7.3"]).installed(&[(CPI, "1.27.0"), (CSI, "3.1.2")]);
    let seen = outlook(index(), &older.query(), None, &[("vc1".into(), "8.0.3".parse().unwrap())]);
    assert_eq!(seen.stages[1].result.as_ref().unwrap(), &[], "a newer vCenter takes what runs");
}

#[test]
fn upgradeable_is_about_the_next_minor() {
    let mut question = ask(index(), "v1.34.4", &["8.0.3"]).installed(&[(CPI, "1.34.0"), (CSI, "3.7.3")]);
    let next = upgradeable(index(), &question.query());
    assert_eq!((next.kubernetes.as_str(), next.fits()), ("1.35", true));
    question.kubernetes = "v1.35.0".parse().unwrap();
    assert!(!upgradeable(index(), &question.query()).fits());
    // what is not updated must fit as it is
    question.kubernetes = "v1.34.4".parse().unwrap();
    question.policy = UpdatePolicy::Disabled;
    let next = upgradeable(index(), &question.query());
    assert_eq!(next.forced.keys().collect::<Vec<_>>(), [CPI]);
    assert!(!next.fits());
}

/// Up to 3.0 the CSI driver can be told to find machines by the providerID, which only the CPI sets.
#[test]
fn a_need_may_hang_on_a_feature_state() {
    let say = |kubernetes: &str, drivers: &[&str], states: &[(&str, bool)]| {
        let mut question = ask(index(), kubernetes, &["8.0.3"]);
        question.drivers.retain(|name, _| drivers.contains(&name.as_str()));
        question.drivers.get_mut(CSI).unwrap().states = states.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
        let result = question.of(index());
        result.map_or_else(|error| error.to_string(), |found| words(&Ok(found)))
    };
    let off: &[(&str, bool)] = &[("use-csinode-id", false)];
    assert_eq!(say("v1.25.4", &[CSI], &[]), "3.0.3");
    assert_eq!(say("v1.25.4", &[CSI], &[("use-csinode-id", true)]), "3.0.3");
    assert_eq!(say("v1.25.4", &[CPI, CSI], off), "1.25.3 3.0.3");
    let alone = say("v1.25.4", &[CSI], off);
    assert!(
        alone.contains("3.0.3 needs vsphere-cpi, which is not to be installed: without use-csinode-id"),
        "{alone}"
    );
    assert!(
        alone.ends_with("Installing vsphere-cpi too would let 3.0.3 be installed"),
        "{alone}"
    );
    // from 3.1 on there is no such state
    assert_eq!(say("v1.26.4", &[CSI], off), "3.1.2");
}

/// The advice names one thing to change only where that one thing is enough.
#[test]
fn advice_is_about_what_would_be_enough() {
    let advice = |kubernetes: &str, vcenters: &[&str], csi_only: bool| {
        let mut question = ask(index(), kubernetes, vcenters);
        if csi_only {
            question.drivers.remove(CPI);
        }
        question.of(index()).unwrap_err().advice.unwrap_or_default()
    };
    for (kubernetes, vcenters, expected) in [
        ("v1.34.0", &["6.7.3"][..], "Upgrading vc1 to 7.0 would let 3.7.3 be installed"),
        // both are too old, so both are named
        (
            "v1.34.0",
            &["6.7.3", "8.0.3", "6.7.0"],
            "Upgrading vc1 and vc3 to 7.0 would let 3.7.3 be installed",
        ),
        ("v1.20.0", &["8.0.3"], "Kubernetes 1.23 would let 2.7.3 be installed"),
        // 2.7 takes neither this Kubernetes nor two vCenters, 3.0 does once the cluster is newer
        ("v1.20.0", &["8.0.3", "7.0.3"], "Kubernetes 1.25 would let 3.0.3 be installed"),
        (
            "v1.20.0",
            &["6.0.0"],
            "No single change helps: 3.7.3 supports Kubernetes 1.33 to 1.35, the cluster has 1.20, and supports vCenter 7.0 and newer, vc1 has 6.0.0",
        ),
    ] {
        assert_eq!(advice(kubernetes, vcenters, true), expected, "{kubernetes} {vcenters:?}");
    }
    // what one driver needs of the other
    let both = toys(&[
        (
            "toy",
            &[("1.0.0", "1.30", "1.34", json!({"requires": [{"driver": "base", "min": "2.0.0"}]}))],
        ),
        (
            "base",
            &[("2.0.0", "1.20", "1.21", json!({})), ("1.0.0", "1.30", "1.34", json!({}))],
        ),
    ]);
    let error = ask(&both, "v1.33.0", &[]).of(&both).unwrap_err();
    assert_eq!(
        (error.driver.as_str(), error.others.len()),
        ("toy", 0),
        "base is not to blame: {error}"
    );
    assert_eq!(
        error
            .fitting
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect::<Vec<_>>(),
        ["base 1.0.0"]
    );
    assert_eq!(error.advice.as_deref(), Some("With base 2.0.0 and newer 1.0.0 could be installed"));
}

#[test]
fn the_original_format_is_read_into_the_same_index() {
    let text = r#"{
      "CSI": {
        "2.7.0": {"vSphere": {"min": "6.7.3", "max": "8.0.1"}, "k8s": {"min": "1.23", "max": "1.25"}, "isCPIRequired": true,
                  "deploymentPath": ["https://example.com/driver.yaml"]},
        "9.9.9": {"vSphere": {"min": "6.7.3", "max": "8.0.1"}, "k8s": {"min": "1.23", "max": "1.99"}, "colour": "red"}},
      "CPI": {"1.25.0": {"vSphere": {"min": "6.7.3", "max": "8.0.1"}, "k8s": {"skewVersion": "1.25"}}}
    }"#;
    let bare = Index::parse(text.as_bytes()).unwrap();
    assert_eq!(bare.unknown_fields, ["CSI.9.9.9.colour"]);
    let question = ask(&bare, "v1.25.4", &["8.0.1"]);
    let error = question.of(&bare).unwrap_err();
    assert!(error.rejected[0].to_string().contains("has no chart"), "{error}");
    let lent = bare.with_charts_of(index());
    assert_eq!(
        words(&question.of(&lent)),
        "1.25.0 2.7.0",
        "what no chart is lent to is never chosen"
    );
    let mut alone = ask(&lent, "v1.25.4", &["8.0.1"]);
    alone.drivers.remove(CPI);
    let error = alone.of(&lent).unwrap_err();
    assert!(error.to_string().contains("needs vsphere-cpi"), "isCPIRequired counts: {error}");
    for (wrong, place) in [
        (text.replace("\"max\": \"1.25\"", "\"max\": \"1.20\""), "CSI.2.7.0"),
        (
            text.replace("skewVersion\": \"1.25\"", "skewVersion\": \"1.25\", \"min\": \"1.24\""),
            "CPI.1.25.0",
        ),
        (text.replace("\"2.7.0\"", "\"newest\""), "CSI"),
    ] {
        let error = Index::parse(wrong.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}

/// Two drivers are chosen to stand side by side. While one has to stay as it is, the other one may be changed only where it also stands
/// beside what is there.
#[test]
fn who_may_be_changed_while_another_stays() {
    let needs = |min: &str, max: Option<&str>| json!({"requires": [{"driver": "base", "min": min, "max": max}]});
    let index = toys(&[
        (
            "toy",
            &[
                ("2.0.0", "1.30", "1.34", needs("2.0.0", None)),
                ("1.5.0", "1.30", "1.34", needs("1.0.0", None)),
                ("1.0.0", "1.30", "1.34", needs("1.0.0", Some("1.0.0"))),
            ],
        ),
        (
            "base",
            &[("2.0.0", "1.30", "1.34", json!({})), ("1.0.0", "1.30", "1.34", json!({}))],
        ),
    ]);
    for (toy, base, to_toy, to_base, expected) in [
        // A first installation: the one needs the other, which needs nobody.
        (
            None,
            None,
            "2.0.0",
            "2.0.0",
            &["toy without base: version 2.0.0 requires base 2.0.0 and newer"][..],
        ),
        // The new needs the new, and the old does not stand the new.
        (
            Some("1.0.0"),
            Some("1.0.0"),
            "2.0.0",
            "2.0.0",
            &[
                "base without toy: version 1.0.0, which stays meanwhile, requires base 1.0.0",
                "toy without base: version 2.0.0 requires base 2.0.0 and newer",
            ],
        ),
        (Some("1.5.0"), Some("1.0.0"), "1.5.0", "2.0.0", &[]),
        (
            Some("1.5.0"),
            Some("1.0.0"),
            "2.0.0",
            "2.0.0",
            &["toy without base: version 2.0.0 requires base 2.0.0 and newer"],
        ),
        (Some("1.0.0"), Some("1.0.0"), "1.5.0", "1.0.0", &[]),
        (Some("2.0.0"), Some("2.0.0"), "2.0.0", "2.0.0", &[]),
    ] {
        let mut question = ask(&index, "v1.33.0", &[]);
        for (name, installed, wanted) in [("toy", toy, to_toy), ("base", base, to_base)] {
            question
                .installed
                .extend(installed.map(|version| (name.to_owned(), version.parse().unwrap())));
            question.drivers.get_mut(name).unwrap().pin = Some(wanted.parse().unwrap());
        }
        let chosen = question.of(&index).unwrap();
        let found: Vec<String> = apart(&index, &question.query(), &chosen)
            .into_iter()
            .map(|((who, whom), why)| format!("{who} without {whom}: {why}"))
            .collect();
        assert_eq!(found, expected, "{toy:?} {base:?}");
    }
}
