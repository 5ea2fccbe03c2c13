// SPDX-License-Identifier: Apache-2.0
//! The condition `Upgradeable`: whether the drivers support the next minor version of Kubernetes (pure).

use vdo_api::api::Reason;
use vdo_core::drivers::short;
use vdo_core::matrix::{self, Cause, Index, Query};
use vdo_core::status::Upgradeable;

/// Whether the next minor fits, and where it fits whether the one after it does, which is one more upgrade away.
pub(super) fn upgradeable(index: &Index, query: &Query<'_>) -> Upgradeable {
    let next = matrix::upgradeable(index, query);
    let verdict = Verdict::of(&next);
    let condition = |message: String| Upgradeable {
        fits: verdict.reason == Reason::Healthy,
        reason: verdict.reason,
        message,
    };
    let message = match verdict.reason {
        Reason::Healthy => format!("Kubernetes {} {}", next.kubernetes, verdict.why),
        _ => format!("Kubernetes {} does not fit: {}", next.kubernetes, verdict.why),
    };
    let (true, Ok(installed), Ok(kubernetes)) = (next.fits(), &next.result, next.kubernetes.parse()) else {
        return condition(message);
    };
    let after = matrix::upgradeable(
        index,
        &Query {
            kubernetes: &kubernetes,
            installed,
            ..*query
        },
    );
    let later = Verdict::of(&after);
    condition(match later.reason {
        Reason::Healthy => format!("{message}, {} {}", after.kubernetes, later.why),
        _ => format!("{message}; Kubernetes {} does not fit: {}", after.kubernetes, later.why),
    })
}

/// The answer of the matrix for one minor.
struct Verdict {
    /// Healthy when it fits.
    reason: Reason,
    /// With which versions it fits, or why it does not.
    why: String,
}

impl Verdict {
    fn of(next: &matrix::Upgradeable) -> Self {
        if let Some((name, (version, reason))) = next.forced.first_key_value() {
            return Self {
                reason: Reason::IncompatiblePin,
                why: format!("{} {version} stays installed, but it {reason}", short(name)),
            };
        }
        match &next.result {
            Ok(versions) => {
                let versions: Vec<String> = versions
                    .iter()
                    .map(|(name, version)| format!("{} {version}", short(name)))
                    .collect();
                Self {
                    reason: Reason::Healthy,
                    why: format!("fits with {}", versions.join(" and ")),
                }
            }
            Err(error) => {
                let why: Vec<String> = error
                    .all()
                    .map(|error| match &error.cause {
                        Cause::PinRejected { pin, reason, .. } => format!("{} is pinned to {pin}, which {reason}", short(&error.driver)),
                        Cause::NothingFits => match &error.not_yet {
                            Some(not_yet) => format!("no {} version supports it yet; {}", short(&error.driver), not_yet.newest()),
                            None => format!("no {} version fits it", short(&error.driver)),
                        },
                        _ => error.to_string(),
                    })
                    .collect();
                let pinned = matches!(error.cause, Cause::PinRejected { .. } | Cause::UnknownPin { .. });
                Self {
                    reason: if pinned {
                        Reason::IncompatiblePin
                    } else {
                        Reason::NoCompatibleVersion
                    },
                    why: why.join("; "),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use vdo_core::drivers::{CPI, CSI};
    use vdo_core::matrix::{DriverRequest, UpdatePolicy};
    use vdo_source::fetch::embedded;

    #[test]
    fn upgradeable_condition_names_next_kubernetes_and_blocker() {
        let index = Index::parse(embedded::index()).expect("an index");
        let say = |kubernetes: &str, pin: Option<&str>, policy: UpdatePolicy| {
            let kubernetes = kubernetes.parse().expect("a version");
            let pinned = DriverRequest {
                pin: pin.map(|pin| pin.parse().expect("a version")),
                ..DriverRequest::default()
            };
            let drivers = BTreeMap::from([(CPI.to_owned(), DriverRequest::default()), (CSI.to_owned(), pinned)]);
            let version = |text: &str| text.parse().expect("a version");
            let installed = BTreeMap::from([(CPI.to_owned(), version("1.34.0")), (CSI.to_owned(), version("3.7.3"))]);
            let vcenters = [("vc1".to_owned(), "8.0.3".parse().expect("a version"))];
            let said = upgradeable(
                &index,
                &Query {
                    kubernetes: &kubernetes,
                    vcenters: &vcenters,
                    drivers: &drivers,
                    installed: &installed,
                    policy,
                },
            );
            format!("{} {}: {}", said.fits, said.reason, said.message)
        };
        let compatible = UpdatePolicy::Compatible;
        assert_eq!(
            say("v1.34.4", None, compatible),
            "true Healthy: Kubernetes 1.35 fits with CPI 1.35.1 and CSI 3.7.3, 1.36 fits with CPI 1.36.0 and CSI 3.8.0"
        );
        assert_eq!(
            say("v1.35.1", None, compatible),
            "true Healthy: Kubernetes 1.36 fits with CPI 1.36.0 and CSI 3.8.0; Kubernetes 1.37 does not fit: no CSI version supports it yet; the newest, 3.8.0, \
             supports Kubernetes up to 1.36"
        );
        assert_eq!(
            say("v1.34.4", Some("3.6.3"), compatible),
            "false IncompatiblePin: Kubernetes 1.35 does not fit: CSI is pinned to 3.6.3, which supports Kubernetes 1.32 to 1.34, not 1.35"
        );
        assert_eq!(
            say("v1.34.4", None, UpdatePolicy::Disabled),
            "false IncompatiblePin: Kubernetes 1.35 does not fit: CPI 1.34.0 stays installed, but it supports Kubernetes 1.34 only, not 1.35"
        );
    }
}
