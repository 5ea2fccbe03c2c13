// SPDX-License-Identifier: Apache-2.0
//! What the resolver makes of the facts: every platform, old vCenters, features, steps, and a look ahead.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failing test should stop where it fails")]

mod advice;
mod ahead;
mod beside;
mod difference;
use crate::generate::matrix as generate;
mod mirrored;
mod refused;
mod steps;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vdo_api::api::chain;
use vdo_api::types::{DriverName, DriverVersion, KubernetesVersion, VcenterVersion};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::matrix::{DriverRequest, Index, NoFit, Query, Resolution, UpdatePolicy, resolve};

/// The index with every version of the facts, whichever charts there are by now.
fn facts() -> Value {
    let any = |_: &str, _: &DriverVersion| {
        Ok(Some(generate::Packed {
            sha256: "0".repeat(64),
            images: Vec::new(),
        }))
    };
    let facts = vdo_api::yaml::load_value(include_str!("../../matrix-index/facts.yaml")).unwrap();
    generate::assembled(&facts, any).unwrap()
}

pub fn index() -> &'static Index {
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
        drivers: index.usual().map(|name| (name.clone(), DriverRequest::default())).collect(),
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
fn resolve_each_kubernetes_minor_selects_drivers() {
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
        ("v1.34.4-eks-1234567", "9.0.0.0", "1.34.0 3.8.0"),
        ("1.35", "8.0.3.00500", "1.35.1 3.8.0"),
        ("v1.36.0-rc.0", "9.0.0.0", "1.36.0 3.8.0"),
        ("v1.37.1", "9.0.0.0", "none for vsphere-csi"),
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
fn resolve_several_vcenters_narrow_csi_version() {
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
        "2.7.3 supports only one vCenter, but there are 2 vSphere connections"
    );
    assert_eq!(
        error.advice.as_deref(),
        Some("With only one vSphere connection, version 2.7.3 can be installed")
    );
}

