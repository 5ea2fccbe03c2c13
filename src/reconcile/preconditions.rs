// SPDX-License-Identifier: Apache-2.0
//! What must hold before the drivers can work, from the matrix, the choice and the rendered workloads (pure).

pub mod foreign_drivers;
pub(super) mod images;
mod matrix;
pub(super) mod shared_volumes;
pub mod snapshots;
pub(super) mod upgrade;
pub(super) mod volumes;

pub(super) use matrix::{matrix, matrix_status};

use std::sync::Arc;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::{Connection, Node};
use vdo_api::types::{count, name_list};
use vdo_core::driverconfig::csi;
use vdo_core::drivers::{self, STORAGE, short};
use vdo_core::health::{Placement, placement};
use vdo_core::matrix::{Entry, Index, Query, Resolution, State};
use vdo_core::plan::Desired;
use vdo_core::status::Precondition;

/// Whether the versions that are to run support the cluster's Kubernetes, and every vCenter whose version is known. Without a
/// choice, whether any version does.
pub(super) fn supported(index: &Index, query: &Query<'_>, choice: Option<&Resolution>) -> Vec<Precondition> {
    let kubernetes = judge(index, query, choice, |entry| {
        (!entry.kubernetes.range.contains(query.kubernetes.numbers())).then(|| {
            format!(
                "supports Kubernetes {}, and the cluster has {}",
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
        Some(format!("supports vCenter {}, and {connection} has {version}", entry.vsphere.range))
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

/// Whether all connections of the CSI driver are trusted in the same way. Its syncer knows only one.
pub(super) fn trust(connections: &[Connection]) -> Precondition {
    let kind = ConditionType::TrustConsistent;
    let used: Vec<_> = connections
        .iter()
        .filter(|c| c.drivers.iter().any(|driver| driver == STORAGE.name))
        .map(drivers::connection)
        .collect();
    if used.is_empty() {
        return Precondition::unknown(kind, Reason::NotRequested, "CSI is not requested");
    }
    match csi::differing_trust(&used).join(", ") {
        names if names.is_empty() => Precondition::holds(kind, "the vSphere connections of CSI are trusted in the same way"),
        names => Precondition::fails(
            kind,
            Reason::TrustDiffers,
            format!(
                "the vSphere connections {names} are trusted in different ways, but the syncer of CSI may read only one of these ways; give \
                 these connections the same CA bundle, which may hold several authorities"
            ),
        ),
    }
}

/// Whether the pods of every Deployment find nodes.
pub(super) fn control_plane(desired: &[Desired], nodes: &[Arc<Node>]) -> Precondition {
    let kind = ConditionType::ControlPlaneEligible;
    let found: Vec<(&Desired, Placement)> = desired.iter().filter_map(|d| Some((d, placement(&d.object, nodes)?))).collect();
    let short_of = found.iter().find(|(_, place)| !place.is_enough());
    match short_of {
        Some((d, place)) => {
            let refused = place.hindrances();
            let message = format!(
                "{} needs {}, but its pods can be scheduled on {} of {} nodes ({}); label or untaint nodes, or set values that fit the \
                 nodes",
                d.object,
                count(place.needed, "node"),
                place.eligible,
                nodes.len(),
                if refused.is_empty() {
                    "there are no nodes".to_owned()
                } else {
                    refused.join("; ")
                }
            );
            Precondition::fails(kind, Reason::NoEligibleNode, message)
        }
        None => {
            let reported: Vec<String> = found
                .iter()
                .map(|(d, place)| {
                    let later = place.later();
                    let later = if later.is_empty() {
                        String::new()
                    } else {
                        format!(" ({})", name_list(&later))
                    };
                    format!(
                        "the pods of {} can be scheduled on {} of {} nodes{later}",
                        d.object,
                        place.eligible,
                        nodes.len()
                    )
                })
                .collect();
            let nothing = || "no driver has a controller that must be scheduled".to_owned();
            Precondition::holds(kind, if reported.is_empty() { nothing() } else { reported.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use vdo_api::facts::{Credentials, Place};
    use vdo_api::types::{Secret, Trust};
    use vdo_core::drivers::{CPI, CSI};
    use vdo_core::manifest::Object;
    use vdo_core::matrix::{self, DriverRequest, UpdatePolicy};
    use vdo_source::fetch::embedded;

    fn reported(found: &[Precondition]) -> Vec<String> {
        found
            .iter()
            .map(|p| format!("{} {:?} {}: {}", p.kind, p.holds, p.reason, p.message))
            .collect()
    }

    #[test]
    fn trust_differs_between_csi_connections_fails() {
        let named = |name: &str, trust: Trust, driver: &str| Connection {
            name: name.into(),
            server: format!("{name}.example.com"),
            port: 443,
            datacenters: Vec::new(),
            trust,
            sha1: None,
            version: None,
            build: None,
            ready: None,
            message: String::new(),
            credentials: Credentials {
                user: "u".into(),
                password: Secret::new("p"),
            },
            blocked: None,
            drivers: vec![driver.into()],
            lacking_privileges: Vec::new(),
            machines_twice: None,
            tag_categories: Some(std::collections::BTreeMap::new()),
        };
        let bundle = || Trust::CaBundle("PEM".into());
        for (connections, holds, reason) in [
            (vec![named("a", bundle(), CSI)], Some(true), "Healthy"),
            (vec![named("a", bundle(), CSI), named("b", bundle(), CSI)], Some(true), "Healthy"),
            (
                vec![named("a", bundle(), CSI), named("b", Trust::SystemRoots, CSI)],
                Some(false),
                "TrustDiffers",
            ),
            (
                vec![named("a", bundle(), CSI), named("b", Trust::SystemRoots, CPI)],
                Some(true),
                "Healthy",
            ),
            (vec![named("b", bundle(), CPI)], None, "NotRequested"),
        ] {
            let found = trust(&connections);
            assert_eq!((found.holds, found.reason.as_str()), (holds, reason), "{}", found.message);
            let names = holds != Some(false) || found.message.contains("a, b");
            assert!(names, "{}", found.message);
        }
    }

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

    #[test]
    fn precondition_control_plane_without_eligible_node_fails() {
        let deployment = |replicas: i64| Desired {
            object: Object::new(
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c", "namespace": "n"},
                "spec": {"replicas": replicas, "template": {"spec": {"nodeSelector": {"role": "cp"}, "affinity": {"podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}}}}}}),
            )
            .expect("an object"),
            driver: CSI.into(),
            wave: 5,
        };
        let node = |name: &str, role: &str| {
            Arc::new(Node {
                name: name.into(),
                place: Place {
                    labels: BTreeMap::from([("role".to_owned(), role.to_owned())]),
                    ..Place::default()
                },
                ..Node::default()
            })
        };
        let nodes = [node("cp-1", "cp"), node("w-1", "worker")];
        assert_eq!(
            reported(&[
                control_plane(&[deployment(1)], &nodes),
                control_plane(&[deployment(2)], &nodes),
                control_plane(&[deployment(1)], &[]),
                control_plane(&[], &nodes),
            ]),
            [
                "ControlPlaneEligible Some(true) Healthy: the pods of Deployment n/c can be scheduled on 1 of 2 nodes",
                "ControlPlaneEligible Some(false) NoEligibleNode: Deployment n/c needs 2 nodes, but its pods can be scheduled on 1 of 2 nodes (w-1: it lacks the label role=cp); label or untaint nodes, or set values that fit the nodes",
                "ControlPlaneEligible Some(false) NoEligibleNode: Deployment n/c needs 1 node, but its pods can be scheduled on 0 of 0 nodes (there are no nodes); label or untaint nodes, or set values that fit the nodes",
                "ControlPlaneEligible Some(true) Healthy: no driver has a controller that must be scheduled",
            ]
        );
    }
}
