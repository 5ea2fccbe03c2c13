// SPDX-License-Identifier: Apache-2.0
//! Compares connections with each other: the same vCenter or machine twice (Distinct), and storage that is in another vCenter.

use super::match_vms::to_tell_apart;
use super::{Advice, AdviceLine, Check, Finding, Inspection, LoginOutcome, MissingStorage, datacenters_of, missing_storage, report};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::types::DriverName;
use vdo_api::types::{count, name_list};
use vdo_core::drivers::STORAGE;

/// What one connection covers, to be held against others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The name of the connection.
    pub connection: String,
    /// The identity of its vCenter.
    pub vcenter: String,
    /// The drivers that use it.
    pub drivers: BTreeSet<DriverName>,
    /// The paths of the datacenters that it looks at.
    pub datacenters: BTreeSet<String>,
    /// The nodes that were found, with the paths of their machines and by what they were found.
    pub nodes: BTreeMap<String, (String, String)>,
    /// What the CSI driver's settings name and is not here.
    pub missing_storage: Vec<MissingStorage>,
    /// How many other connections the CSI driver uses.
    pub others: usize,
    /// The stage of the storage as this connection alone shows it; `None` where it is unknown.
    pub storage: Option<Check>,
}

/// What only shows when a connection is held against the others.
#[derive(Debug, Clone)]
pub struct CrossChecks {
    /// Whether a driver meets the same things twice.
    pub distinct: Check,
    /// Whether what is named for the storage is there or in another one's vCenter; `None` where that is unknown.
    pub storage: Option<Check>,
}

impl CrossChecks {
    /// The check that is reported instead of the one that the connection shows alone. What could not be looked at now is not known better
    /// because it was known before.
    #[must_use]
    pub fn replace(&self, own: Check) -> Check {
        match (own.kind, &self.storage) {
            (ConditionType::StorageFound, Some(check)) if own.reason != Reason::NotChecked => check.clone(),
            _ => own,
        }
    }
}

/// The stage of the storage of one connection, in the light of all. What is named must be in one vCenter of the driver: it is
/// missing when it is in none of them, and as long as one of them has not been seen, it may be there.
fn storage_check(own: &Coverage, all: &[impl AsRef<Coverage>]) -> Option<Check> {
    let check = own.storage.clone()?;
    let others: Vec<&Coverage> = all
        .iter()
        .map(AsRef::as_ref)
        .filter(|other| other.connection != own.connection && other.drivers.contains(STORAGE.name))
        .collect();
    if own.others == 0 || others.len() < own.others {
        return Some(check);
    }
    let nowhere = |missing_storage: &&MissingStorage| {
        others
            .iter()
            .all(|other| other.missing_storage.iter().any(|there| there.name == missing_storage.name))
    };
    let mut findings: Vec<Finding> = own
        .missing_storage
        .iter()
        .filter(nowhere)
        .map(|missing_storage| missing_storage.finding.clone())
        .collect();
    if findings.is_empty() {
        return Some(check);
    }
    for finding in &mut findings {
        finding.message = format!(
            "{}; the object does not exist in the vCenters of {} either",
            finding.message,
            count(others.len(), "other connection")
        );
    }
    if check.status == Some(false) {
        findings.extend(check.findings);
    }
    Some(Check::of(ConditionType::StorageFound, "", findings))
}

/// Whether a driver meets the same vCenter, datacenter or machine by two connections. One vCenter with two accounts is as it
/// should be as long as each driver uses one of them.
fn distinct_check(own: &Coverage, others: &[impl AsRef<Coverage>]) -> Check {
    let mut findings = Vec::new();
    let others = others.iter().map(AsRef::as_ref);
    let rivals = others.filter(|other| other.connection != own.connection);
    for other in rivals {
        let shared: Vec<&str> = own.drivers.intersection(&other.drivers).map(String::as_str).collect();
        if shared.is_empty() {
            continue;
        }
        let drivers = shared.join(" and ");
        let name = &other.connection;
        if own.vcenter == other.vcenter {
            let both: Vec<&String> = own.datacenters.intersection(&other.datacenters).collect();
            findings.push(if both.is_empty() {
                Finding::new(
                    Reason::DuplicateVcenter,
                    format!("vSphere connection {name} uses the same vCenter, and both connections are used by {drivers}"),
                    "Keep one connection, and write the datacenters of both connections into it.",
                )
            } else {
                Finding::new(
                    Reason::OverlappingDatacenters,
                    format!(
                        "vSphere connection {name} also covers {} of the same vCenter, and both connections are used by {drivers}",
                        name_list(&both)
                    ),
                    "Name each datacenter in one connection only, or \
                     let each driver use only one of the two connections (field vsphereCloudConfigs).",
                )
            });
            continue;
        }
        let both: Vec<_> = own
            .nodes
            .iter()
            .filter_map(|(node, (path, by))| Some((node, path, by, other.nodes.get(node)?)))
            .collect();
        let twice: Vec<String> = both
            .iter()
            .map(|(node, path, _, (there, _))| format!("{node} ({path} in this vCenter, {there} in the other vCenter)"))
            .collect();
        if let Some((_, _, by, (_, by_there))) = both.first() {
            let text = "In each connection, name only the datacenters that contain the machines of the nodes and not their copies, or make the \
                        machines distinguishable:";
            let text = AdviceLine::Text(text.into());
            findings.push(Finding::new(
                Reason::MachineInSeveralVcenters,
                format!(
                    "nodes match machines in this vCenter and in the vCenter of vSphere connection {name}: {}",
                    name_list(&twice)
                ),
                Advice::of(iter::once(text).chain(to_tell_apart(by, by_there).lines().cloned())),
            ));
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.reason));
    Check::of(
        ConditionType::Distinct,
        "no other connection of the same driver uses this vCenter",
        findings,
    )
}

