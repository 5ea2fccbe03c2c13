// SPDX-License-Identifier: Apache-2.0
//! Two indexes side by side.

use super::{toy, toys};
use serde_json::{Value, json};
use vdo_api::types::{KubernetesVersion, VcenterVersion};
use vdo_core::matrix::{Index, Situation, difference, known_minors, known_vcenters, minors};

fn kubernetes(versions: &[&str]) -> Vec<KubernetesVersion> {
    versions.iter().map(|version| version.parse().unwrap()).collect()
}

fn vcenters(versions: &[&str]) -> Vec<VcenterVersion> {
    versions.iter().map(|version| version.parse().unwrap()).collect()
}

fn written(versions: &[impl ToString]) -> Vec<String> {
    versions.iter().map(ToString::to_string).collect()
}

/// What became of each version, in words.
fn changes(old: &Index, new: &Index) -> Vec<String> {
    let all = difference(old, new, &[], &[]).versions;
    all.into_iter()
        .map(|(driver, version, what)| format!("{driver} {version} {}", what.join(", ")))
        .collect()
}

#[test]
fn difference_each_change_of_a_version_is_named() {
    let before = toy(&[("1.0.0", "1.30", "1.34", json!({}))]);
    let vsphere = json!({"min": "7.0", "max": null, "confidence": "unverified"});
    for (min, more, expected) in [
        ("1.30", json!({}), None),
        ("1.31", json!({}), Some("Kubernetes 1.30 to 1.34 became 1.31 to 1.34")),
        ("1.30", json!({"vsphere": vsphere}), Some("vSphere any became 7.0 and newer")),
        (
            "1.30",
            json!({"state": {"kind": "withdrawn", "reason": "r"}}),
            Some("is withdrawn: r"),
        ),
        (
            "1.30",
            json!({"state": {"kind": "deprecated", "reason": "r"}}),
            Some("is deprecated: r"),
        ),
        (
            "1.30",
            json!({"chart": {"urls": ["charts/x.tgz"], "sha256": "1".repeat(64)}}),
            Some("has another chart"),
        ),
        ("1.30", json!({"requires": [{"driver": "toy"}]}), Some("has other requirements")),
        (
            "1.30",
            json!({"features": {"f": {"vsphere": {"min": null, "max": null}}}}),
            Some("has other features"),
        ),
        ("1.30", json!({"upgradesFrom": {"min": "0.9.0"}}), Some("has other upgrade edges")),
        (
            "1.30",
            json!({"images": [{"name": "i", "ref": "r.example.com/i:1"}]}),
            Some("has other images"),
        ),
    ] {
        let after = toy(&[("1.0.0", min, "1.34", more.clone())]);
        let expected: Vec<String> = expected.into_iter().map(|what| format!("toy 1.0.0 {what}")).collect();
        assert_eq!(changes(&before, &after), expected, "{min} {more}");
    }
    let withdrawn = toy(&[("1.0.0", "1.30", "1.34", json!({"state": {"kind": "withdrawn", "reason": "r"}}))]);
    assert_eq!(
        changes(&withdrawn, &before),
        ["toy 1.0.0 is neither deprecated nor withdrawn any more"]
    );
}

#[test]
fn difference_versions_that_come_and_go_are_listed_newest_first() {
    let entry = |version: &'static str| (version, "1.30", "1.34", json!({}));
    let old = toys(&[("toy", &[entry("1.0.0"), entry("1.1.0")]), ("base", &[entry("1.0.0")])]);
    let new = toys(&[("toy", &[entry("1.1.0"), entry("1.2.0"), entry("1.3.0")])]);
    assert_eq!(
        changes(&old, &new),
        [
            "base 1.0.0 is removed",
            "toy 1.3.0 is new: Kubernetes 1.30 to 1.34, vSphere any",
            "toy 1.2.0 is new: Kubernetes 1.30 to 1.34, vSphere any",
            "toy 1.0.0 is removed",
        ]
    );
}

#[test]
fn difference_choices_say_who_takes_another_version_and_where() {
    let old = toy(&[("1.0.0", "1.30", "1.33", json!({}))]);
    let new = toy(&[("2.0.0", "1.31", "1.34", json!({})), ("1.0.0", "1.30", "1.32", json!({}))]);
    let found = difference(&old, &new, &kubernetes(&["1.30", "1.31", "1.33", "1.34"]), &vcenters(&["8.0.3"]));
    let choices: Vec<Value> = found
        .choices
        .iter()
        .map(|choice| {
            let at: Vec<String> = choice
                .platforms
                .iter()
                .map(|(kubernetes, vcenter)| format!("{kubernetes} {vcenter}"))
                .collect();
            let version = |version: &Option<_>| version.as_ref().map(ToString::to_string);
            json!([
                choice.driver,
                format!("{:?}", choice.situation),
                version(&choice.old),
                version(&choice.new),
                at
            ])
        })
        .collect();
    assert_eq!(
        choices,
        [
            // Nothing fitted 1.34 before; with 1.33 the installed version does not fit any more.
            json!(["toy", "New", null, "2.0.0", ["1.34 8.0.3"]]),
            json!(["toy", "New", "1.0.0", "2.0.0", ["1.31 8.0.3", "1.33 8.0.3"]]),
            json!(["toy", "Compatible", null, "2.0.0", ["1.34 8.0.3"]]),
            json!(["toy", "Compatible", "1.0.0", "2.0.0", ["1.33 8.0.3"]]),
            json!(["toy", "Latest", null, "2.0.0", ["1.34 8.0.3"]]),
            json!(["toy", "Latest", "1.0.0", "2.0.0", ["1.31 8.0.3", "1.33 8.0.3"]]),
        ]
    );
    // A driver that one index does not have is not chosen by it.
    let other = toys(&[("other", &[("1.0.0", "1.30", "1.34", json!({}))])]);
    let found = difference(&old, &other, &kubernetes(&["1.30"]), &vcenters(&["8.0.3"])).choices;
    let lost = |driver: &str| {
        found
            .iter()
            .filter(|choice| choice.driver == driver && choice.situation == Situation::New)
            .count()
    };
    assert_eq!([lost("toy"), lost("other")], [1, 1]);
}

