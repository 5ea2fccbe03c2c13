use super::connection::some;
use super::{Finding, Stage};
use crate::api::{ConditionType, MachineStatus, MachinesStatus, Reason};
use crate::facts::{Inventory, Machine, Node};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// As many nodes as a status has room for.
const SHOWN: usize = 100;

/// The oldest hardware version that the drivers work with.
const HARDWARE: u32 = 15;

/// The oldest ESXi that the drivers work with.
const ESXI: [u32; 2] = [6, 7];

/// A node and its virtual machine. Texts are empty where nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// The node.
    pub node: String,
    /// The inventory path of its machine.
    pub machine: String,
    /// By what it was found: its BIOS UUID, its instance UUID, its name or its address.
    pub by: String,
    /// The paths of all machines that fit, where that is not exactly one for this node alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The ESXi host that the machine runs on.
    pub host: String,
    /// The version of ESXi there.
    pub host_version: String,
    /// The power state, such as `poweredOn`.
    pub power: String,
    /// The hardware version, such as `vmx-19`.
    pub hardware: String,
    /// `disk.EnableUUID`; `None` where it was never set.
    pub disk_uuid: Option<bool>,
    /// Whether VMware Tools run.
    pub tools_running: bool,
    /// The host name that VMware Tools report.
    pub host_name: String,
    /// The addresses that VMware Tools report.
    pub addresses: Vec<String>,
    /// Whether the machine has a snapshot.
    pub snapshot: bool,
    /// The kinds of its SCSI controllers, where somebody has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<String>>,
    /// The provider ID of the node.
    pub provider_id: String,
    /// Whether the node still bears the taint that the cloud provider takes away.
    pub uninitialized: bool,
    /// What is not as it should be.
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
        self.addresses.clone_from(&machine.addresses);
        self.snapshot = machine.snapshot;
        self.controllers.clone_from(&machine.controllers);
    }

    /// Whether it is told apart from all others and was found.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.at.is_some()
    }
}

pub(super) fn missing(node: &Node) -> Finding {
    Finding::new(
        Reason::NodeNotFound,
        format!(
            "node {}: no virtual machine that can be seen has its UUID, name or address",
            node.name
        ),
        "Give the user the role Read-only on the machine's folder, or add its datacenter to spec.datacenters.",
    )
}

