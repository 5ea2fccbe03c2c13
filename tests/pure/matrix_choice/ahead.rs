// SPDX-License-Identifier: Apache-2.0
//! What will fit later, and what would have to change.

use super::{Ask, ask, index, toy, toys, words};
use serde_json::json;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::matrix::{UpdatePolicy, When, outlook, upgradeable};

#[test]
fn outlook_each_minor_lists_driver_changes_in_order() {
    let question = ask(index(), "v1.32.4", &["8.0.3"]).installed(&[(CPI, "1.32.3"), (CSI, "3.5.1")]);
    let seen = outlook(index(), &question.query(), Some(&"1.35".parse().unwrap()), &[]);
    let lines: Vec<String> = seen
        .stages
        .iter()
        .map(|stage| {
            let changes = &stage.changes;
            let change = |c: &vdo_core::matrix::Change| {
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
            // 3.8.0 does not run on 1.33, so it is changed with the cluster
            "1.34: vsphere-cpi 1.34.0 with, vsphere-csi 3.8.0 with",
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
    assert_eq!(words(&then.of(index())), "1.35.1 3.8.0");
}

/// A driver without a version stays, and does not hold up the others: the CPI follows the minor without the CSI driver.
#[test]
fn outlook_driver_without_a_version_does_not_hold_up_the_others() {
    let then = ask(index(), "v1.35.2", &["8.0.3"]).installed(&[(CPI, "1.35.1"), (CSI, "3.7.3")]);
    let seen = outlook(index(), &then.query(), Some(&"1.37".parse().unwrap()), &[]);
    let stage = |stage: &vdo_core::matrix::Stage| {
        let unfit: Vec<&str> = stage
            .unfit
            .iter()
            .flat_map(|error| error.all())
            .map(|error| error.driver.as_str())
            .collect();
        let runs: Vec<String> = stage.runs.values().map(ToString::to_string).collect();
        format!("{}: {} without {}", stage.kubernetes, runs.join(" "), unfit.join(" "))
    };
    let stages: Vec<String> = seen.stages.iter().map(stage).collect();
    assert_eq!(
        stages,
        [
            "v1.35.2: 1.35.1 3.7.3 without ",
            "1.36: 1.36.0 3.8.0 without ",
            "1.37: 1.37.0 3.8.0 without vsphere-csi",
        ]
    );
}

#[test]
fn outlook_newer_vcenter_keeps_installed_versions() {
    let older = ask(index(), "v1.27.4", &["6.7.3"]).installed(&[(CPI, "1.27.0"), (CSI, "3.1.2")]);
    let seen = outlook(index(), &older.query(), None, &[("vc1".into(), "8.0.3".parse().unwrap())]);
    assert_eq!(seen.stages[1].changes, [], "a newer vCenter takes what runs");
}

/// The last stage is what was asked for, with its patch; a cluster that goes back does so at once; and no plan has more than twenty.
#[test]
fn outlook_stages_end_at_the_target() {
    let index = toy(&[("1.0.0", "1.10", "1.99", json!({}))]);
    let stages = |from: &str, to: &str, vcenters: &[(String, vdo_api::types::VcenterVersion)]| {
        let question = ask(&index, from, &["8.0.3"]).installed(&[("toy", "1.0.0")]);
        let seen = outlook(&index, &question.query(), Some(&to.parse().unwrap()), vcenters);
        let stage = |stage: &vdo_core::matrix::Stage| format!("{} {}", stage.kubernetes, stage.vcenters[0].1);
        seen.stages.iter().map(stage).collect::<Vec<_>>()
    };
    assert_eq!(stages("v1.33.4", "v1.35.2", &[]), ["v1.33.4 8.0.3", "1.34 8.0.3", "v1.35.2 8.0.3"]);
    assert_eq!(stages("v1.33.4", "v1.33.9", &[]), ["v1.33.4 8.0.3"]);
    assert_eq!(stages("v1.33.4", "v1.30.1", &[]), ["v1.33.4 8.0.3", "v1.30.1 8.0.3"]);
    let newer = [("vc1".to_owned(), "9.0.0.0".parse().unwrap())];
    assert_eq!(
        stages("v1.33.4", "v1.34.0", &newer),
        ["v1.33.4 8.0.3", "v1.33.4 9.0.0.0", "v1.34.0 9.0.0.0"]
    );
    let other = [("vc2".to_owned(), "9.0.0.0".parse().unwrap())];
    assert_eq!(stages("v1.33.4", "v1.34.0", &other), ["v1.33.4 8.0.3", "v1.34.0 8.0.3"]);
    assert_eq!(stages("v1.20.0", "v1.80.0", &[]).len(), 20);
}

/// A version that has no way from what runs is installed with the stage; one that fits earlier comes before it, whole way.
#[test]
fn outlook_change_comes_before_the_stage_where_its_way_fits() {
    let from = |min: &str| json!({"upgradesFrom": {"min": min}});
    let index = toy(&[
        ("3.0.0", "1.33", "1.36", from("2.0.0")),
        ("2.0.0", "1.33", "1.34", json!({})),
        ("1.0.0", "1.30", "1.34", json!({})),
    ]);
    let say = |kubernetes: &str, installed: &str| {
        let question = ask(&index, kubernetes, &[]).installed(&[("toy", installed)]);
        let seen = outlook(&index, &question.query(), Some(&"1.35".parse().unwrap()), &[]);
        let last = seen.stages.last().unwrap();
        if last.unfit.is_some() {
            return format!("nothing fits {}", last.kubernetes);
        }
        let change = |c: &vdo_core::matrix::Change| {
            let path: Vec<String> = c.path.iter().map(|step| step.version.to_string()).collect();
            format!("{:?} {} for {}", c.when, path.join(" "), last.kubernetes)
        };
        last.changes.iter().map(change).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(say("v1.34.0", "2.0.0"), "Before 3.0.0 for 1.35");
    assert_eq!(say("v1.34.0", "3.0.0"), "");
}

/// What only the newer vCenter lets run comes with it, and what the older one lets run, too, comes before.
#[test]
fn outlook_newer_vcenter_changes_drivers_with_or_before_it() {
    let vsphere = |min: &str, max: Option<&str>| json!({"vsphere": {"min": min, "max": max, "confidence": "unverified"}});
    let say = |min: &str| {
        let index = toy(&[
            ("2.0.0", "1.30", "1.34", vsphere(min, None)),
            ("1.0.0", "1.30", "1.34", vsphere("7.0", Some("7.0"))),
        ]);
        let question = ask(&index, "v1.33.0", &["7.0.3"]).installed(&[("toy", "1.0.0")]);
        let newer = [("vc1".to_owned(), "8.0.3".parse().unwrap())];
        let seen = outlook(&index, &question.query(), None, &newer);
        let changes = &seen.stages[1].changes;
        let change = |c: &vdo_core::matrix::Change| format!("{:?} {}", c.when, c.path[0].version);
        changes.iter().map(change).collect::<Vec<_>>()
    };
    assert_eq!(say("8.0"), ["With 2.0.0"]);
    assert_eq!(say("7.0"), ["Before 2.0.0"]);
}

#[test]
fn upgradeable_next_minor_fits_or_not() {
    let mut question = ask(index(), "v1.34.4", &["8.0.3"]).installed(&[(CPI, "1.34.0"), (CSI, "3.7.3")]);
    let next = upgradeable(index(), &question.query());
    assert_eq!((next.kubernetes.as_str(), next.fits()), ("1.35", true));
    question.kubernetes = "v1.36.0".parse().unwrap();
    assert!(!upgradeable(index(), &question.query()).fits());
}

#[test]
fn upgradeable_updates_disabled_needs_installed_version_to_fit() {
    let mut question = ask(index(), "v1.34.4", &["8.0.3"]).installed(&[(CPI, "1.34.0"), (CSI, "3.7.3")]);
    // what is not updated must fit as it is
    question.kubernetes = "v1.34.4".parse().unwrap();
    question.policy = UpdatePolicy::Disabled;
    let next = upgradeable(index(), &question.query());
    assert_eq!(next.forced.keys().collect::<Vec<_>>(), [CPI]);
    assert!(!next.fits());
}

/// The advice names one thing to change only where that one thing is enough.
#[test]
fn advice_names_only_change_that_is_enough() {
    let advice = |kubernetes: &str, vcenters: &[&str], csi_only: bool| {
        let mut question = ask(index(), kubernetes, vcenters);
        if csi_only {
            question.drivers.remove(CPI);
        }
        question.of(index()).unwrap_err().advice.unwrap_or_default()
    };
    for (kubernetes, vcenters, expected) in [
        (
            "v1.34.0",
            &["6.7.3"][..],
            "After an upgrade of vc1 to 7.0, version 3.8.0 can be installed",
        ),
        // both are too old, so both are named
        (
            "v1.34.0",
            &["6.7.3", "8.0.3", "6.7.0"],
            "After an upgrade of vc1 and vc3 to 7.0, version 3.8.0 can be installed",
        ),
        ("v1.20.0", &["8.0.3"], "With Kubernetes 1.23, version 2.7.3 can be installed"),
        // 2.7 takes neither this Kubernetes nor two vCenters, 3.0 does once the cluster is newer
        (
            "v1.20.0",
            &["8.0.3", "7.0.3"],
            "With Kubernetes 1.25, version 3.0.3 can be installed",
        ),
        (
            "v1.20.0",
            &["6.0.0"],
            "No single change helps: 3.8.0 supports Kubernetes 1.34 to 1.36, not 1.20, and supports vCenter 7.0 and newer, not version 6.0.0 of vc1",
        ),
    ] {
        assert_eq!(advice(kubernetes, vcenters, true), expected, "{kubernetes} {vcenters:?}");
    }
}

#[test]
fn advice_unmet_requirement_names_other_driver() {
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
        "base is not to attribute: {error}"
    );
    assert_eq!(
        error
            .fitting
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect::<Vec<_>>(),
        ["base 1.0.0"]
    );
    assert_eq!(
        error.advice.as_deref(),
        Some("With base 2.0.0 and newer, version 1.0.0 can be installed")
    );
}
