// SPDX-License-Identifier: Apache-2.0
//! What keeps a version from being taken, and what is said of it.

use super::{ask, toy, toys};
use serde_json::json;
use vdo_api::types::DriverRole;
use vdo_core::matrix::{NoFit, candidates};

fn rejected(error: &NoFit) -> Vec<String> {
    error.rejected.iter().map(ToString::to_string).collect()
}

#[test]
fn candidates_each_version_says_what_bars_it() {
    let index = toy(&[
        ("2.0.0", "1.35", "1.36", json!({})),
        ("1.9.0-rc.1", "1.30", "1.34", json!({})),
        ("1.8.0", "1.30", "1.34", json!({})),
    ]);
    let question = ask(&index, "v1.33.0", &[]);
    let found: Vec<String> = candidates(&index, &question.query())["toy"]
        .iter()
        .map(|(version, bar)| match bar {
            Some(reason) => format!("{version} {reason}"),
            None => format!("{version} may be chosen"),
        })
        .collect();
    assert_eq!(
        found,
        [
            "2.0.0 supports Kubernetes 1.35 to 1.36, not 1.33",
            "1.9.0-rc.1 is a pre-release, and VDO installs a pre-release only if it is pinned",
            "1.8.0 may be chosen",
        ]
    );
}

/// Several vCenters are named as the cause only where they are: not for another feature, and not where someone asks for them by name.
#[test]
fn resolve_missing_feature_names_who_asks_for_it() {
    let several = json!({"features": {"multiVcenter": {"vsphere": {"min": "7.0", "max": null}}}});
    let index = toy(&[("2.0.0", "1.30", "1.34", several), ("1.0.0", "1.30", "1.34", json!({}))]);
    let reasons = |vcenters: &[&str], feature: &str| {
        let mut question = ask(&index, "v1.33.0", vcenters);
        let features = &mut question.drivers.get_mut("toy").unwrap().features;
        features.insert(feature.to_owned(), format!("spec.{feature}"));
        question.of(&index).map_or_else(|error| rejected(&error), |_| Vec::new())
    };
    let lacks = |version: &str, feature: &str| format!("{version} does not support {feature}, which spec.{feature} requires");
    let one = "1.0.0 supports only one vCenter, but there are 2 vSphere connections".to_owned();
    // alphabetically before and after multiVcenter: the first of both reasons is reported
    assert_eq!(reasons(&["8.0.3", "8.0.2"], "snapshots"), [lacks("2.0.0", "snapshots"), one]);
    assert_eq!(
        reasons(&["8.0.3", "8.0.2"], "expansion"),
        [lacks("2.0.0", "expansion"), lacks("1.0.0", "expansion")]
    );
    // 6.7 is too old for what 2.0.0 can do
    assert_eq!(reasons(&["6.7.3"], "multiVcenter")[1..], [lacks("1.0.0", "multiVcenter")]);
}

/// Every version that is barred is listed once, whether it is barred by itself or by what it needs; the first driver of that name is
/// what counts, not the driver itself.
#[test]
fn resolve_unmet_requirement_lists_each_version_once() {
    let needs = json!({"requires": [{"driver": "base", "min": "2.0.0"}]});
    let index = toys(&[
        (
            "toy",
            &[
                ("3.0.0-rc.1", "1.30", "1.34", needs.clone()),
                ("2.0.0", "1.30", "1.34", needs),
                ("1.0.0", "1.20", "1.21", json!({})),
            ],
        ),
        ("base", &[("1.0.0", "1.30", "1.34", json!({}))]),
    ]);
    let reported = |pin: Option<&str>| {
        let mut question = ask(&index, "v1.33.0", &[]);
        question.drivers.get_mut("toy").unwrap().pin = pin.map(|pin| pin.parse().unwrap());
        rejected(&question.of(&index).unwrap_err())
    };
    let lacking = |version: &str| format!("{version} needs base 2.0.0 and newer, but no such version fits");
    let prerelease = "3.0.0-rc.1 is a pre-release, and VDO installs a pre-release only if it is pinned".to_owned();
    let old = "1.0.0 supports Kubernetes 1.20 to 1.21, not 1.33".to_owned();
    assert_eq!(reported(None), [prerelease, lacking("2.0.0"), old.clone()]);
    assert_eq!(reported(Some("3.0.0-rc.1")), [lacking("3.0.0-rc.1"), old]);
}

#[test]
fn resolve_reason_is_minor_only_for_cloud_provider_of_one_minor() {
    for (role, min, max, minor) in [
        (DriverRole::CloudProvider, json!("1.33"), json!("1.33"), true),
        (DriverRole::CloudProvider, json!("1.32"), json!("1.33"), false),
        (DriverRole::CloudProvider, json!(null), json!(null), false),
        (DriverRole::Storage, json!("1.33"), json!("1.33"), false),
        (DriverRole::Storage, json!(null), json!(null), false),
    ] {
        let kubernetes = json!({"kubernetes": {"min": min, "max": max, "confidence": "unverified"}});
        let mut index = toy(&[("1.0.0", "", "", kubernetes)]);
        index.drivers.get_mut("toy").unwrap().role = role;
        let resolution = ask(&index, "v1.33.2", &[]).of(&index).unwrap();
        let expected = if minor {
            "its minor version must equal Kubernetes 1.33"
        } else {
            "newest that supports Kubernetes 1.33"
        };
        assert_eq!(resolution.picks["toy"].because, expected, "{role:?} {min} to {max}");
    }
}

/// What lacks another driver is nearer than what lacks a patch of the cluster, and that is nearer than what lacks a minor.
#[test]
fn no_fit_nearest_version_needs_least() {
    let lacks = json!({"requires": [{"driver": "base"}]});
    let withdrawn = json!({"state": {"kind": "withdrawn", "reason": "r"}});
    let index = toys(&[
        (
            "toy",
            &[
                ("5.0.0", "1.36", "1.37", json!({})),
                ("4.0.0", "1.35", "1.36", json!({})),
                ("3.0.0", "1.33.9", "1.34", json!({})),
                ("2.0.0", "1.30", "1.34", lacks),
                ("1.0.0", "1.30", "1.34", withdrawn),
            ],
        ),
        ("base", &[("1.0.0", "1.30", "1.34", json!({}))]),
    ]);
    let mut question = ask(&index, "v1.33.2", &[]);
    question.drivers.remove("base");
    let error = question.of(&index).unwrap_err();
    let nearest: Vec<String> = error.nearest().iter().map(|rejected| rejected.version.to_string()).collect();
    assert_eq!(nearest, ["2.0.0", "3.0.0", "4.0.0", "5.0.0", "1.0.0"]);
}

#[test]
fn no_fit_message_counts_versions_beyond_the_nearest_three() {
    for (versions, more) in [
        (2, None),
        (3, None),
        (4, Some("; and 1 more version")),
        (5, Some("; and 2 more versions")),
    ] {
        let names: Vec<String> = (1..=versions).map(|minor| format!("1.{minor}.0")).collect();
        let lines: Vec<_> = names.iter().map(|version| (version.as_str(), "1.35", "1.36", json!({}))).collect();
        let index = toy(&lines);
        let message = ask(&index, "v1.33.0", &[]).of(&index).unwrap_err().to_string();
        let shown = message.split("; and ").next().unwrap();
        assert_eq!(shown.matches("supports Kubernetes").count(), versions.min(3), "{message}");
        assert_eq!(message.strip_prefix(shown), Some(more.unwrap_or_default()), "{message}");
    }
}