#[test]
fn resolve_requested_features_narrow_csi_version() {
    let csi = |mut ask: Ask, features: &[&str]| {
        ask.drivers.remove(CPI);
        ask.drivers.get_mut(CSI).unwrap().features = features.iter().map(|f| ((*f).to_owned(), format!("spec.{f}"))).collect();
        ask
    };
    let with = |features: &[&str]| csi(ask(index(), "v1.34.0", &["8.0.3", "7.0.2"]), features).of(index());
    assert_eq!(words(&with(&["onlineExpansion"])), "3.8.0");
    let error = with(&["snapshots"]).unwrap_err();
    assert_eq!(
        error
            .rejected
            .iter()
            .find(|r| r.version.to_string() == "3.8.0")
            .unwrap()
            .to_string(),
        "3.8.0 supports snapshots only with vCenter 7.0.3 and newer, not with version 7.0.2 of vc2, and spec.snapshots requires snapshots"
    );
    assert_eq!(
        error.advice.as_deref(),
        Some(
            "After an upgrade of vc2 to 7.0.3, version 3.8.0 can be installed; without spec.snapshots, no upgrade is needed for this version"
        )
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
fn resolve_driver_must_fit_only_vcenters_it_uses() {
    // 3.7 takes no 6.7, and 2.7 one vCenter only; the cloud provider alone speaks to the old one
    let with = |kubernetes: &str, vcenters: &[&str], used: &[&str]| {
        let mut ask = ask(index(), kubernetes, vcenters);
        ask.drivers.get_mut(CSI).unwrap().connections = Some(used.iter().map(|name| (*name).to_owned()).collect());
        words(&ask.of(index()))
    };
    assert_eq!(with("v1.34.0", &["8.0.3", "6.7.3"], &["vc1", "vc2"]), "none for vsphere-csi");
    assert_eq!(with("v1.34.0", &["8.0.3", "6.7.3"], &["vc1"]), "1.34.0 3.8.0");
    assert_eq!(with("v1.34.0", &["8.0.3", "6.7.3"], &["vc2"]), "none for vsphere-csi");
}

/// Up to 3.0 the CSI driver can be configured to find machines by the providerID, which only the CPI sets.
#[test]
fn resolve_requirement_depends_on_feature_state() {
    let say = |kubernetes: &str, drivers: &[&str], states: &[(&str, bool)]| {
        let mut question = ask(index(), kubernetes, &["8.0.3"]);
        question.drivers.retain(|name, _| drivers.contains(&name.as_str()));
        question.drivers.get_mut(CSI).unwrap().states = states.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
        let result = question.of(index());
        result.map_or_else(|error| chain(&*error), |found| words(&Ok(found)))
    };
    let off: &[(&str, bool)] = &[("use-csinode-id", false)];
    assert_eq!(say("v1.25.4", &[CSI], &[]), "3.0.3");
    assert_eq!(say("v1.25.4", &[CSI], &[("use-csinode-id", true)]), "3.0.3");
    assert_eq!(say("v1.25.4", &[CPI, CSI], off), "1.25.3 3.0.3");
    let alone = say("v1.25.4", &[CSI], off);
    assert!(
        alone.contains("3.0.3 needs vsphere-cpi, which is not requested: without use-csinode-id"),
        "{alone}"
    );
    assert!(
        alone.ends_with("If vsphere-cpi is installed too, version 3.0.3 can be installed."),
        "{alone}"
    );
    // from 3.1 on there is no such state
    assert_eq!(say("v1.26.4", &[CSI], off), "3.1.2");
}

/// A requirement on a version of a driver that is installed too: of no account where its feature state switches it off.
#[test]
fn resolve_requirement_switched_off_by_state_takes_any_version() {
    let requirement = json!([{"driver": "base", "min": "2.0.0", "reason": "r", "when": {"featureState": "new", "is": true}}]);
    let index = toys(&[
        ("toy", &[("1.0.0", "1.30", "1.34", json!({"requires": requirement}))]),
        ("base", &[("1.0.0", "1.30", "1.34", json!({}))]),
    ]);
    let say = |states: &[(&str, bool)]| {
        let mut question = ask(&index, "v1.32.0", &["8.0.3"]);
        question.drivers = ["base", "toy"].map(|name| (name.into(), DriverRequest::default())).into();
        question.drivers.get_mut("toy").unwrap().states = states.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
        question
            .of(&index)
            .map(|found| found.picks.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(say(&[("new", false)]), Ok(2));
    assert_eq!(say(&[]), Ok(2));
    let refused = say(&[("new", true)]).unwrap_err();
    assert!(refused.contains("1.0.0 needs base 2.0.0 and newer"), "{refused}");
}

/// A matrix as the original operator wrote it.
const ORIGINAL_FORMAT: &str = r#"{
      "CSI": {
        "2.7.0": {"vSphere": {"min": "6.7.3", "max": "8.0.1"}, "k8s": {"min": "1.23", "max": "1.25"}, "isCPIRequired": true,
                  "deploymentPath": ["https://example.com/driver.yaml"]},
        "9.9.9": {"vSphere": {"min": "6.7.3", "max": "8.0.1"}, "k8s": {"min": "1.23", "max": "1.99"}, "colour": "red"}},
      "CPI": {"1.25.0": {"vSphere": {"min": "6.7.3", "max": "8.0.1"}, "k8s": {"skewVersion": "1.25"}}}
    }"#;

#[test]
fn matrix_original_format_is_read_into_index() {
    let text = ORIGINAL_FORMAT;
    let bare = Index::parse(text.as_bytes()).unwrap();
    assert_eq!(bare.unknown_fields, ["CSI.9.9.9.colour"]);
    let question = ask(&bare, "v1.25.4", &["8.0.1"]);
    let error = question.of(&bare).unwrap_err();
    assert!(error.rejected[0].to_string().contains("has manifests but no chart"), "{error}");
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
}

#[test]
fn matrix_original_format_malformed_reports_place() {
    let text = ORIGINAL_FORMAT;
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
