// SPDX-License-Identifier: Apache-2.0
//! Who may be changed while another one has to stay as it is.

use super::{ask, toys};
use serde_json::json;
use vdo_core::matrix::apart;

/// Two drivers are chosen to stand side by side. While one has to stay as it is, the other one may be changed only where it also stands
/// beside what is there.
#[test]
fn apart_each_pair_lists_drivers_that_change_together() {
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
        // A first installation: the one needs the other, which needs no one.
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
                "base without toy: version 1.0.0, which remains installed for now, requires base 1.0.0",
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
        // The one that stays needs the other's new version, and has lived without it until now.
        (Some("2.0.0"), Some("1.0.0"), "2.0.0", "2.0.0", &[]),
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

/// A need that a feature state switches off holds no one back, and neither does one of a version that is pinned with force.
#[test]
fn apart_need_that_does_not_count_is_left_out() {
    let requires = json!({"requires": [{"driver": "base", "min": "2.0.0", "when": {"featureState": "new", "is": true}}]});
    let index = toys(&[
        ("toy", &[("2.0.0", "1.30", "1.34", requires), ("1.0.0", "1.30", "1.34", json!({}))]),
        (
            "base",
            &[("2.0.0", "1.30", "1.34", json!({})), ("1.0.0", "1.30", "1.32", json!({}))],
        ),
    ]);
    let found = |state: bool, from: &str, to: &str| {
        let mut question = ask(&index, "v1.33.0", &[]).installed(&[("toy", from), ("base", from)]);
        for request in question.drivers.values_mut() {
            (request.pin, request.allow_incompatible) = (Some(to.parse().unwrap()), true);
            request.states = [("new".to_owned(), state)].into();
        }
        let chosen = question.of(&index).unwrap();
        let all = apart(&index, &question.query(), &chosen);
        all.into_keys()
            .map(|(who, whom)| format!("{who} without {whom}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(true, "1.0.0", "2.0.0"), ["toy without base"]);
    assert!(found(false, "1.0.0", "2.0.0").is_empty());
    // base 1.0.0 does not fit this cluster and is taken anyway; toy 2.0.0, which still runs, does not stand beside it
    assert!(found(true, "2.0.0", "1.0.0").is_empty());
}
