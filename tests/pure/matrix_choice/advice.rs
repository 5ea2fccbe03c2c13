// SPDX-License-Identifier: Apache-2.0
//! What would have to change for a version to be taken.

use super::{ask, toy, toys};
use serde_json::{Value, json};
use vdo_api::types::VersionRange;
use vdo_core::matrix::Index;
use vdo_core::matrix::Rejection;

#[test]
fn remedy_names_what_would_have_to_be_different() {
    let range = |min, max| VersionRange::new(min, max).unwrap();
    let kubernetes = |min, max, actual: &str| Rejection::Kubernetes {
        supported: range(min, max),
        actual: actual.parse().unwrap(),
    };
    let vsphere = |actual: &str| Rejection::Vsphere {
        supported: range(Some("7.0"), Some("8.0")),
        connection: "vc1".into(),
        actual: actual.parse().unwrap(),
    };
    let version = |text: &str| text.parse().unwrap();
    for (reason, expected) in [
        (kubernetes(Some("1.30"), Some("1.34"), "v1.29.5"), Some("Kubernetes 1.30")),
        (kubernetes(Some("1.30"), Some("1.34"), "v1.35.0"), Some("Kubernetes 1.34")),
        (kubernetes(None, Some("1.34"), "v1.35.0"), Some("Kubernetes 1.34")),
        (kubernetes(Some("1.30"), None, "v1.29.0"), Some("Kubernetes 1.30")),
        (vsphere("6.7.3"), Some("vc1 at version 7.0")),
        (vsphere("9.0.0.0"), Some("vc1 at version 8.0")),
        (
            Rejection::FeatureVsphere {
                feature: "snapshots".into(),
                by: "spec.snapshots".into(),
                supported: range(Some("7.0.3"), None),
                connection: "vc1".into(),
                actual: version_of("7.0.2"),
            },
            Some("vc1 at version 7.0.3, or removing spec.snapshots"),
        ),
        (
            Rejection::Feature {
                feature: "snapshots".into(),
                by: "spec.snapshots".into(),
            },
            Some("removing spec.snapshots"),
        ),
        (Rejection::OneVcenter { connections: 2 }, Some("one vSphere connection")),
        (
            Rejection::Requires {
                driver: "base".into(),
                reason: None,
            },
            Some("base as well"),
        ),
        (
            Rejection::RequiresVersion {
                needs: "base 2.0.0 and newer".into(),
                reason: None,
            },
            Some("base 2.0.0 and newer"),
        ),
        (
            Rejection::NoPath {
                installed: version("1.0.0"),
                from: version("2.0.0"),
            },
            Some("installing 2.0.0 or a newer version first"),
        ),
        (Rejection::Prerelease, Some("a pin")),
        (
            Rejection::Downgrade {
                installed: version("3.0.0"),
            },
            Some("a pin"),
        ),
        (
            Rejection::Withdrawn {
                reason: "r".into(),
                instead: None,
            },
            None,
        ),
        (Rejection::NoChart, None),
        (Rejection::Apart, None),
        (
            Rejection::Unmet {
                name: "Backup".into(),
                what: "none is there".into(),
            },
            None,
        ),
    ] {
        assert_eq!(reason.remedy().as_deref(), expected, "{reason}");
    }
}

fn version_of(text: &str) -> vdo_api::types::VcenterVersion {
    text.parse().unwrap()
}

/// To do without what is asked for is advised only where nothing else is in the way.
#[test]
fn advice_feature_of_no_version_is_to_be_done_without() {
    let index = toy(&[("2.0.0", "1.35", "1.36", json!({})), ("1.0.0", "1.30", "1.34", json!({}))]);
    let mut question = ask(&index, "v1.33.0", &[]);
    let features = &mut question.drivers.get_mut("toy").unwrap().features;
    features.insert("flying".into(), "spec.flying".into());
    let error = question.of(&index).unwrap_err();
    assert_eq!(error.advice.as_deref(), Some("Without spec.flying, version 1.0.0 can be installed"));
}

#[test]
fn advice_newer_installed_version_needs_pin_to_go_back() {
    let index = toy(&[("2.0.0", "1.35", "1.36", json!({})), ("1.0.0", "1.30", "1.34", json!({}))]);
    let error = ask(&index, "v1.33.0", &[]).installed(&[("toy", "3.0.0")]).of(&index).unwrap_err();
    let advice = "Use a matrix that lists 3.0.0, or pin 1.0.0 for a downgrade";
    assert_eq!(error.advice.as_deref(), Some(advice));
}

/// Upgrading vCenters helps only when every one of those that are in the way is too old.
#[test]
fn advice_vcenter_too_new_is_not_advised_to_be_upgraded() {
    let index = toy(&[(
        "1.0.0",
        "1.30",
        "1.34",
        json!({"vsphere": {"min": "7.0", "max": "8.0", "confidence": "unverified"}}),
    )]);
    let advice = |vcenters: &[&str]| ask(&index, "v1.33.0", vcenters).of(&index).unwrap_err().advice;
    let both = advice(&["6.7.3", "6.5.0"]);
    assert_eq!(
        both.as_deref(),
        Some("After an upgrade of vc1 and vc2 to 7.0, version 1.0.0 can be installed")
    );
    assert_eq!(advice(&["9.0.0.0"]), None);
    assert_eq!(advice(&["6.7.3", "9.0.0.0"]), None);
}

