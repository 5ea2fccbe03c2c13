// SPDX-License-Identifier: Apache-2.0
//! Finds the virtual machine of each node, by UUID, name or address; `vm_checks.rs` checks the machine.

use super::vm_checks::{check_vm, no_vm};
use super::{Advice, Finding, NodeReport};
use super::{Inventory, Machine, Requirements};
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::Node;
use vdo_api::types::name_list;

/// What a node is found by.
const BIOS_UUID: &str = "BIOS UUID";
const INSTANCE_UUID: &str = "instance UUID";
const NAME: &str = "name";

/// Finds the machine of each node: by BIOS UUID in both orders of its bytes, by instance UUID, by name, by address, in this
/// order. Where several fit, none is chosen. A node of another provider that none fits is left out. A datacenter list that is not empty leaves the machines of others out. Nodes
/// with findings come first.
#[must_use]
pub fn match_vms(nodes: &[Arc<Node>], inventory: &Inventory, datacenters: &[String], requirements: &Requirements) -> Vec<NodeReport> {
    let wanted = |machine: &Machine| {
        datacenters.is_empty() || machine.datacenter.is_empty() || datacenters.iter().any(|name| is_in(&machine.datacenter, name))
    };
    let keys = Keys::of(inventory.machines.iter().enumerate().filter(|(_, machine)| wanted(machine)));
    let found: Vec<(&Node, &str, Vec<usize>)> = nodes
        .iter()
        .map(|node| {
            let (by, candidates) = keys.candidates(node);
            (node.as_ref(), by, candidates)
        })
        // A node of another provider need not be a machine of this vCenter.
        .filter(|(node, _, candidates)| node.other_provider().is_none() || !candidates.is_empty())
        .collect();
    let mut owners: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (node, _, candidates) in &found {
        if let [one] = candidates.as_slice() {
            owners.entry(*one).or_default().push(&node.name);
        }
    }
    let path = |at: &usize| inventory.machines[*at].path.clone();
    let mut reports: Vec<NodeReport> = found
        .into_iter()
        .map(|(node, by, candidates)| {
            let mut report = NodeReport::of(node, by);
            match candidates.as_slice() {
                [] => report.findings.push(no_vm(node)),
                [one] => {
                    report.fill(&inventory.machines[*one], inventory);
                    let rivals: Vec<&str> = owners[one].iter().filter(|name| **name != node.name).copied().collect();
                    if rivals.is_empty() {
                        report.at = Some(*one);
                        report.findings = check_vm(node, &report, &inventory.machines[*one], inventory, requirements);
                    } else {
                        report.candidates = vec![path(one)];
                        report.findings.push(Finding::new(
                            Reason::NodeAmbiguous,
                            format!(
                                "node {}: its machine {} also matches other nodes: {}",
                                node.name,
                                report.machine,
                                name_list(&rivals)
                            ),
                            "Give each machine a unique UUID, and look for nodes that were registered twice.",
                        ));
                    }
                }
                many => {
                    report.candidates = many.iter().map(path).collect();
                    report.findings.push(Finding::new(
                        Reason::NodeAmbiguous,
                        format!(
                            "node {}: several virtual machines match its {by}: {}",
                            node.name,
                            name_list(&report.candidates)
                        ),
                        to_tell_apart(by, by),
                    ));
                }
            }
            report
        })
        .collect();
    reports.sort_by(|a, b| (a.findings.is_empty(), &a.node).cmp(&(b.findings.is_empty(), &b.node)));
    reports
}

/// The remedy for two machines that fit one node, which depends on what the node was found by in each place.
pub(super) fn to_tell_apart(one: &str, other: &str) -> Advice {
    let is_uuid = |by: &str| matches!(by, BIOS_UUID | INSTANCE_UUID);
    match if is_uuid(one) { other } else { one } {
        BIOS_UUID | INSTANCE_UUID => Advice::run(
            "Power each clone off, and give it a unique BIOS UUID:",
            "govc vm.change -vm PATH -uuid $(uuidgen)",
        ),
        NAME => "Give the guest of each machine a unique host name.".into(),
        _ => "Give each machine a unique address.".into(),
    }
}

/// Whether a datacenter is the one that is named.
pub(super) fn is_in(path: &str, name: &str) -> bool {
    let bare = name.trim_matches('/');
    name.starts_with("Datacenter:") || path.trim_matches('/') == bare || (!name.contains('/') && path.rsplit('/').next() == Some(bare))
}

