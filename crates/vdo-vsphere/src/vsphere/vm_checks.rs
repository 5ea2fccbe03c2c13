// SPDX-License-Identifier: Apache-2.0
//! Checks the virtual machine of a node: power, hardware version, `disk.EnableUUID`, VMware Tools, host, snapshots, SCSI controllers.

use super::check::shell;
use super::{Advice, Feature, Inventory, Machine, Requirements};
use super::{Finding, NodeReport};
use vdo_api::api::Reason;
use vdo_api::facts::Node;
use vdo_api::types::name_list;
use vdo_core::driverconfig::node_addresses::NoAddress;

/// The oldest hardware version that the drivers work with.
pub const MINIMUM_HARDWARE: u32 = 15;

/// The oldest ESXi that the drivers work with.
const ESXI: [u32; 2] = [6, 7];

pub(super) fn no_vm(node: &Node) -> Finding {
    Finding::new(
        Reason::NodeNotFound,
        format!(
            "node {}: no virtual machine that the user can see has the UUID, name or address of the node",
            node.name
        ),
        "Give the user the role Read-only on the machine's folder, or add its datacenter to spec.datacenters.",
    )
}

/// What keeps the drivers from working with a machine, the worst first.
pub(super) fn check_vm(
    node: &Node,
    report: &NodeReport,
    machine: &Machine,
    inventory: &Inventory,
    requirements: &Requirements,
) -> Vec<Finding> {
    let path = if machine.path.is_empty() { &machine.id } else { &machine.path };
    let vm = NodeMachine { node, machine, path };
    let first = [vm.power(), vm.hardware(), vm.disk_uuid()];
    let rest = [
        vm.provider_id(),
        vm.host_version(report, inventory),
        vm.host_state(report, inventory),
        vm.snapshot(),
        vm.controllers(),
    ];
    let all = first.into_iter().flatten().chain(vm.guest(requirements));
    all.chain(rest.into_iter().flatten()).collect()
}

/// The machine of a node.
struct NodeMachine<'a> {
    node: &'a Node,
    machine: &'a Machine,
    /// By which it is named.
    path: &'a str,
}

