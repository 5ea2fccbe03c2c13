// SPDX-License-Identifier: Apache-2.0
//! Upgrades: what they wait for, and which way they go.

use super::{ask, toy};
use serde_json::json;
use vdo_core::matrix::{UpdatePolicy, outlook};

#[test]
fn upgrade_unmet_precondition_waits() {
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
    let waits = "3.0.0 cannot be installed yet because of precondition Backup: none is there; make one";
    // no one has checked: the choice says what to check
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
    // what is installed needs no upgrade
    for pin in [None, Some(("3.0.0", false))] {
        assert_eq!(say("3.0.0", "v1.34.0", latest, Some(&["Backup"]), pin), "3.0.0 []");
    }
    // a first installation is not an upgrade
    assert_eq!(say("", "v1.34.0", latest, Some(&["Backup"]), None), "3.0.0 []");
    // neither a pin nor a platform that has moved on goes round it; insisting does
    let pinned = say("2.0.0", "v1.34.0", latest, Some(&["Backup"]), Some(("3.0.0", false)));
    assert!(
        pinned.starts_with("toy is pinned to 3.0.0, which cannot be installed yet because of precondition Backup: none is there"),
        "{pinned}"
    );
    assert_eq!(
        say("2.0.0", "v1.34.0", latest, Some(&["Backup"]), Some(("3.0.0", true))),
        "3.0.0 []"
    );
}

#[test]
fn upgrade_unmet_precondition_is_named_in_advice() {
    let backed = json!({"upgradesFrom": {"preconditions": ["Backup"]}});
    let index = toy(&[("2.0.0", "1.30", "1.40", backed), ("1.0.0", "1.30", "1.34", json!({}))]);
    let mut question = ask(&index, "v1.36.0", &[]).installed(&[("toy", "1.0.0")]);
    question.drivers.get_mut("toy").unwrap().unmet = Some([("Backup".to_owned(), "none is there".to_owned())].into());
    let error = question.of(&index).unwrap_err();
    assert_eq!(
        error.advice.as_deref(),
        Some("2.0.0 can be installed when this problem is solved: none is there"),
        "{error}"
    );
}

#[test]
fn upgrade_path_goes_through_versions_in_between() {
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
    let change = &seen.stages[0].changes[0];
    let path: Vec<String> = change
        .path
        .iter()
        .map(|step| format!("{} {}", step.version, step.preconditions.join(",")))
        .collect();
    assert_eq!(path, ["2.5.0 ", "3.1.0 Backup", "4.0.0 Backup"]);
}

#[test]
fn upgrade_path_without_fitting_step_is_rejected() {
    let from = |min: &str| json!({"upgradesFrom": {"min": min, "preconditions": ["Backup"]}});
    // the version in between does not fit, so the way is barred
    let index = toy(&[
        ("4.0.0", "1.30", "1.40", from("3.0.0")),
        ("3.1.0", "1.20", "1.21", json!({})),
        ("1.0.0", "1.20", "1.21", json!({})),
    ]);
    let error = ask(&index, "v1.34.0", &[]).installed(&[("toy", "1.0.0")]).of(&index).unwrap_err();
    assert_eq!(
        error.rejected[0].to_string(),
        "4.0.0 can replace only 3.0.0 and newer, but 1.0.0 is installed, and no fitting version in between can be installed first"
    );
    assert_eq!(
        error.advice.as_deref(),
        Some("To reach 4.0.0, first pin 3.1.0 with allowIncompatible")
    );
}

#[test]
fn upgrade_forced_pin_without_path_goes_there_at_once() {
    let index = toy(&[
        ("4.0.0", "1.30", "1.40", json!({"upgradesFrom": {"min": "3.0.0"}})),
        ("1.0.0", "1.30", "1.40", json!({})),
    ]);
    let mut question = ask(&index, "v1.34.0", &[]).installed(&[("toy", "1.0.0")]);
    let request = question.drivers.get_mut("toy").unwrap();
    (request.pin, request.allow_incompatible) = (Some("4.0.0".parse().unwrap()), true);
    let pick = question.of(&index).unwrap().picks["toy"].clone();
    assert_eq!((pick.version.to_string(), pick.path.len()), ("4.0.0".into(), 0));
}
