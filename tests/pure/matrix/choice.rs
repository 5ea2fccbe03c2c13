// SPDX-License-Identifier: Apache-2.0
//! What is chosen, and why not the others.

use super::{Ask, ask, full_index, versions};
use crate::matrix::index::{parse, toy};
use vdo_api::api::chain;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::matrix::{Cause, Rejection, UpdatePolicy};

#[test]
fn resolve_real_platform_selects_newest_that_fits() {
    let index = full_index();
    for (kubernetes, vcenters, cpi, csi) in [
        ("v1.34.4", &["8.0.3"][..], "1.34.0", "3.8.0"),
        ("v1.35.0", &["9.0.0.0"], "1.35.1", "3.8.0"),
        ("v1.33.1+rke2r1", &["7.0.3"], "1.33.1", "3.7.3"),
        ("v1.32.9-eks-1a2b3c4", &["8.0.2", "7.0.0"], "1.32.3", "3.6.3"),
        ("v1.33.0-rc.1", &["8.0.3"], "1.33.1", "3.7.3"),
        ("1.34", &[], "1.34.0", "3.8.0"),
    ] {
        let resolution = ask(kubernetes, vcenters).of(&index).unwrap();
        assert_eq!(versions(&resolution), [cpi, csi], "{kubernetes} {vcenters:?}");
    }
}

#[test]
fn resolve_choice_states_its_reason() {
    let index = full_index();
    let because = |ask: Ask, driver: &str| ask.of(&index).unwrap().picks[driver].because.clone();
    let base = ask("v1.34.4", &["8.0.3", "7.0.3"]);
    assert_eq!(because(base.clone(), CPI), "its minor version must equal Kubernetes 1.34");
    assert_eq!(
        because(base.clone(), CSI),
        "newest that supports Kubernetes 1.34 and vCenter 7.0.3 and 8.0.3"
    );
    let pinned = Ask {
        pin: Some((CSI, "3.6.3", false)),
        ..base.clone()
    };
    assert_eq!(because(pinned.clone(), CSI), "pinned in spec");
    assert_eq!(pinned.of(&index).unwrap().picks[CSI].newest, Some("3.8.0".parse().unwrap()));
    let installed = Ask {
        installed: vec![(CSI, "3.6.3")],
        ..base
    };
    assert_eq!(because(installed, CSI), "installed and still fits");
}

#[test]
fn resolve_installed_version_stays_or_goes_by_policy() {
    let index = full_index();
    for (policy, kubernetes, installed, expected) in [
        (UpdatePolicy::Compatible, "v1.34.4", "3.6.3", Ok("3.6.3")),
        (UpdatePolicy::Latest, "v1.34.4", "3.6.3", Ok("3.8.0")),
        (UpdatePolicy::Disabled, "v1.34.4", "3.5.1", Ok("3.5.1")),
        // no longer fits
        (UpdatePolicy::Compatible, "v1.34.4", "3.5.1", Ok("3.8.0")),
        // not in the matrix: older may be left, newer is not walked back from
        (UpdatePolicy::Compatible, "v1.34.4", "2.6.2", Ok("3.8.0")),
        (UpdatePolicy::Compatible, "v1.34.4", "3.9.0", Err(())),
        (UpdatePolicy::Disabled, "v1.34.4", "3.9.0", Err(())),
        // the installed one does not fit, so going back is allowed
        (UpdatePolicy::Compatible, "v1.32.4", "3.7.3", Ok("3.6.3")),
    ] {
        let question = Ask {
            installed: vec![(CSI, installed)],
            drivers: vec![CSI],
            policy,
            ..ask(kubernetes, &["8.0.3"])
        };
        let found = question.of(&index).map(|resolution| versions(&resolution)[0].clone());
        assert_eq!(found.as_deref().map_err(|_| ()), expected, "{policy:?} {kubernetes} {installed}");
    }
}

