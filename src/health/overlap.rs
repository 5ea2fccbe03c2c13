use super::connection::some;
use super::{Finding, Stage};
use crate::api::{ConditionType, Reason};
use crate::types::DriverName;
use std::collections::{BTreeMap, BTreeSet};

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
    /// The nodes that were found, with the paths of their machines.
    pub nodes: BTreeMap<String, String>,
}

/// Whether a driver meets the same vCenter, datacenter or machine by two connections. One vCenter with two accounts is as it
/// should be as long as each driver uses one of them.
#[must_use]
pub fn distinct_stage(own: &Coverage, others: &[impl AsRef<Coverage>]) -> Stage {
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
                    format!("vSphere connection {name} leads to the same vCenter, and both are used by {drivers}"),
                    "Keep one, and write the datacenters of both into it.",
                )
            } else {
                Finding::new(
                    Reason::OverlappingDatacenters,
                    format!(
                        "vSphere connection {name} covers {} of the same vCenter, too, and both are used by {drivers}",
                        some(&both)
                    ),
                    "Let each datacenter be in one connection, or let each driver use one of them: vsphereCloudConfigs.",
                )
            });
            continue;
        }
        let twice: Vec<String> = own
            .nodes
            .iter()
            .filter_map(|(node, path)| Some(format!("{node} ({path} here, {} there)", other.nodes.get(node)?)))
            .collect();
        if !twice.is_empty() {
            findings.push(Finding::new(
                Reason::MachineInSeveralVcenters,
                format!(
                    "vSphere connection {name}, another vCenter, has machines of the same nodes: {}",
                    some(&twice)
                ),
                "Give the copies BIOS UUIDs of their own, or name the right datacenters in each connection.",
            ));
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.reason));
    Stage::of(
        ConditionType::Distinct,
        "no other connection of the same driver leads here",
        findings,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(connection: &str, vcenter: &str, drivers: &[&str], datacenters: &[&str], nodes: &[&str]) -> Coverage {
        let set = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        Coverage {
            connection: connection.into(),
            vcenter: vcenter.into(),
            drivers: set(drivers),
            datacenters: set(datacenters),
            nodes: nodes
                .iter()
                .map(|node| ((*node).to_owned(), format!("/{vcenter}/vm/{node}")))
                .collect(),
        }
    }

    #[test]
    fn who_meets_whom() {
        let own = coverage("a", "u1", &["cpi", "csi"], &["/DC0", "/DC1"], &["n1", "n2"]);
        for (others, expected) in [
            (vec![own.clone()], ""),
            // Another driver, another account: as it should be.
            (vec![coverage("b", "u1", &["other"], &["/DC0"], &["n1"])], ""),
            (vec![coverage("b", "u2", &["cpi"], &["/DC0"], &["n3"])], ""),
            (
                vec![coverage("b", "u1", &["csi"], &["/DC2"], &[])],
                "DuplicateVcenter vSphere connection b leads to the same vCenter, and both are used by csi",
            ),
            (
                vec![coverage("b", "u1", &["cpi", "csi"], &["/DC1"], &[])],
                "OverlappingDatacenters vSphere connection b covers /DC1 of the same vCenter, too, and both are used by cpi and csi",
            ),
            (
                vec![
                    coverage("b", "u1", &["csi"], &["/DC1"], &[]),
                    coverage("c", "u2", &["csi"], &[], &["n2"]),
                ],
                "MachineInSeveralVcenters vSphere connection c, another vCenter, has machines of the same nodes: n2 (/u1/vm/n2 here, /u2/vm/n2 there) (and 1 more)",
            ),
        ] {
            let others: Vec<std::sync::Arc<Coverage>> = others.into_iter().map(std::sync::Arc::new).collect();
            let stage = distinct_stage(&own, &others);
            let told = if stage.status == Some(true) {
                String::new()
            } else {
                format!("{} {}", stage.reason, stage.message)
            };
            assert_eq!(told, expected);
        }
    }
}
