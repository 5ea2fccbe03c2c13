// SPDX-License-Identifier: Apache-2.0
//! A node with its virtual machine and findings, the check NodesFound of all nodes, and the machines in the status.

use super::{Check, Finding};
use super::{Inventory, Machine};
use serde::Serialize;
use std::collections::BTreeMap;
use vdo_api::api::{ConditionType, MachineStatus, MachinesStatus, Reason};
use vdo_api::facts::Node;
use vdo_api::types::name_list;

/// As many nodes as a status has room for.
const SHOWN: usize = 100;

/// A node and its virtual machine. Unknown texts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeReport {
    /// The node.
    pub node: String,
    /// The inventory path of the virtual machine.
    pub machine: String,
    /// The property by which the machine was found: BIOS UUID, instance UUID, name or address.
    pub by: String,
    /// The paths of all machines that match the node, if the match is not unique.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The ESXi host that the machine runs on.
    pub host: String,
    /// The version of ESXi on this host.
    pub host_version: String,
    /// The power state, such as `poweredOn`.
    pub power: String,
    /// The hardware version, such as `vmx-19`.
    pub hardware: String,
    /// The setting `disk.EnableUUID`; null if it was never set.
    pub disk_uuid: Option<bool>,
    /// Whether VMware Tools run.
    pub tools_running: bool,
    /// The host name that VMware Tools report.
    pub host_name: String,
    /// The addresses that VMware Tools report.
    pub addresses: Vec<String>,
    /// Whether the machine has a snapshot.
    pub snapshot: bool,
    /// The kinds of the SCSI controllers of the machine; absent if they were not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<String>>,
    /// The provider ID of the node.
    pub provider_id: String,
    /// Whether the node still has the taint that the cloud provider removes.
    pub uninitialized: bool,
    /// The problems of the node and its machine.
    pub findings: Vec<Finding>,
    /// The machine in the inventory, where it is exactly one.
    #[serde(skip)]
    pub at: Option<usize>,
}

impl NodeReport {
    pub(super) fn of(node: &Node, by: &str) -> Self {
        Self {
            node: node.name.clone(),
            by: by.to_owned(),
            provider_id: node.provider_id.clone(),
            uninitialized: node.uninitialized,
            ..Self::default()
        }
    }

    pub(super) fn fill(&mut self, machine: &Machine, inventory: &Inventory) {
        let host = inventory.hosts.get(&machine.host);
        self.machine.clone_from(&machine.path);
        self.host = host.map_or_else(|| machine.host.clone(), |host| host.name.clone());
        self.host_version = host.map(|host| host.version.clone()).unwrap_or_default();
        self.power.clone_from(&machine.power);
        self.hardware.clone_from(&machine.hardware);
        self.disk_uuid = machine.disk_uuid;
        self.tools_running = machine.tools_running;
        self.host_name.clone_from(&machine.host_name);
        self.addresses = machine.addresses();
        self.snapshot = machine.snapshot;
        self.controllers.clone_from(&machine.controllers);
    }

    /// Whether it was found, and only once.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.at.is_some()
    }
}

/// The stage of the nodes. Each reason is reported once, with all nodes that it concerns. A node that is not found here is only a
/// finding where no other connection may hold it (`alone`).
#[must_use]
pub fn nodes_check(reports: &[NodeReport], alone: bool) -> Check {
    let found = reports.iter().filter(|report| report.is_found()).count();
    let count = format!("{found} of {} nodes are virtual machines in this vCenter", reports.len());
    let mut groups: BTreeMap<Reason, (Finding, Vec<&str>)> = BTreeMap::new();
    let reported = reports
        .iter()
        .flat_map(|report| report.findings.iter().map(|finding| (report.node.as_str(), finding)))
        .filter(|(_, finding)| alone || finding.reason != Reason::NodeNotFound);
    for (node, finding) in reported {
        groups
            .entry(finding.reason)
            .or_insert_with(|| (finding.clone(), vec![]))
            .1
            .push(node);
    }
    let findings = groups
        .into_values()
        .map(|(mut finding, nodes)| {
            if nodes.len() > 1 {
                finding.message = format!("{}; the same applies to {}", finding.message, name_list(&nodes[1..]));
            }
            finding
        })
        .collect();
    let mut check = Check::of(ConditionType::NodesFound, count.clone(), findings);
    if check.status == Some(false) {
        check.message = format!("{count}; {}", check.message);
    }
    check
}