/// What a connection covers, when the inspection could read it.
#[must_use]
pub fn coverage(connection: &str, inspection: &Inspection) -> Option<Coverage> {
    let (Some(facts), LoginOutcome::Succeeded(readings)) = (inspection.facts(), &inspection.login) else {
        return None;
    };
    let machines = &readings.inventory.machines;
    let requirements = &inspection.request.requirements;
    let storage = report(inspection, true, Timestamp::UNIX_EPOCH)
        .check(ConditionType::StorageFound)
        .cloned();
    Some(Coverage {
        connection: connection.to_owned(),
        vcenter: facts.instance_uuid.clone(),
        drivers: requirements.drivers.clone(),
        datacenters: datacenters_of(&inspection.request.datacenters, &readings.inventory.datacenters),
        nodes: readings
            .nodes
            .iter()
            .filter_map(|node| Some((node.node.clone(), (machines.get(node.at?)?.path.clone(), node.by.clone()))))
            .collect(),
        missing_storage: missing_storage(
            requirements,
            &readings.inventory,
            readings.policies.as_ref().ok().map(Vec::as_slice),
        ),
        others: requirements.others,
        storage,
    })
}

/// The checks that compare one connection with all.
#[must_use]
pub fn cross_checks(own: &Coverage, all: &[impl AsRef<Coverage>]) -> CrossChecks {
    CrossChecks {
        distinct: distinct_check(own, all),
        storage: storage_check(own, all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_core::drivers::CSI;

    fn coverage(connection: &str, vcenter: &str, drivers: &[&str], datacenters: &[&str], nodes: &[&str]) -> Coverage {
        let set = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        Coverage {
            connection: connection.into(),
            vcenter: vcenter.into(),
            drivers: set(drivers),
            datacenters: set(datacenters),
            nodes: nodes
                .iter()
                .map(|node| ((*node).to_owned(), (format!("/{vcenter}/vm/{node}"), "BIOS UUID".to_owned())))
                .collect(),
            ..Coverage::default()
        }
    }

    /// A datastore that one vCenter has is there for all; one that none has is missing everywhere; what could not be checked is not
    /// called missing.
    #[test]
    fn storage_check_datastore_absent_from_all_vcenters_is_reported() {
        let lacking = |connection: &str, names: &[&str]| {
            let missing_storage = |name: &&str| MissingStorage {
                name: (*name).to_owned(),
                finding: Finding::new(Reason::DatastoreNotFound, format!("there is no datastore {name}"), "Fix it."),
            };
            Coverage {
                missing_storage: names.iter().map(missing_storage).collect(),
                others: 2,
                storage: Some(Check::passed(ConditionType::StorageFound, "ok")),
                ..coverage(connection, connection, &[CSI], &[], &[])
            }
        };
        let own = lacking("a", &["x", "y"]);
        for (others, expected) in [
            (vec![], "Healthy ok"),
            (vec![lacking("b", &["x", "y"])], "Healthy ok"),
            (vec![lacking("b", &["x"]), lacking("c", &["y"])], "Healthy ok"),
            (
                vec![lacking("b", &["x", "y"]), lacking("c", &["y"])],
                "DatastoreNotFound there is no datastore y; the object does not exist in the vCenters of 2 other connections either",
            ),
        ] {
            let all: Vec<std::sync::Arc<Coverage>> = others.into_iter().chain([own.clone()]).map(std::sync::Arc::new).collect();
            let check = storage_check(&own, &all).expect("a stage");
            assert_eq!(format!("{} {}", check.reason, check.message), expected);
        }
    }

    #[test]
    fn connection_overlap_same_vcenter_or_machine_is_reported() {
        let own = coverage("a", "u1", &["cpi", "csi"], &["/DC0", "/DC1"], &["n1", "n2"]);
        for (others, expected) in [
            (vec![own.clone()], ""),
            // Another driver, another account: as it should be.
            (vec![coverage("b", "u1", &["other"], &["/DC0"], &["n1"])], ""),
            (vec![coverage("b", "u2", &["cpi"], &["/DC0"], &["n3"])], ""),
            (
                vec![coverage("b", "u1", &["csi"], &["/DC2"], &[])],
                "DuplicateVcenter vSphere connection b uses the same vCenter, and both connections are used by csi",
            ),
            (
                vec![coverage("b", "u1", &["cpi", "csi"], &["/DC1"], &[])],
                "OverlappingDatacenters vSphere connection b also covers /DC1 of the same vCenter, and both connections are used by cpi and csi",
            ),
            (
                vec![
                    coverage("b", "u1", &["csi"], &["/DC1"], &[]),
                    coverage("c", "u2", &["csi"], &[], &["n2"]),
                ],
                "MachineInSeveralVcenters nodes match machines in this vCenter and in the vCenter of vSphere connection c: n2 \
                 (/u1/vm/n2 in this vCenter, /u2/vm/n2 in the other vCenter) (and 1 more finding)",
            ),
        ] {
            let others: Vec<std::sync::Arc<Coverage>> = others.into_iter().map(std::sync::Arc::new).collect();
            let check = distinct_check(&own, &others);
            let reported = if check.status == Some(true) {
                String::new()
            } else {
                format!("{} {}", check.reason, check.message)
            };
            assert_eq!(reported, expected);
        }
    }
}