/// The machines by what they can be found by.
#[derive(Default)]
struct Keys {
    bios: BTreeMap<String, Vec<usize>>,
    instance: BTreeMap<String, Vec<usize>>,
    name: BTreeMap<String, Vec<usize>>,
    address: BTreeMap<String, Vec<usize>>,
}

impl Keys {
    fn of<'a>(machines: impl Iterator<Item = (usize, &'a Machine)>) -> Self {
        let mut keys = Self::default();
        let put = |map: &mut BTreeMap<String, Vec<usize>>, key: String, at: usize| {
            if !key.is_empty() {
                map.entry(key).or_default().push(at);
            }
        };
        for (at, machine) in machines {
            put(&mut keys.bios, machine.uuid.trim().to_lowercase(), at);
            put(&mut keys.instance, machine.instance_uuid.trim().to_lowercase(), at);
            put(&mut keys.name, machine.host_name.to_lowercase(), at);
            for address in machine.addresses() {
                put(&mut keys.address, address, at);
            }
        }
        keys
    }

    fn candidates(&self, node: &Node) -> (&'static str, Vec<usize>) {
        let uuid = node.system_uuid.trim().to_lowercase();
        let swapped = swapped(&uuid);
        for (by, map, keys) in [
            (BIOS_UUID, &self.bios, vec![uuid.clone(), swapped.clone()]),
            (INSTANCE_UUID, &self.instance, vec![uuid, swapped]),
            (NAME, &self.name, vec![node.name.to_lowercase()]),
            ("address", &self.address, node.addresses.clone()),
        ] {
            let mut found: Vec<usize> = keys.iter().filter_map(|key| map.get(key)).flatten().copied().collect();
            found.sort_unstable();
            found.dedup();
            if !found.is_empty() {
                return (by, found);
            }
        }
        ("", vec![])
    }
}