/// The nodes as a status shows them: all are counted, the first hundred are listed.
#[must_use]
pub fn machines_status(reports: &[NodeReport]) -> MachinesStatus {
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let list = reports.iter().take(SHOWN).map(|report| MachineStatus {
        node: report.node.clone(),
        machine: report.machine.clone(),
        by: report.by.clone(),
        hardware: report.hardware.clone(),
        host: report.host.clone(),
        esxi: report.host_version.clone(),
        power: report.power.clone(),
        reasons: report.findings.iter().map(|finding| finding.reason.as_str().to_owned()).collect(),
        problems: report.findings.iter().map(|finding| finding.message.clone()).collect(),
    });
    MachinesStatus {
        nodes: number(reports.len()),
        found: number(reports.iter().filter(|report| report.is_found()).count()),
        with_problems: number(reports.iter().filter(|report| !report.findings.is_empty()).count()),
        list: list.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::match_vms;
    use std::sync::Arc;
    use vdo_core::driverconfig::node_addresses::Adapter;

    fn report(node: &str, reasons: &[Reason]) -> NodeReport {
        NodeReport {
            node: node.into(),
            at: (!reasons.contains(&Reason::NodeNotFound)).then_some(0),
            findings: reasons
                .iter()
                .map(|r| Finding::new(*r, format!("node {node}: {r}"), "Fix it."))
                .collect(),
            ..NodeReport::default()
        }
    }

    #[test]
    fn nodes_stage_same_reason_lists_all_nodes_once() {
        let reports = [
            report("a", &[Reason::DiskUuidDisabled, Reason::SnapshotsPresent]),
            report("b", &[Reason::DiskUuidDisabled]),
            report("c", &[Reason::NodeNotFound]),
            report("d", &[]),
        ];
        let check = nodes_check(&reports, true);
        assert_eq!((check.status, check.reason), (Some(false), Reason::NodeNotFound));
        assert_eq!(
            check.text(),
            "3 of 4 nodes are virtual machines in this vCenter; node c: NodeNotFound (and 2 more findings). Fix it."
        );
        assert_eq!(check.findings[1].message, "node a: DiskUuidDisabled; the same applies to b");
        let elsewhere = nodes_check(&reports, false);
        assert_eq!((elsewhere.reason, elsewhere.findings.len()), (Reason::DiskUuidDisabled, 2));
        assert_eq!(
            nodes_check(&reports[3..], true).text(),
            "1 of 1 nodes are virtual machines in this vCenter"
        );
    }

    /// Problems come first, and a status has an end.
    #[test]
    fn nodes_status_large_cluster_is_bounded_problems_first() {
        let uuid = |i: usize| format!("{i:08x}-0000-0000-0000-000000000000");
        let nodes: Vec<Arc<Node>> = (0..5000)
            .map(|i| Node {
                name: format!("n{i}"),
                system_uuid: uuid(i),
                ..Node::default()
            })
            .map(Arc::new)
            .collect();
        let machines: Vec<Machine> = (0..4999)
            .map(|i| Machine {
                path: format!("/DC{}/vm/folder/n{i}", i % 50),
                uuid: uuid(i),
                disk_uuid: Some(true),
                host_name: format!("n{i}"),
                adapters: vec![Adapter {
                    addresses: vec!["10.0.0.1".into()],
                    ..Adapter::default()
                }],
                tools_running: true,
                ..Machine::default()
            })
            .collect();
        let inventory = Inventory {
            machines,
            ..Inventory::default()
        };
        let reports = match_vms(&nodes, &inventory, &[], &crate::vsphere::Requirements::default());
        assert_eq!(
            (reports[0].node.as_str(), reports[0].findings[0].reason),
            ("n4999", Reason::NodeNotFound)
        );
        let status = machines_status(&reports);
        assert_eq!(
            (status.nodes, status.found, status.with_problems, status.list.len()),
            (5000, 4999, 1, SHOWN)
        );
        assert!(serde_json::to_string(&status).expect("JSON").len() < 64 << 10);
    }
}
