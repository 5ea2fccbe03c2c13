// SPDX-License-Identifier: Apache-2.0
//! The matrix: what is refused, what is chosen, and why not the others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

mod choice;
mod index;
mod properties;

use crate::matrix::index::{parse, toy};
use std::collections::BTreeMap;
use vdo_api::types::{DriverName, KubernetesVersion, VcenterVersion};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::matrix::{DriverRequest, Index, NoFit, Query, Resolution, UpdatePolicy, resolve};

/// The index with every version of the facts.
fn full_index() -> Index {
    crate::matrix_choice::index().clone()
}

/// A question in test shorthand.
#[derive(Clone, Default)]
struct Ask {
    kubernetes: &'static str,
    vcenters: Vec<&'static str>,
    drivers: Vec<&'static str>,
    installed: Vec<(&'static str, &'static str)>,
    pin: Option<(&'static str, &'static str, bool)>,
    policy: UpdatePolicy,
}

fn ask(kubernetes: &'static str, vcenters: &[&'static str]) -> Ask {
    Ask {
        kubernetes,
        vcenters: vcenters.to_vec(),
        drivers: vec![CPI, CSI],
        ..Ask::default()
    }
}

impl Ask {
    fn of(self, index: &Index) -> Result<Resolution, Box<NoFit>> {
        let kubernetes: KubernetesVersion = self.kubernetes.parse().unwrap();
        let name = |(i, version): (usize, &&str)| (format!("vc{}", i + 1), version.parse::<VcenterVersion>().unwrap());
        let vcenters: Vec<_> = self.vcenters.iter().enumerate().map(name).collect();
        let request = |driver: &&'static str| {
            let pin = self.pin.filter(|(pinned, ..)| pinned == driver);
            let request = DriverRequest {
                pin: pin.map(|(_, version, _)| version.parse().unwrap()),
                allow_incompatible: pin.is_some_and(|(_, _, allow)| allow),
                ..DriverRequest::default()
            };
            ((*driver).to_owned(), request)
        };
        let drivers: BTreeMap<DriverName, DriverRequest> = self.drivers.iter().map(request).collect();
        let installed = self.installed.iter().map(|(d, v)| ((*d).to_owned(), v.parse().unwrap())).collect();
        resolve(
            index,
            &Query {
                kubernetes: &kubernetes,
                vcenters: &vcenters,
                drivers: &drivers,
                installed: &installed,
                policy: self.policy,
            },
        )
    }
}

fn versions(resolution: &Resolution) -> Vec<String> {
    resolution.picks.values().map(|pick| pick.version.to_string()).collect()
}

#[test]
fn matrix_stale_index_freezes_policy() {
    let index = parse(&toy());
    use UpdatePolicy::{Compatible, Disabled, Frozen, Latest};
    for (now, policies) in [
        ("2027-05-19T23:59:59Z", [Compatible, Latest, Disabled]),
        ("2027-05-20T00:00:00Z", [Compatible, Latest, Disabled]),
        ("2027-05-20T00:00:01Z", [Frozen, Frozen, Disabled]),
    ] {
        let now = now.parse().unwrap();
        assert_eq!(index.is_stale(now), policies[0] == Frozen, "{now}");
        assert_eq!(
            [Compatible, Latest, Disabled].map(|policy| index.policy(policy, now)),
            policies,
            "{now}"
        );
    }
}

/// An index from the future shows a clock that is wrong, by which an old one seems to be good: a day is allowed.
#[test]
fn matrix_index_generated_after_tomorrow_is_stale() {
    let mut value = toy();
    value["generated"] = serde_json::json!("2026-11-20T12:00:00Z");
    let index = parse(&value);
    for (now, ahead) in [
        ("2026-11-19T11:59:59Z", true),
        ("2026-11-19T12:00:00Z", false),
        ("2026-11-19T12:00:01Z", false),
        ("2026-11-20T12:00:01Z", false),
    ] {
        let now = now.parse().unwrap();
        assert_eq!([index.is_ahead(now), index.is_stale(now)], [ahead; 2], "{now}");
    }
}

/// Past its date an index installs what is missing, and changes nothing that runs: neither because something newer is in it, nor because
/// what runs does not fit any more. A pin is a decision of its own.
#[test]
fn resolve_stale_matrix_keeps_installed_versions() {
    let index = full_index();
    let frozen = |installed: &[(&'static str, &'static str)], pin| {
        let question = Ask {
            installed: installed.to_vec(),
            pin,
            policy: UpdatePolicy::Frozen,
            ..ask("v1.34.4", &["8.0.3"])
        };
        question.of(&index)
    };
    assert_eq!(versions(&frozen(&[], None).unwrap()), ["1.34.0", "3.8.0"]);
    let kept = frozen(&[(CSI, "3.6.0")], None).unwrap();
    assert_eq!(versions(&kept), ["1.34.0", "3.6.0"]);
    assert_eq!(kept.picks[CSI].because, "installed, and the matrix has expired");
    assert_eq!(
        (
            kept.picks[CSI].overridden.as_deref(),
            kept.picks[CSI].newest.as_ref().unwrap().to_string()
        ),
        (None, "3.8.0".into())
    );
    let kept = frozen(&[(CSI, "3.5.1")], None).unwrap();
    assert_eq!(versions(&kept), ["1.34.0", "3.5.1"]);
    assert_eq!(
        kept.picks[CSI].overridden.as_deref(),
        Some("supports Kubernetes 1.31 to 1.33, not 1.34")
    );
    assert_eq!(
        versions(&frozen(&[(CSI, "3.6.0")], Some((CSI, "3.7.3", false))).unwrap()),
        ["1.34.0", "3.7.3"]
    );
    assert!(frozen(&[(CSI, "3.9.0")], None).is_err());
}