#[test]
fn resolve_no_fit_error_names_cause_and_remedy() {
    let index = full_index();
    let csi = |ask: Ask| Ask { drivers: vec![CSI], ..ask };
    let pin = |version, allow| Ask {
        pin: Some((CSI, version, allow)),
        ..csi(ask("v1.34.4", &["8.0.3"]))
    };
    let installed = |version, policy| Ask {
        installed: vec![(CSI, version)],
        policy,
        ..csi(ask("v1.34.4", &["8.0.3"]))
    };
    let questions = [
        ("Kubernetes too new for CPI", ask("v1.38.0", &["8.0.3"])),
        ("Kubernetes too new for CSI", csi(ask("v1.37.0", &["8.0.3"]))),
        ("Kubernetes too old", csi(ask("v1.20.3", &["8.0.3"]))),
        ("vCenter too old", csi(ask("v1.34.4", &["8.0.3", "6.7.0"]))),
        ("pin unknown", pin("3.7.9", false)),
        ("pin newer than all", pin("4.0.0", true)),
        ("pin does not fit", pin("3.5.1", false)),
        ("installed is newer", installed("3.9.0", UpdatePolicy::Latest)),
        ("installed is unknown", installed("3.9.0", UpdatePolicy::Disabled)),
        (
            "driver unknown",
            Ask {
                drivers: vec!["calico"],
                ..ask("v1.34.4", &[])
            },
        ),
    ];
    let text = questions.map(|(title, question)| format!("{title}\n  {}\n", chain(&*question.of(&index).unwrap_err())));
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn resolve_incompatible_pin_needs_allow_incompatible() {
    let index = full_index();
    let question = Ask {
        pin: Some((CSI, "3.5.1", true)),
        ..ask("v1.34.4", &["8.0.3"])
    };
    let pick = question.of(&index).unwrap().picks[CSI].clone();
    assert_eq!(pick.version.to_string(), "3.5.1");
    assert_eq!(pick.overridden.as_deref(), Some("supports Kubernetes 1.31 to 1.33, not 1.34"));
}

#[test]
fn resolve_missing_required_driver_selects_older_version() {
    let index = parse(&toy());
    let toy = |drivers: &[&'static str]| Ask {
        drivers: drivers.to_vec(),
        ..ask("v1.33.0", &["8.0.3"])
    };
    let both = toy(&["base", "toy"]).of(&index).unwrap();
    assert_eq!(versions(&both), ["1.0.0", "1.9.0"]);
    let alone = toy(&["toy"]).of(&index).unwrap();
    assert_eq!(versions(&alone), ["1.8.0"]);
    assert_eq!(alone.picks["toy"].deprecated.as_deref(), Some("it is slow"));
}

#[test]
fn resolve_prerelease_pinned_is_selected() {
    let index = parse(&toy());
    let toy = |drivers: &[&'static str]| Ask {
        drivers: drivers.to_vec(),
        ..ask("v1.33.0", &["8.0.3"])
    };
    let pinned = Ask {
        pin: Some(("toy", "2.1.0-rc.1", false)),
        ..toy(&["toy"])
    };
    assert_eq!(versions(&pinned.of(&index).unwrap()), ["2.1.0-rc.1"]);
}

#[test]
fn resolve_withdrawn_installed_version_is_left() {
    let index = parse(&toy());
    let toy = |drivers: &[&'static str]| Ask {
        drivers: drivers.to_vec(),
        ..ask("v1.33.0", &["8.0.3"])
    };
    // what is installed and withdrawn is left, even for something older
    let withdrawn = Ask {
        installed: vec![("toy", "2.0.0")],
        ..toy(&["base", "toy"])
    };
    assert_eq!(versions(&withdrawn.clone().of(&index).unwrap()), ["1.0.0", "1.9.0"]);
    // and the choice says from where it comes, and why that cannot stay
    let left = withdrawn.clone().of(&index).unwrap().picks["toy"].clone();
    assert_eq!(left.from.unwrap().to_string(), "2.0.0");
    assert_eq!(left.leaves.unwrap().to_string(), "is withdrawn: it loses volumes (use 1.9.0)");
    let kept = Ask {
        policy: UpdatePolicy::Disabled,
        ..withdrawn
    };
    let kept = kept.of(&index).unwrap();
    assert_eq!(versions(&kept), ["1.0.0", "2.0.0"]);
    let pick = &kept.picks["toy"];
    assert_eq!(
        (pick.leaves.as_ref(), pick.overridden.as_deref()),
        (None, Some("is withdrawn: it loses volumes (use 1.9.0)"))
    );
}

#[test]
fn resolve_withdrawn_pin_is_refused() {
    let index = parse(&toy());
    let toy = |drivers: &[&'static str]| Ask {
        drivers: drivers.to_vec(),
        ..ask("v1.33.0", &["8.0.3"])
    };
    let refused = Ask {
        pin: Some(("toy", "2.0.0", false)),
        ..toy(&["toy"])
    };
    insta::assert_snapshot!(chain(&*refused.of(&index).unwrap_err()));
}

#[test]
fn resolve_no_fit_lists_every_rejection_newest_first() {
    let error = ask("v1.34.4", &["6.7.0"]).of(&full_index()).unwrap_err();
    assert_eq!(error.driver, CPI);
    assert!(matches!(error.cause, Cause::NothingFits));
    let found: Vec<String> = error.rejected.iter().map(|r| r.version.to_string()).collect();
    assert_eq!(found[..5], ["1.37.0", "1.36.0", "1.35.1", "1.35.0", "1.34.0"]);
    assert_eq!(found.len(), 28);
    assert!(matches!(error.rejected[4].reason, Rejection::Vsphere { .. }));
    assert_eq!(error.others.len(), 1, "the other driver is reported too");
    assert!(error.fitting.is_empty());
}

#[test]
fn resolve_no_fit_lists_driver_that_does_fit() {
    // where one driver has a choice, it is reported that it is not the one
    let error = ask("v1.37.0", &["8.0.3"]).of(&full_index()).unwrap_err();
    let fitting: Vec<_> = error.fitting.iter().map(|(name, version)| format!("{name} {version}")).collect();
    assert_eq!((error.driver.as_str(), fitting), (CSI, vec!["vsphere-cpi 1.37.0".to_owned()]));
}

#[test]
fn resolve_no_fit_lists_rejections_of_other_driver() {
    let error = ask("v1.34.4", &["6.7.0"]).of(&full_index()).unwrap_err();
    assert_eq!((error.others[0].driver.as_str(), error.others[0].rejected.len()), (CSI, 27));
}