/// What keeps the drivers from working with a machine, the worst first.
pub(super) fn findings(node: &Node, report: &NodeReport, machine: &Machine, inventory: &Inventory) -> Vec<Finding> {
    let mut all = Vec::new();
    let path = if machine.path.is_empty() { &machine.id } else { &machine.path };
    let mut add = |reason, what: String, remedy: String| all.push(Finding::new(reason, format!("node {}: {what}", node.name), remedy));
    if machine.power != "poweredOn" && !machine.power.is_empty() {
        add(
            Reason::MachinePoweredOff,
            format!("machine {path} is {}", machine.power),
            format!("Power it on, or remove the node: govc vm.power -on {path}."),
        );
    }
    let number = machine.hardware.strip_prefix("vmx-").and_then(|text| text.parse::<u32>().ok());
    if number.is_some_and(|version| version < HARDWARE) {
        add(
            Reason::HardwareVersionTooOld,
            format!(
                "machine {path} has hardware version {}; the drivers need vmx-{HARDWARE}",
                machine.hardware
            ),
            format!("Power it off and upgrade it: govc vm.upgrade -version={HARDWARE} -vm {path}."),
        );
    }
    if machine.disk_uuid != Some(true) {
        let state = if machine.disk_uuid.is_some() { "FALSE" } else { "not set" };
        add(
            Reason::DiskUuidDisabled,
            format!("machine {path} has disk.EnableUUID {state}; volumes cannot be mounted there"),
            format!("Power it off and set it: govc vm.change -vm {path} -e disk.enableUUID=TRUE."),
        );
    }
    let off = machine.power == "poweredOff";
    if !machine.tools_running && !off {
        add(
            Reason::ToolsNotRunning,
            format!("VMware Tools do not run in machine {path}"),
            "Install open-vm-tools in the guest and start its service vmtoolsd; the cloud provider learns the addresses from it.".into(),
        );
    } else if !off {
        if machine.host_name.is_empty() {
            add(
                Reason::GuestNameMissing,
                format!("VMware Tools report no host name of machine {path}"),
                "Look at vmtoolsd in the guest; the cloud provider does not register a node without it.".into(),
            );
        } else if node.provider_id.is_empty() && machine.host_name != node.name {
            add(
                Reason::GuestNameDiffers,
                format!(
                    "machine {path} calls itself {:?}; the cloud provider compares letter by letter",
                    machine.host_name
                ),
                format!(
                    "Set the guest's host name to {:?}, or the kubelet's --hostname-override to the guest's.",
                    node.name
                ),
            );
        }
        if !machine.addresses.iter().any(|address| usable(address)) {
            add(
                Reason::GuestAddressMissing,
                format!("VMware Tools report no usable address of machine {path}"),
                "Connect its network adapter and look at vmtoolsd in the guest; loopback and link-local addresses do not count.".into(),
            );
        }
    }
    let expected = format!("vsphere://{}", machine.uuid.trim().to_lowercase());
    if !node.provider_id.is_empty() && !machine.uuid.is_empty() && node.provider_id != expected {
        add(
            Reason::ProviderIdDiffers,
            format!("its provider ID is {}, its machine {path} would be {expected}", node.provider_id),
            format!(
                "The provider ID cannot be changed: delete the node and let it register anew: kubectl delete node {}.",
                node.name
            ),
        );
    }
    let host = inventory.hosts.get(&machine.host);
    if host.is_some_and(|host| too_old(&host.version)) {
        add(
            Reason::HostVersionTooOld,
            format!(
                "machine {path} runs on host {} with ESXi {}; the drivers need {}.{}",
                report.host, report.host_version, ESXI[0], ESXI[1]
            ),
            "Upgrade the host, or move the machine to a newer one.".into(),
        );
    }
    if host.is_some_and(|host| !host.state.is_empty() && host.state != "connected") {
        add(
            Reason::HostDisconnected,
            format!(
                "machine {path} runs on host {}, which is {}",
                report.host,
                host.map_or("", |host| &host.state)
            ),
            "Reconnect the host in vCenter; until then nothing can be attached to the machine.".into(),
        );
    }
    if machine.snapshot {
        add(
            Reason::SnapshotsPresent,
            format!("machine {path} has a snapshot, which a node must not have"),
            format!("Remove it: govc snapshot.remove -vm {path} '*'."),
        );
    }
    if machine
        .controllers
        .as_ref()
        .is_some_and(|all| !all.iter().any(|kind| kind == "ParaVirtualSCSIController"))
    {
        add(
            Reason::ParavirtualScsiMissing,
            format!("machine {path} has no paravirtual SCSI controller; volumes are attached to no other kind"),
            "Power it off and add a SCSI controller of type VMware Paravirtual.".into(),
        );
    }
    all
}

/// Whether other machines can reach it there.
fn usable(address: &str) -> bool {
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => !address.is_loopback() && !address.is_link_local() && !address.is_unspecified(),
        Ok(IpAddr::V6(address)) => !address.is_loopback() && !address.is_unicast_link_local() && !address.is_unspecified(),
        Err(_) => false,
    }
}

fn too_old(version: &str) -> bool {
    let numbers: Option<Vec<u32>> = version.split('.').take(2).map(|part| part.parse().ok()).collect();
    numbers.is_some_and(|numbers| numbers.len() == 2 && numbers.as_slice() < &ESXI[..])
}

