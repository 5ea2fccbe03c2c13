//! What will fit later, and what would have to change.

use super::{Ask, ask, index, toys, words};
use serde_json::json;
use vdo::matrix::{UpdatePolicy, When, outlook, upgradeable};
use vdo::types::{CPI, CSI};

#[test]
fn outlook_each_minor_lists_driver_changes_in_order() {
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
}

#[test]
fn outlook_minor_without_driver_ends_there() {
    let then = ask(index(), "v1.35.2", &["8.0.3"]).installed(&[(CPI, "1.35.1"), (CSI, "3.7.3")]);
    let seen = outlook(index(), &then.query(), Some(&"1.37".parse().unwrap()), &[]);
    assert_eq!(seen.stages.len(), 2, "it ends where nothing fits");
    assert!(seen.stages[1].result.is_err());
}

#[test]
fn outlook_newer_vcenter_keeps_installed_versions() {
    let older = ask(index(), "v1.27.4", &["6.7.3"]).installed(&[(CPI, "1.27.0"), (CSI, "3.1.2")]);
    let seen = outlook(index(), &older.query(), None, &[("vc1".into(), "8.0.3".parse().unwrap())]);
    assert_eq!(seen.stages[1].result.as_ref().unwrap(), &[], "a newer vCenter takes what runs");
}

#[test]
fn upgradeable_next_minor_fits_or_not() {
    let mut question = ask(index(), "v1.34.4", &["8.0.3"]).installed(&[(CPI, "1.34.0"), (CSI, "3.7.3")]);
    let next = upgradeable(index(), &question.query());
    assert_eq!((next.kubernetes.as_str(), next.fits()), ("1.35", true));
    question.kubernetes = "v1.35.0".parse().unwrap();
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