#[test]
fn advice_too_new_kubernetes_says_what_must_be_released_and_what_a_pin_risks() {
    let mut index = toy(&[("2.0.0", "1.30", "1.35", json!({})), ("1.0.0", "1.30", "1.34", json!({}))]);
    let advice = |index: &Index, kubernetes: &str| ask(index, kubernetes, &[]).of(index).unwrap_err().advice.unwrap_or_default();
    let rest = "A version of toy that supports 1.36 must be released, and a newer matrix must list it. Until then 2.0.0 can be pinned with \
                allowIncompatible, at your own risk: it was not tested with Kubernetes 1.36, so pods with volumes may fail to start, and the \
                operator cannot detect this";
    assert_eq!(
        advice(&index, "v1.36.1"),
        format!("No version of toy supports Kubernetes 1.36 yet: the newest, 2.0.0, supports Kubernetes up to 1.35. {rest}")
    );
    assert_eq!(advice(&index, "v1.29.1"), "With Kubernetes 1.30, version 2.0.0 can be installed");
    let released = json!({"kubernetes": {"1.36": "2026-04-22"}, "toy": {"2.0.0": "2026-03-21"}});
    index.released = serde_json::from_value(released).unwrap();
    assert_eq!(
        advice(&index, "v1.36.1"),
        format!(
            "Kubernetes 1.36 was released on 2026-04-22, and no version of toy supports it yet: the newest, 2.0.0, released on 2026-03-21, \
             supports Kubernetes up to 1.35. {rest}"
        )
    );
}

/// A step in between is named when it is new enough, can be reached from what is installed, and is good.
#[test]
fn advice_step_between_leads_from_installed_to_target() {
    let from = |min: &str| json!({"upgradesFrom": {"min": min}});
    let withdrawn = json!({"state": {"kind": "withdrawn", "reason": "r"}});
    let through = |between: &[(&str, Value)], urls: bool| {
        let mut lines = vec![("4.0.0", "1.30", "1.40", from("3.0.0")), ("1.0.0", "1.20", "1.21", json!({}))];
        lines.extend(between.iter().map(|(version, more)| (*version, "1.20", "1.21", more.clone())));
        let mut index = toy(&lines);
        for entry in &mut index.drivers.get_mut("toy").unwrap().versions {
            if !urls && entry.version.to_string() == "3.1.0" {
                entry.chart.urls.clear();
            }
        }
        let error = ask(&index, "v1.34.0", &[]).installed(&[("toy", "1.0.0")]).of(&index).unwrap_err();
        let advice = error.advice.unwrap_or_default();
        let step = advice.strip_prefix("To reach 4.0.0, first pin ").map(str::to_owned);
        step.map(|step| step.replace(" with allowIncompatible", ""))
    };
    let some = |version: &str| Some(version.to_owned());
    assert_eq!(through(&[("3.0.0", json!({}))], true), some("3.0.0"));
    assert_eq!(through(&[("3.1.0", json!({})), ("3.0.0", json!({}))], true), some("3.1.0"));
    assert_eq!(
        through(&[("3.1.0", json!({})), ("3.0.0", json!({}))], false),
        some("3.0.0"),
        "one has no chart"
    );
    assert_eq!(through(&[("3.1.0", withdrawn), ("3.0.0", json!({}))], true), some("3.0.0"));
    assert_eq!(through(&[("3.1.0", from("2.0.0")), ("3.0.0", from("1.0.0"))], true), some("3.0.0"));
    assert_eq!(through(&[("2.9.0", json!({}))], true), None);
    assert_eq!(through(&[("5.0.0", json!({}))], true), None);
}

/// Two drivers, of which one needs a version of the other that is there and does not fit: both are asked for, and one is to attribute.
#[test]
fn advice_requirement_is_named_only_where_it_is_all_that_lacks() {
    let needs = json!({"requires": [{"driver": "base"}]});
    let index = toys(&[
        ("toy", &[("2.0.0", "1.35", "1.36", needs.clone()), ("1.0.0", "1.30", "1.34", needs)]),
        ("base", &[("1.0.0", "1.30", "1.34", json!({}))]),
    ]);
    let mut question = ask(&index, "v1.33.0", &[]);
    question.drivers.remove("base");
    let error = question.of(&index).unwrap_err();
    assert_eq!(
        error.advice.as_deref(),
        Some("If base is installed too, version 1.0.0 can be installed")
    );
}

/// Doing without something is cheaper than an upgrade of a vCenter, and that is cheaper than another driver, whichever version is newer.
#[test]
fn advice_smaller_change_goes_before_newer_version() {
    let base = json!({"requires": [{"driver": "base"}], "features": {"f": {"vsphere": {"min": null, "max": null}}}});
    let vsphere = json!({
        "vsphere": {"min": "8.0", "max": null, "confidence": "unverified"},
        "features": {"f": {"vsphere": {"min": null, "max": null}}},
    });
    let bare = json!({});
    for (newer, older, expected) in [
        (&base, &bare, "Without spec.f, version 1.0.0 can be installed"),
        (&vsphere, &bare, "Without spec.f, version 1.0.0 can be installed"),
        (&base, &vsphere, "After an upgrade of vc1 to 8.0, version 1.0.0 can be installed"),
        (&vsphere, &base, "After an upgrade of vc1 to 8.0, version 2.0.0 can be installed"),
    ] {
        let index = toys(&[
            (
                "toy",
                &[("2.0.0", "1.30", "1.34", newer.clone()), ("1.0.0", "1.30", "1.34", older.clone())],
            ),
            ("base", &[("1.0.0", "1.30", "1.34", json!({}))]),
        ]);
        let mut question = ask(&index, "v1.33.0", &["7.0.3"]);
        question.drivers.remove("base");
        question.drivers.get_mut("toy").unwrap().features = [("f".to_owned(), "spec.f".to_owned())].into();
        let error = question.of(&index).unwrap_err();
        assert_eq!(error.advice.as_deref(), Some(expected), "{newer} {older}");
    }
}