/// The stage of the nodes. Each reason is told once, with all nodes that it concerns. A node that is not found here is only a
/// finding where no other connection may hold it (`alone`).
#[must_use]
pub fn nodes_stage(reports: &[NodeReport], alone: bool) -> Stage {
    let found = reports.iter().filter(|report| report.is_found()).count();
    let count = format!("{found} of {} nodes are virtual machines here", reports.len());
    let mut groups: BTreeMap<Reason, (Finding, Vec<&str>)> = BTreeMap::new();
    let told = reports
        .iter()
        .flat_map(|report| report.findings.iter().map(|finding| (report.node.as_str(), finding)))
        .filter(|(_, finding)| alone || finding.reason != Reason::NodeNotFound);
    for (node, finding) in told {
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
                finding.message = format!("{}; the same of {}", finding.message, some(&nodes[1..]));
            }
            finding
        })
        .collect();
    let mut stage = Stage::of(ConditionType::NodesFound, count.clone(), findings);
    if stage.status == Some(false) {
        stage.message = format!("{count}; {}", stage.message);
    }
    stage
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
    use crate::facts::Host;
    use crate::health::match_machines;

    const UUID: &str = "56492e42-22ad-3911-6d72-59cc8f26bc90";

    fn machine() -> Machine {
        Machine {
            id: "vm-1".into(),
            path: "/DC0/vm/n1".into(),
            uuid: UUID.into(),
            hardware: "vmx-19".into(),
            disk_uuid: Some(true),
            host_name: "n1".into(),
            addresses: vec!["10.0.0.1".into()],
            tools_running: true,
            power: "poweredOn".into(),
            host: "host-1".into(),
            controllers: Some(vec!["ParaVirtualSCSIController".into()]),
            ..Machine::default()
        }
    }

    fn node(provider_id: &str) -> Node {
        Node {
            name: "n1".into(),
            system_uuid: UUID.into(),
            provider_id: provider_id.into(),
            ..Node::default()
        }
    }

    fn host(version: &str, state: &str) -> Host {
        Host {
            name: "esx-1".into(),
            version: version.into(),
            state: state.into(),
            maintenance: false,
        }
    }

    fn told(node: &Node, machine: Machine, host: Host) -> Vec<(Reason, String)> {
        let inventory = Inventory {
            machines: vec![machine],
            hosts: [("host-1".to_owned(), host)].into(),
            ..Inventory::default()
        };
        let reports = match_machines(std::slice::from_ref(node), &inventory, &[]);
        assert!(reports[0].is_found());
        let remedies_end = reports[0].findings.iter().all(|f| f.remedy.ends_with('.'));
        assert!(remedies_end, "{reports:?}");
        reports[0].findings.iter().map(|f| (f.reason, f.message.clone())).collect()
    }

    /// Each fault alone gives exactly its reason.
    #[test]
    fn what_a_machine_lacks() {
        type Change = fn(&mut Machine);
        let rows: [(Change, &[Reason]); 19] = [
            (|_| {}, &[]),
            (|m| m.power = "suspended".into(), &[Reason::MachinePoweredOff]),
            // Of a machine that is off, Tools say nothing; that is no fault of its own.
            (
                |m| (m.power, m.tools_running) = ("poweredOff".into(), false),
                &[Reason::MachinePoweredOff],
            ),
            (|m| m.hardware = "vmx-13".into(), &[Reason::HardwareVersionTooOld]),
            (|m| m.hardware = "vmx-15".into(), &[]),
            (|m| m.hardware = "vmx-99x".into(), &[]),
            (|m| m.disk_uuid = None, &[Reason::DiskUuidDisabled]),
            (|m| m.disk_uuid = Some(false), &[Reason::DiskUuidDisabled]),
            (|m| m.tools_running = false, &[Reason::ToolsNotRunning]),
            (|m| m.host_name = String::new(), &[Reason::GuestNameMissing]),
            (|m| m.host_name = "N1".into(), &[Reason::GuestNameDiffers]),
            (|m| m.addresses = vec![], &[Reason::GuestAddressMissing]),
            (
                |m| m.addresses = ["127.0.0.1", "169.254.1.1", "fe80::1", "::1", "x"].map(String::from).to_vec(),
                &[Reason::GuestAddressMissing],
            ),
            (|m| m.addresses.push("fe80::1".into()), &[]),
            (|m| m.snapshot = true, &[Reason::SnapshotsPresent]),
            (
                |m| m.controllers = Some(vec!["VirtualLsiLogicController".into()]),
                &[Reason::ParavirtualScsiMissing],
            ),
            (|m| m.controllers = Some(vec![]), &[Reason::ParavirtualScsiMissing]),
            (|m| m.controllers = None, &[]),
            (
                |m| (m.hardware, m.disk_uuid) = ("vmx-14".into(), Some(false)),
                &[Reason::HardwareVersionTooOld, Reason::DiskUuidDisabled],
            ),
        ];
        for (change, expected) in rows {
            let mut changed = machine();
            change(&mut changed);
            let told: Vec<Reason> = told(&node(""), changed.clone(), host("8.0.3", "connected"))
                .into_iter()
                .map(|(r, _)| r)
                .collect();
            assert_eq!(told, expected, "{changed:?}");
        }
        for (version, state, expected) in [
            ("6.5.0", "connected", &[Reason::HostVersionTooOld][..]),
            ("6.7.0", "connected", &[]),
            ("10.0.0", "connected", &[]),
            ("", "disconnected", &[Reason::HostDisconnected]),
            ("8.0.3", "notResponding", &[Reason::HostDisconnected]),
        ] {
            let told: Vec<Reason> = told(&node(""), machine(), host(version, state))
                .into_iter()
                .map(|(r, _)| r)
                .collect();
            assert_eq!(told, expected, "{version} {state}");
        }
        let expected = format!("vsphere://{UUID}");
        for (provider_id, host_name, reasons) in [
            (expected.as_str(), "n1", &[][..]),
            // Once it is registered, the name inside does not count any more.
            (&expected, "other", &[]),
            ("vsphere://422e4956-ad22-1139-6d72-59cc8f26bc90", "n1", &[Reason::ProviderIdDiffers]),
            ("aws://i-1", "n1", &[Reason::ProviderIdDiffers]),
        ] {
            let machine = Machine {
                host_name: host_name.into(),
                ..machine()
            };
            let told: Vec<Reason> = told(&node(provider_id), machine, host("8.0.3", "connected"))
                .into_iter()
                .map(|(r, _)| r)
                .collect();
            assert_eq!(told, reasons, "{provider_id}");
        }
    }

    fn report(node: &str, reasons: &[Reason]) -> NodeReport {
        NodeReport {
            node: node.into(),
            at: (!reasons.contains(&Reason::NodeNotFound)).then_some(0),
            findings: reasons
                .iter()
                .map(|r| Finding::new(*r, format!("node {node}: {r}"), "Mend it."))
                .collect(),
            ..NodeReport::default()
        }
    }

    #[test]
    fn each_reason_is_told_once_with_all_its_nodes() {
        let reports = [
            report("a", &[Reason::DiskUuidDisabled, Reason::SnapshotsPresent]),
            report("b", &[Reason::DiskUuidDisabled]),
            report("c", &[Reason::NodeNotFound]),
            report("d", &[]),
        ];
        let stage = nodes_stage(&reports, true);
        assert_eq!((stage.status, stage.reason), (Some(false), Reason::NodeNotFound));
        assert_eq!(
            stage.text(),
            "3 of 4 nodes are virtual machines here; node c: NodeNotFound (and 2 more). Mend it."
        );
        assert_eq!(stage.findings[1].message, "node a: DiskUuidDisabled; the same of b");
        let elsewhere = nodes_stage(&reports, false);
        assert_eq!((elsewhere.reason, elsewhere.findings.len()), (Reason::DiskUuidDisabled, 2));
        assert_eq!(nodes_stage(&reports[3..], true).text(), "1 of 1 nodes are virtual machines here");
    }

    /// Problems come first, and a status has an end.
    #[test]
    fn a_large_cluster() {
        let uuid = |i: usize| format!("{i:08x}-0000-0000-0000-000000000000");
        let nodes: Vec<Node> = (0..5000)
            .map(|i| Node {
                name: format!("n{i}"),
                system_uuid: uuid(i),
                ..Node::default()
            })
            .collect();
        let machines: Vec<Machine> = (0..4999)
            .map(|i| Machine {
                path: format!("/DC{}/vm/folder/n{i}", i % 50),
                uuid: uuid(i),
                host_name: format!("n{i}"),
                ..machine()
            })
            .collect();
        let inventory = Inventory {
            machines,
            hosts: [("host-1".to_owned(), host("8.0.3", "connected"))].into(),
            ..Inventory::default()
        };
        let reports = match_machines(&nodes, &inventory, &[]);
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