impl NodeMachine<'_> {
    fn finding(&self, reason: Reason, what: impl std::fmt::Display, remedy: impl Into<Advice>) -> Finding {
        Finding::new(reason, format!("node {}: {what}", self.node.name), remedy)
    }

    fn power(&self) -> Option<Finding> {
        let (power, path) = (&self.machine.power, self.path);
        let is_off = power != "poweredOn" && !power.is_empty();
        let remedy = || {
            Advice::run(
                "Power the machine on, or remove the node:",
                format!("govc vm.power -on {}", shell(path)),
            )
        };
        is_off.then(|| self.finding(Reason::MachinePoweredOff, format!("machine {path} is {power}"), remedy()))
    }

    fn hardware(&self) -> Option<Finding> {
        let (hardware, path) = (&self.machine.hardware, self.path);
        let number = hardware.strip_prefix("vmx-").and_then(|text| text.parse::<u32>().ok());
        number.filter(|version| *version < MINIMUM_HARDWARE)?;
        let what = format!("machine {path} has hardware version {hardware}; the drivers need at least vmx-{MINIMUM_HARDWARE}");
        let command = format!("govc vm.upgrade -version={MINIMUM_HARDWARE} -vm {}", shell(path));
        let remedy = Advice::run("Power the machine off and upgrade its hardware version:", command);
        Some(self.finding(Reason::HardwareVersionTooOld, what, remedy))
    }

    fn disk_uuid(&self) -> Option<Finding> {
        let path = self.path;
        let state = match self.machine.disk_uuid {
            Some(true) => return None,
            Some(false) => "FALSE",
            None => "not set",
        };
        let what = format!("machine {path} has disk.EnableUUID {state}, so volumes cannot be mounted there");
        let command = format!("govc vm.change -vm {} -e disk.enableUUID=TRUE", shell(path));
        let remedy = Advice::run("Power the machine off and set disk.EnableUUID:", command);
        Some(self.finding(Reason::DiskUuidDisabled, what, remedy))
    }

    /// What VMware Tools report, from which the cloud provider learns a node's name and addresses. Nothing is expected of a machine that is off.
    fn guest(&self, requirements: &Requirements) -> Vec<Finding> {
        if self.machine.power == "poweredOff" {
            return Vec::new();
        }
        if !self.machine.tools_running {
            let what = format!("VMware Tools do not run in machine {}", self.path);
            let remedy = "Install open-vm-tools in the guest and start its service vmtoolsd; the cloud provider gets the addresses from VMware \
                 Tools.";
            return vec![self.finding(Reason::ToolsNotRunning, what, remedy)];
        }
        [self.guest_name(), self.guest_address(requirements)]
            .into_iter()
            .flatten()
            .collect()
    }

    fn guest_name(&self) -> Option<Finding> {
        let (node, name, path) = (self.node, &self.machine.host_name, self.path);
        if name.is_empty() {
            let what = format!("VMware Tools report no host name of machine {path}");
            let remedy = "Check vmtoolsd in the guest; the cloud provider does not register a node without a host name.";
            return Some(self.finding(Reason::GuestNameMissing, what, remedy));
        }
        if !node.provider_id.is_empty() || *name == node.name {
            return None;
        }
        let what = format!("machine {path} has the host name {name:?}; the cloud provider needs exactly the name of the node");
        let remedy = format!(
            "Set the guest's host name to {:?}, or the kubelet's --hostname-override to the guest's host name.",
            node.name
        );
        Some(self.finding(Reason::GuestNameDiffers, what, remedy))
    }

    /// Whether the node gets an address: chosen as the cloud provider does where it is asked for, else any will do.
    fn guest_address(&self, requirements: &Requirements) -> Option<Finding> {
        let rules = &requirements.addresses;
        let chosen = rules.choose(&self.machine.adapters).map(drop);
        let why = match chosen {
            Err(why) if requirements.features.contains(&Feature::CloudProvider) || why == NoAddress::AtAll => why,
            _ => return None,
        };
        let (path, seen) = (self.path, name_list(&self.machine.addresses()));
        let (what, remedy) = match why {
            NoAddress::AtAll => (
                format!("VMware Tools report no usable address of machine {path}"),
                "Connect the network adapter of the machine, and check vmtoolsd in the guest; loopback and link-local addresses do not \
                 count."
                    .to_owned(),
            ),
            NoAddress::InNetworks => (
                format!("no adapter of machine {path} is in one of the networks of spec.cloudProvider.nodeNetworks"),
                "Connect an adapter to one of these networks, or correct the names of the networks in the VDOConfig.".to_owned(),
            ),
            NoAddress::Family(family) if rules.families.is_empty() => (
                format!(
                    "machine {path} has no {} address; its addresses are {seen}, but the cloud provider needs an {} address",
                    family.name(),
                    family.name()
                ),
                "Give the machine an IPv4 address on one of its adapters, or request IPv6 in spec.cloudProvider.ipFamilies.".to_owned(),
            ),
            NoAddress::Family(family) => (
                format!(
                    "machine {path} has no {0} address; its addresses are {seen}, but spec.cloudProvider.ipFamilies requires {0}",
                    family.name()
                ),
                format!(
                    "Give the machine an {0} address, or leave {0} out of spec.cloudProvider.ipFamilies.",
                    family.name()
                ),
            ),
            NoAddress::Excluded(family) => (
                format!(
                    "the {} addresses of machine {path} are all excluded by spec.cloudProvider.nodeNetworks: {seen}",
                    family.name()
                ),
                "Give the machine an address outside these subnets, or correct excludedSubnets in the VDOConfig.".to_owned(),
            ),
        };
        Some(self.finding(Reason::GuestAddressMissing, what, remedy))
    }

    fn provider_id(&self) -> Option<Finding> {
        let (node, path) = (self.node, self.path);
        let expected = format!("vsphere://{}", self.machine.uuid.trim().to_lowercase());
        // To delete the node of another provider helps nothing: its own cloud controller would write the same again.
        let is_ours = node.other_provider().is_none();
        if !is_ours || node.provider_id.is_empty() || self.machine.uuid.is_empty() || node.provider_id == expected {
            return None;
        }
        let what = format!(
            "its provider ID is {}, but the provider ID of its machine {path} is {expected}",
            node.provider_id
        );
        let remedy = Advice::run(
            "The provider ID cannot be changed: delete the node and let it register again:",
            format!("kubectl delete node {}", node.name),
        );
        Some(self.finding(Reason::ProviderIdDiffers, what, remedy))
    }

    fn host_version(&self, report: &NodeReport, inventory: &Inventory) -> Option<Finding> {
        inventory.hosts.get(&self.machine.host).filter(|host| too_old(&host.version))?;
        let what = format!(
            "machine {} runs on host {} with ESXi {}; the drivers need at least {}.{}",
            self.path, report.host, report.host_version, ESXI[0], ESXI[1]
        );
        let remedy = "Upgrade the host, or move the machine to a newer host.";
        Some(self.finding(Reason::HostVersionTooOld, what, remedy))
    }

    fn host_state(&self, report: &NodeReport, inventory: &Inventory) -> Option<Finding> {
        let state = &inventory.hosts.get(&self.machine.host)?.state;
        if state.is_empty() || state == "connected" {
            return None;
        }
        let what = format!("machine {} runs on host {}, which is {state}", self.path, report.host);
        let remedy = "Reconnect the host in vCenter; until then nothing can be attached to the machine.";
        Some(self.finding(Reason::HostDisconnected, what, remedy))
    }

    fn snapshot(&self) -> Option<Finding> {
        let path = self.path;
        let remedy = || Advice::run("Remove the snapshot:", format!("govc snapshot.remove -vm {} '*'", shell(path)));
        let what = format!("machine {path} has a snapshot; the machine of a node must not have snapshots");
        self.machine
            .snapshot
            .then(|| self.finding(Reason::SnapshotsPresent, what, remedy()))
    }

    fn controllers(&self) -> Option<Finding> {
        let all = self.machine.controllers.as_ref()?;
        if all.iter().any(|kind| kind == "ParaVirtualSCSIController") {
            return None;
        }
        let what = format!(
            "machine {} has no paravirtual SCSI controller; volumes cannot be attached to another kind of controller",
            self.path
        );
        let remedy = "Power the machine off and add a SCSI controller of type VMware Paravirtual.";
        Some(self.finding(Reason::ParavirtualScsiMissing, what, remedy))
    }
}