/// A driver for which nothing fits does not hide what happens to another one.
#[test]
fn difference_counts_the_own_choice_of_each_driver() {
    let base = ("3.8.0", "1.34", "1.36", json!({}));
    let (known, fresh) = (("1.36.0", "1.36", "1.36", json!({})), ("1.37.0", "1.37", "1.37", json!({})));
    let old = toys(&[("base", std::slice::from_ref(&base)), ("toy", std::slice::from_ref(&known))]);
    let new = toys(&[("base", &[base]), ("toy", &[known, fresh])]);
    let found = difference(&old, &new, &kubernetes(&["1.36", "1.37"]), &vcenters(&["8.0.3"]));
    let choices: Vec<_> = found
        .choices
        .iter()
        .map(|choice| {
            (
                choice.driver.as_str(),
                choice.new.as_ref().map(ToString::to_string),
                written(&choice.platforms.iter().map(|(minor, _)| minor).collect::<Vec<_>>()),
            )
        })
        .collect();
    let taken = ("toy", Some("1.37.0".to_owned()), vec!["1.37".to_owned()]);
    assert_eq!(choices, [taken.clone(), taken.clone(), taken]);
    assert!(!found.is_same());
}

/// The same version with another chart is something else in the cluster, and so is what becomes of a version that is installed
/// although a new cluster would get a newer one.
#[test]
fn difference_counts_charts_and_versions_that_are_installed() {
    let newest = ("2.0.0", "1.30", "1.34", json!({}));
    let with = |more: Value| toy(&[newest.clone(), ("1.0.0", "1.30", "1.34", more)]);
    let old = with(json!({}));
    let look = |new: &Index| difference(&old, new, &kubernetes(&["1.34"]), &vcenters(&["8.0.3"]));
    let withdrawn = look(&with(json!({"state": {"kind": "withdrawn", "reason": "r"}})));
    assert_eq!(withdrawn.choices.len(), 1, "{withdrawn:?}");
    let choice = &withdrawn.choices[0];
    let versions = [&choice.old, &choice.new].map(|version| version.as_ref().map(ToString::to_string).unwrap_or_default());
    assert_eq!(
        (choice.situation, versions),
        (Situation::Compatible, ["1.0.0", "2.0.0"].map(String::from))
    );

    let chart = json!({"chart": {"urls": ["charts/x.tgz"], "sha256": "1".repeat(64)}});
    let other = look(&toy(&[("2.0.0", "1.30", "1.34", chart), ("1.0.0", "1.30", "1.34", json!({}))]));
    assert_eq!(other.choices.len(), 3, "{other:?}");
    assert!(other.choices.iter().all(|choice| choice.old == choice.new));
    assert!(look(&old.clone()).is_same());
}

#[test]
fn difference_names_other_rules() {
    let old = toy(&[("1.0.0", "1.30", "1.34", json!({}))]);
    let mut new = old.clone();
    new.privileges = Some(Default::default());
    let found = difference(&old, &new, &[], &[]);
    assert_eq!((found.rules.len(), found.is_same()), (1, false));
}

#[test]
fn difference_platforms_are_those_that_either_index_speaks_of() {
    let feature = json!({
        "vsphere": {"min": "7.0", "max": "8.0.3", "confidence": "unverified"},
        "features": {"f": {"vsphere": {"min": "7.0.3", "max": null}}},
    });
    let old = toy(&[("1.0.0", "1.30", "1.31", feature)]);
    let new = toy(&[("1.0.0", "1.32", "1.33", json!({}))]);
    assert_eq!(written(&known_minors([&old, &new])), ["1.30", "1.31", "1.32", "1.33"]);
    assert_eq!(written(&known_vcenters([&old, &new])), ["7.0", "7.0.3", "8.0.3"]);
    let open = json!({"kubernetes": {"min": null, "max": null, "confidence": "unverified"}});
    let nothing = toy(&[("1.0.0", "", "", open)]);
    assert!(known_minors([&nothing, &nothing]).is_empty());
}

#[test]
fn minors_of_an_open_range_reach_as_far_as_the_index() {
    let index = toy(&[("1.0.0", "1.30", "1.32", json!({}))]);
    let open = json!({"kubernetes": {"min": null, "max": null, "confidence": "unverified"}});
    let silent = toy(&[("1.0.0", "", "", open)]);
    for (min, max, index, expected) in [
        (Some("1.31"), Some("1.32"), &index, &["1.31", "1.32"][..]),
        (None, Some("1.31"), &index, &["1.30", "1.31"]),
        (Some("1.31"), None, &index, &["1.31", "1.32"]),
        (None, None, &index, &["1.30", "1.31", "1.32"]),
        (Some("1.34"), None, &index, &["1.34"]),
        (Some("1.34"), None, &silent, &["1.34"]),
        (None, Some("1.34"), &silent, &["1.34"]),
        (None, None, &silent, &[]),
    ] {
        let kubernetes = json!({"kubernetes": {"min": min, "max": max, "confidence": "unverified"}});
        let asked = toy(&[("1.0.0", "", "", kubernetes)]);
        let range = &asked.drivers["toy"].versions[0].kubernetes.range;
        assert_eq!(minors(range, index), expected, "{min:?} {max:?}");
    }
}
