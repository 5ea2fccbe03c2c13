// SPDX-License-Identifier: Apache-2.0
//! A mirror that holds some of the versions: what is not there is known, and not chosen.

use super::{ask, toy};
use serde_json::json;
use vdo_api::api::chain;
use vdo_core::matrix::candidates;

#[test]
fn mirrored_version_that_is_not_there_is_left_out() {
    let all = toy(&[
        ("3.0.0", "1.30", "1.34", json!({})),
        ("2.0.0", "1.30", "1.34", json!({})),
        ("1.0.0", "1.30", "1.34", json!({})),
    ]);
    let say = |there: &[&str], installed: &str, pin: &str| {
        let index = all.mirrored(|driver, version| driver == "toy" && there.contains(&version.to_string().as_str()));
        let mut question = ask(&index, "v1.33.0", &[]);
        if !installed.is_empty() {
            question = question.installed(&[("toy", installed)]);
        }
        question.drivers.get_mut("toy").unwrap().pin = pin.parse().ok();
        question.of(&index).map_or_else(
            |error| chain(&*error),
            |found| {
                format!(
                    "{}, newest {}",
                    found.picks["toy"].version,
                    found.picks["toy"].newest.clone().unwrap()
                )
            },
        )
    };
    // there, installed, pinned
    assert_eq!(say(&["3.0.0", "1.0.0"], "", ""), "3.0.0, newest 3.0.0");
    assert_eq!(say(&["1.0.0"], "", ""), "1.0.0, newest 1.0.0");
    // The installed version stays although the mirror has lost it, and another one is left out although one is installed.
    assert_eq!(say(&["1.0.0"], "2.0.0", ""), "2.0.0, newest 2.0.0");
    assert_eq!(say(&["1.0.0"], "1.0.0", ""), "1.0.0, newest 1.0.0");
    assert_eq!(say(&["1.0.0"], "2.0.0", "2.0.0"), "2.0.0, newest 2.0.0");
    assert_eq!(
        say(&["1.0.0"], "", "2.0.0"),
        "toy is pinned to 2.0.0, which is not in the mirror; 1.0.0 fits. Bring the pinned version into the mirror with vdoctl mirror pull \
         and vdoctl mirror push, or remove the pin."
    );
    assert_eq!(
        say(&[], "", "2.0.0"),
        "toy is pinned to 2.0.0, which is not in the mirror. Bring the pinned version into the mirror with vdoctl mirror pull \
         and vdoctl mirror push."
    );
    let none = say(&[], "", "");
    assert!(
        none.starts_with("no version of toy fits Kubernetes 1.33: 3.0.0 is not in the mirror;"),
        "{none}"
    );
    assert!(
        none.ends_with("3.0.0 can be installed when it is in the mirror: vdoctl mirror pull."),
        "{none}"
    );
}

#[test]
fn mirrored_candidates_say_what_is_not_in_the_mirror() {
    let index = toy(&[("2.0.0", "1.30", "1.34", json!({})), ("1.0.0", "1.30", "1.34", json!({}))]);
    let index = index.mirrored(|_, version| version.to_string() == "1.0.0");
    let found: Vec<_> = candidates(&index, &ask(&index, "v1.33.0", &[]).query())["toy"]
        .iter()
        .map(|(version, bar)| format!("{version} {}", bar.as_ref().map(ToString::to_string).unwrap_or_default()))
        .collect();
    assert_eq!(found, ["2.0.0 is not in the mirror", "1.0.0 "]);
}