fn too_old(version: &str) -> bool {
    let numbers: Option<Vec<u32>> = version.split('.').take(2).map(|part| part.parse().ok()).collect();
    numbers.is_some_and(|numbers| numbers.len() == 2 && numbers.as_slice() < &ESXI[..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::Host;
    use crate::vsphere::match_vms;
    use std::sync::Arc;
    use vdo_core::driverconfig::node_addresses::Adapter;

    const UUID: &str = "56492e42-22ad-3911-6d72-59cc8f26bc90";

    fn adapter(addresses: &[&str]) -> Vec<Adapter> {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        vec![Adapter {
            network: "VM Network".into(),
            addresses,
        }]
    }

    fn machine() -> Machine {
        Machine {
            id: "vm-1".into(),
            path: "/DC0/vm/n1".into(),
            uuid: UUID.into(),
            hardware: "vmx-19".into(),
            disk_uuid: Some(true),
            host_name: "n1".into(),
            adapters: adapter(&["10.0.0.1"]),
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

    fn reported(node: &Node, machine: Machine, host: Host) -> Vec<(Reason, String)> {
        let requirements = Requirements {
            features: [Feature::CloudProvider].into(),
            ..Requirements::default()
        };
        reported_with(&requirements, node, machine, host)
    }

    fn reported_with(requirements: &Requirements, node: &Node, machine: Machine, host: Host) -> Vec<(Reason, String)> {
        let inventory = Inventory {
            machines: vec![machine],
            hosts: [("host-1".to_owned(), host)].into(),
            ..Inventory::default()
        };
        let reports = match_vms(&[Arc::new(node.clone())], &inventory, &[], requirements);
        assert!(reports[0].is_found());
        let remedies_end = reports[0].findings.iter().all(|f| f.remedy.to_string().ends_with('.'));
        assert!(remedies_end, "{reports:?}");
        reports[0].findings.iter().map(|f| (f.reason, f.message.clone())).collect()
    }

    /// Each fault alone gives exactly its reason.
    #[test]
    fn machine_fitness_each_fault_gives_its_reason() {
        type Change = fn(&mut Machine);
        let rows: [(Change, &[Reason]); 21] = [
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
            (|m| m.adapters = vec![], &[Reason::GuestAddressMissing]),
            (
                |m| m.adapters = adapter(&["127.0.0.1", "169.254.1.1", "fe80::1", "::1", "x"]),
                &[Reason::GuestAddressMissing],
            ),
            (|m| m.adapters.extend(adapter(&["fe80::1"])), &[]),
            (|m| m.adapters.extend(adapter(&["2001:db8::1"])), &[]),
            (|m| m.adapters = adapter(&["2001:db8::1"]), &[Reason::GuestAddressMissing]),
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
            let reported: Vec<Reason> = reported(&node(""), changed.clone(), host("8.0.3", "connected"))
                .into_iter()
                .map(|(r, _)| r)
                .collect();
            assert_eq!(reported, expected, "{changed:?}");
        }
    }

    #[test]
    fn machine_fitness_ipv6_only_without_cloud_provider_passes() {
        // Without the cloud provider, the family does not matter.
        let mut six = machine();
        six.adapters = adapter(&["2001:db8::1"]);
        assert_eq!(
            reported_with(&Requirements::default(), &node(""), six, host("8.0.3", "connected")),
            []
        );
    }

    #[test]
    fn machine_fitness_old_or_disconnected_host_gives_reason() {
        for (version, state, expected) in [
            ("6.5.0", "connected", &[Reason::HostVersionTooOld][..]),
            ("6.7.0", "connected", &[]),
            ("10.0.0", "connected", &[]),
            ("", "disconnected", &[Reason::HostDisconnected]),
            ("8.0.3", "notResponding", &[Reason::HostDisconnected]),
        ] {
            let reported: Vec<Reason> = reported(&node(""), machine(), host(version, state))
                .into_iter()
                .map(|(r, _)| r)
                .collect();
            assert_eq!(reported, expected, "{version} {state}");
        }
    }

    #[test]
    fn machine_fitness_other_provider_id_gives_reason() {
        let expected = format!("vsphere://{UUID}");
        for (provider_id, host_name, reasons) in [
            (expected.as_str(), "n1", &[][..]),
            // Once it is registered, the name inside does not count any more.
            (&expected, "other", &[]),
            ("vsphere://422e4956-ad22-1139-6d72-59cc8f26bc90", "n1", &[Reason::ProviderIdDiffers]),
            ("422e4956-ad22-1139-6d72-59cc8f26bc90", "n1", &[Reason::ProviderIdDiffers]),
            // Deleting the node of another provider is advised to no one.
            ("aws://i-1", "n1", &[]),
        ] {
            let machine = Machine {
                host_name: host_name.into(),
                ..machine()
            };
            let reported: Vec<Reason> = reported(&node(provider_id), machine, host("8.0.3", "connected"))
                .into_iter()
                .map(|(r, _)| r)
                .collect();
            assert_eq!(reported, reasons, "{provider_id}");
        }
    }
}
