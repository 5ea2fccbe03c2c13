// SPDX-License-Identifier: Apache-2.0
//! KubernetesSupported and VSphereSupported: whether the driver versions support the cluster and its vCenters (pure).

use vdo_api::api::{ConditionType, Reason};
use vdo_core::drivers::short;
use vdo_core::matrix::{Entry, Index, Query, Resolution, State};
use vdo_core::status::Precondition;

/// Whether the versions that are to run support the cluster's Kubernetes, and every vCenter whose version is known. Without a
/// choice, whether any version does.
pub(in crate::reconcile) fn supported(index: &Index, query: &Query<'_>, choice: Option<&Resolution>) -> Vec<Precondition> {
    let kubernetes = judge(index, query, choice, |entry| {
        (!entry.kubernetes.range.contains(query.kubernetes.numbers())).then(|| {
            format!(
                "supports Kubernetes {}, but the cluster has {}",
                entry.kubernetes.range, query.kubernetes
            )
        })
    });
    let mut all = vec![match kubernetes {
        Ok(names) => Precondition::holds(
            ConditionType::KubernetesSupported,
            format!("Kubernetes {} is supported by {names}", query.kubernetes),
        ),
        Err(misfit) => misfit.precondition(ConditionType::KubernetesSupported, Reason::KubernetesNotSupported),
    }];
    if query.vcenters.is_empty() {
        return all;
    }
    let vsphere = judge(index, query, choice, |entry| {
        let (connection, version) = query
            .vcenters
            .iter()
            .find(|(_, version)| !entry.vsphere.range.contains(version.numbers()))?;
        Some(format!("supports vCenter {}, but {connection} has {version}", entry.vsphere.range))
    });
    all.push(match vsphere {
        Ok(names) => {
            let versions: Vec<String> = query.vcenters.iter().map(|(name, version)| format!("{version} ({name})")).collect();
            Precondition::holds(
                ConditionType::VSphereSupported,
                format!("vCenter {} is supported by {names}", versions.join(", ")),
            )
        }
        Err(misfit) => misfit.precondition(ConditionType::VSphereSupported, Reason::VSphereNotSupported),
    });
    all
}

/// Why a driver does not fit.
enum Misfit {
    /// By what the matrix says of its version.
    Known(String),
    /// Its version is not in the matrix, which is a failure of its own: nothing is known of what it supports.
    NotListed(String),
}

impl Misfit {
    fn precondition(self, kind: ConditionType, reason: Reason) -> Precondition {
        match self {
            Self::Known(why) => Precondition::fails(kind, reason, why),
            Self::NotListed(why) => Precondition::unknown(kind, Reason::NotChecked, why),
        }
    }
}

/// The drivers, if each of them fits; else why the first one does not fit.
fn judge(
    index: &Index,
    query: &Query<'_>,
    choice: Option<&Resolution>,
    misfit: impl Fn(&Entry) -> Option<String>,
) -> Result<String, Misfit> {
    let mut names = Vec::new();
    for (name, request) in query.drivers {
        let version = choice
            .and_then(|choice| choice.picks.get(name))
            .map(|pick| &pick.version)
            .or(request.pin.as_ref());
        let driver = index.drivers.get(name);
        let known = driver.into_iter().flat_map(|driver| &driver.versions);
        let entries: Vec<&Entry> = known
            .filter(|entry| match version {
                Some(version) => entry.version == *version,
                None => !matches!(entry.state, State::Withdrawn(_)) && !entry.version.is_prerelease(),
            })
            .collect();
        let reported = version.map_or_else(|| short(name).to_owned(), |version| format!("{} {version}", short(name)));
        match entries
            .iter()
            .map(|entry| (entry, misfit(entry)))
            .find(|(_, misfit)| misfit.is_none())
        {
            Some(_) => names.push(reported),
            // The closest is the newest, unless the platform is older than everything.
            None => match entries.first().and_then(|entry| Some((entry, misfit(entry)?))) {
                Some((entry, why)) if version.is_some() => {
                    return Err(Misfit::Known(format!("{} {} {why}", short(name), entry.version)));
                }
                Some((entry, why)) => {
                    let message = format!("no version of {} fits; the newest, {}, {why}", short(name), entry.version);
                    return Err(Misfit::Known(message));
                }
                None => return Err(Misfit::NotListed(format!("{reported} is not in the matrix"))),
            },
        }
    }
    Ok(names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::preconditions::reported;
    use std::collections::BTreeMap;
    use vdo_core::drivers::{CPI, CSI};
    use vdo_core::matrix::{self, DriverRequest, UpdatePolicy};
    use vdo_source::fetch::embedded;

    #[test]
    fn precondition_supported_each_platform_matches_snapshot() {
        let index = Index::parse(embedded::index()).expect("an index");
        let say = |kubernetes: &str, vcenter: Option<&str>, pin: Option<(&str, bool)>| {
            let kubernetes = kubernetes.parse().expect("a version");
            let pinned = DriverRequest {
                pin: pin.map(|(pin, _)| pin.parse().expect("a version")),
                allow_incompatible: pin.is_some_and(|(_, forced)| forced),
                ..DriverRequest::default()
            };
            let drivers = BTreeMap::from([(CPI.to_owned(), DriverRequest::default()), (CSI.to_owned(), pinned)]);
            let vcenters: Vec<_> = vcenter
                .map(|version| ("vc1".to_owned(), version.parse().expect("a version")))
                .into_iter()
                .collect();
            let query = Query {
                kubernetes: &kubernetes,
                vcenters: &vcenters,
                drivers: &drivers,
                installed: &BTreeMap::new(),
                policy: UpdatePolicy::Compatible,
            };
            let choice = vcenter.map(|_| matrix::resolve(&index, &query));
            reported(&supported(&index, &query, choice.as_ref().and_then(|choice| choice.as_ref().ok())))
        };
        insta::assert_yaml_snapshot!(BTreeMap::from([
            ("all fits", say("v1.34.4", Some("8.0.3"), None)),
            ("a vCenter that has not answered", say("v1.34.4", None, None)),
            ("a Kubernetes that nothing supports", say("v1.99.0", Some("8.0.3"), None)),
            ("a vCenter that nothing supports", say("v1.34.4", Some("5.5"), None)),
            ("a pin that does not fit", say("v1.34.4", Some("8.0.3"), Some(("3.0.0", false)))),
            ("the same, by force", say("v1.34.4", Some("8.0.3"), Some(("3.0.0", true)))),
        ]));
        // What it supports is not known; that it is not listed is reported once, by the choice.
        assert_eq!(
            say("v1.34.4", Some("8.0.3"), Some(("3.9.9", false))),
            [
                "KubernetesSupported None NotChecked: CSI 3.9.9 is not in the matrix",
                "VSphereSupported None NotChecked: CSI 3.9.9 is not in the matrix"
            ]
        );
    }
}