/// The UUID with the bytes of its first three groups reversed: firmware and vCenter differ in their order. Empty when it is none.
fn swapped(uuid: &str) -> String {
    let groups: Vec<&str> = uuid.split('-').collect();
    if !uuid.is_ascii() || groups.iter().map(|group| group.len()).ne([8, 4, 4, 4, 12]) {
        return String::new();
    }
    let reverse = |group: &str| {
        let bytes: Vec<&str> = (0..group.len()).step_by(2).map(|i| &group[i..i + 2]).collect();
        bytes.into_iter().rev().collect::<String>()
    };
    let (first, rest) = groups.split_at(3);
    let all: Vec<String> = first
        .iter()
        .map(|group| reverse(group))
        .chain(rest.iter().map(|g| (*g).to_owned()))
        .collect();
    all.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_core::driverconfig::node_addresses::Adapter;

    const UUID: &str = "56492e42-22ad-3911-6d72-59cc8f26bc90";
    const OTHER: &str = "11111111-2222-3333-4444-555555555555";

    fn node(name: &str, uuid: &str, address: &str) -> Arc<Node> {
        Arc::new(Node {
            name: name.into(),
            system_uuid: uuid.into(),
            addresses: vec![address.into()],
            ..Node::default()
        })
    }

    fn machine(name: &str, uuid: &str, instance: &str, host: &str, address: &str) -> Machine {
        Machine {
            path: format!("/DC0/vm/{name}"),
            datacenter: "/DC0".into(),
            uuid: uuid.into(),
            instance_uuid: instance.into(),
            hardware: "vmx-19".into(),
            disk_uuid: Some(true),
            host_name: host.into(),
            adapters: vec![Adapter {
                addresses: vec![address.into()],
                ..Adapter::default()
            }],
            tools_running: true,
            power: "poweredOn".into(),
            ..Machine::default()
        }
    }

    fn reported(nodes: &[Arc<Node>], machines: &[Machine], datacenters: &[&str]) -> Vec<String> {
        let datacenters: Vec<String> = datacenters.iter().map(|d| (*d).to_owned()).collect();
        let inventory = Inventory {
            machines: machines.to_vec(),
            ..Inventory::default()
        };
        let line = |r: NodeReport| {
            let of_match = |f: &&Finding| matches!(f.reason, Reason::NodeNotFound | Reason::NodeAmbiguous);
            let findings: Vec<String> = r
                .findings
                .iter()
                .filter(of_match)
                .map(|f| format!("{} {}", f.reason, f.message))
                .collect();
            assert_eq!(r.at.is_none(), !findings.is_empty());
            format!("{} {} by {}: {}", r.node, r.machine, r.by, findings.join("; "))
        };
        match_vms(nodes, &inventory, &datacenters, &Requirements::default())
            .into_iter()
            .map(line)
            .collect()
    }

    #[test]
    fn machine_match_bios_uuid_byte_order_is_swapped() {
        assert_eq!(swapped(UUID), "422e4956-ad22-1139-6d72-59cc8f26bc90");
        for bad in ["", "x", "56492e4222ad39116d7259cc8f26bc90", "é6492e4-22ad-3911-6d72-59cc8f26bc90"] {
            assert_eq!(swapped(bad), "");
        }
    }

    #[test]
    fn machine_match_uuid_precedes_name_and_address() {
        let decoy = machine("decoy", OTHER, OTHER, "n1", "10.0.0.1");
        let of = |uuid: &str, instance: &str| [machine("m", uuid, instance, "m", "10.9.9.9"), decoy.clone()];
        let one = [node("n1", &UUID.to_uppercase(), "10.0.0.1")];
        let swapped_uuid = swapped(UUID);
        for (machines, expected) in [
            (of(UUID, ""), "n1 /DC0/vm/m by BIOS UUID: "),
            (of(&swapped_uuid, ""), "n1 /DC0/vm/m by BIOS UUID: "),
            (of("", UUID), "n1 /DC0/vm/m by instance UUID: "),
            (of("", ""), "n1 /DC0/vm/decoy by name: "),
        ] {
            assert_eq!(reported(&one, &machines, &[]), [expected]);
        }
    }

    #[test]
    fn machine_match_by_address_only_in_listed_datacenters() {
        let one = [node("n1", &UUID.to_uppercase(), "10.0.0.1")];
        let machines = [machine("m", "", "", "other", "10.0.0.1")];
        assert_eq!(reported(&one, &machines, &[]), ["n1 /DC0/vm/m by address: "]);
        assert_eq!(reported(&one, &machines, &["DC0"]), ["n1 /DC0/vm/m by address: "]);
        let none = ["n1  by : NodeNotFound node n1: no virtual machine that the user can see has the UUID, name or address of the node"];
        assert_eq!(reported(&one, &machines, &["/Europe/DC0"]), none);
        assert_eq!(reported(&one, &[], &[]), none);
        let mut other = node("n1", UUID, "10.0.0.1");
        Arc::make_mut(&mut other).provider_id = "metal3://n1".into();
        assert_eq!(reported(&[other.clone()], &[], &[]), [""; 0], "it need not be a machine");
        assert_eq!(reported(&[other], &machines, &[]), ["n1 /DC0/vm/m by address: "]);
        // What is not known matches no machine: an empty UUID, name or address is not a key.
        assert_eq!(reported(&[node("n1", "", "")], &[machine("m", "", "", "", "")], &[]), none);
    }

    #[test]
    fn machine_match_several_machines_for_node_is_ambiguous() {
        let clones: Vec<Machine> = (0..7).map(|i| machine(&format!("c{i}"), UUID, OTHER, "n1", "10.0.0.1")).collect();
        assert_eq!(
            reported(&[node("n1", UUID, "10.0.0.1")], &clones, &[]),
            [
                "n1  by BIOS UUID: NodeAmbiguous node n1: several virtual machines match its BIOS UUID: /DC0/vm/c0, /DC0/vm/c1, \
                 /DC0/vm/c2, /DC0/vm/c3, /DC0/vm/c4 and 2 more"
            ]
        );
    }

    #[test]
    fn machine_match_one_machine_for_two_nodes_is_ambiguous() {
        let clones = [machine("c0", UUID, OTHER, "n1", "10.0.0.1")];
        assert_eq!(
            reported(&[node("n1", UUID, ""), node("n2", UUID, "")], &clones[..1], &[]),
            [
                "n1 /DC0/vm/c0 by BIOS UUID: NodeAmbiguous node n1: its machine /DC0/vm/c0 also matches other nodes: n2",
                "n2 /DC0/vm/c0 by BIOS UUID: NodeAmbiguous node n2: its machine /DC0/vm/c0 also matches other nodes: n1"
            ]
        );
    }
}
