use crate::api::{MachineStatus, MachinesStatus};
use crate::facts::{Machine, Node};
use std::collections::BTreeMap;

/// As many nodes as a status has room for.
const SHOWN: usize = 100;

/// Candidates that are named.
const CANDIDATES: usize = 5;

/// The oldest hardware version that the CSI driver works with.
const HARDWARE: u32 = 15;

/// What was found of the nodes in one vCenter.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Nodes that are exactly one machine.
    pub found: usize,
    /// Nodes that are none.
    pub missing: Vec<String>,
    /// Nodes that cannot be told apart, or of which the machine cannot.
    pub ambiguous: Vec<String>,
}

/// Finds the machine of each node: by BIOS UUID in both orders of its bytes, by instance UUID, by name, by address, in this
/// order. Where several fit, none is chosen. A datacenter list that is not empty leaves the machines of others out.
#[must_use]
pub fn match_machines(nodes: &[Node], machines: &[Machine], datacenters: &[String]) -> (Matches, MachinesStatus) {
    let wanted = |machine: &&Machine| {
        datacenters.is_empty() || machine.datacenter.is_empty() || datacenters.iter().any(|name| is_in(&machine.datacenter, name))
    };
    let machines: Vec<&Machine> = machines.iter().filter(wanted).collect();
    let keys = Keys::of(&machines);
    let found: Vec<(&Node, &str, Vec<usize>)> = nodes
        .iter()
        .map(|node| {
            let (by, candidates) = keys.candidates(node);
            (node, by, candidates)
        })
        .collect();
    let mut owners: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (node, _, candidates) in &found {
        if let [one] = candidates.as_slice() {
            owners.entry(*one).or_default().push(&node.name);
        }
    }
    let mut matches = Matches::default();
    let mut list = Vec::new();
    for (node, by, candidates) in found {
        let mut status = MachineStatus {
            node: node.name.clone(),
            by: by.to_owned(),
            ..MachineStatus::default()
        };
        match candidates.as_slice() {
            [] => {
                matches.missing.push(node.name.clone());
                status.problems.push("no virtual machine has its UUID, name or address".into());
            }
            [one] => {
                let rivals: Vec<&str> = owners[one].iter().filter(|name| **name != node.name).copied().collect();
                let machine = machines[*one];
                status.machine.clone_from(&machine.path);
                status.hardware.clone_from(&machine.hardware);
                if rivals.is_empty() {
                    matches.found += 1;
                    status.problems = problems(machine);
                } else {
                    matches.ambiguous.push(node.name.clone());
                    status.problems.push(format!("the machine fits other nodes too: {}", some(&rivals)));
                }
            }
            many => {
                matches.ambiguous.push(node.name.clone());
                let paths: Vec<&str> = many.iter().map(|i| machines[*i].path.as_str()).collect();
                status.problems.push(format!("several virtual machines fit: {}", some(&paths)));
            }
        }
        list.push(status);
    }
    list.sort_by(|a, b| (a.problems.is_empty(), &a.node).cmp(&(b.problems.is_empty(), &b.node)));
    list.truncate(SHOWN);
    let status = MachinesStatus {
        nodes: i32::try_from(nodes.len()).unwrap_or(i32::MAX),
        found: i32::try_from(matches.found).unwrap_or(i32::MAX),
        list,
    };
    (matches, status)
}

fn is_in(path: &str, name: &str) -> bool {
    let bare = name.trim_matches('/');
    name.starts_with("Datacenter:") || path.trim_matches('/') == bare || (!name.contains('/') && path.rsplit('/').next() == Some(bare))
}

/// What keeps the drivers from working on a machine.
fn problems(machine: &Machine) -> Vec<String> {
    let mut all = Vec::new();
    if machine.power != "poweredOn" {
        all.push(format!("it is {}", machine.power));
    }
    let hardware = machine
        .hardware
        .strip_prefix("vmx-")
        .and_then(|version| version.parse::<u32>().ok());
    if hardware.is_some_and(|version| version < HARDWARE) {
        all.push(format!(
            "its hardware version is {}; the CSI driver needs vmx-{HARDWARE}",
            machine.hardware
        ));
    }
    // Where it was never set, the firmware's default counts, and that cannot be seen.
    if machine.disk_uuid == Some(false) {
        all.push("disk.EnableUUID is FALSE; set it to TRUE while the machine is off".into());
    }
    if !machine.tools_running {
        all.push("VMware Tools do not run in it".into());
    } else if machine.host_name.is_empty() || machine.addresses.is_empty() {
        all.push("VMware Tools report no host name or no address".into());
    }
    all
}

fn some(names: &[&str]) -> String {
    let more = names.len().saturating_sub(CANDIDATES);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names[..names.len() - more].join(", ") + &rest
}

/// The machines by what they can be found by.
struct Keys {
    bios: BTreeMap<String, Vec<usize>>,
    instance: BTreeMap<String, Vec<usize>>,
    name: BTreeMap<String, Vec<usize>>,
    address: BTreeMap<String, Vec<usize>>,
}

impl Keys {
    fn of(machines: &[&Machine]) -> Self {
        let index = |keys: &dyn Fn(&Machine) -> Vec<String>| {
            let mut map: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (i, machine) in machines.iter().enumerate() {
                for key in keys(machine).into_iter().filter(|key| !key.is_empty()) {
                    map.entry(key).or_default().push(i);
                }
            }
            map
        };
        Self {
            bios: index(&|m| vec![m.uuid.trim().to_lowercase()]),
            instance: index(&|m| vec![m.instance_uuid.trim().to_lowercase()]),
            name: index(&|m| vec![m.host_name.to_lowercase()]),
            address: index(&|m| m.addresses.clone()),
        }
    }

    fn candidates(&self, node: &Node) -> (&'static str, Vec<usize>) {
        let uuid = node.system_uuid.trim().to_lowercase();
        let swapped = swapped(&uuid);
        for (by, map, keys) in [
            ("BIOS UUID", &self.bios, vec![uuid.clone(), swapped.clone()]),
            ("instance UUID", &self.instance, vec![uuid, swapped]),
            ("name", &self.name, vec![node.name.to_lowercase()]),
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

    const UUID: &str = "56492e42-22ad-3911-6d72-59cc8f26bc90";
    const OTHER: &str = "11111111-2222-3333-4444-555555555555";

    fn node(name: &str, uuid: &str, address: &str) -> Node {
        Node {
            name: name.into(),
            system_uuid: uuid.into(),
            addresses: vec![address.into()],
            ..Node::default()
        }
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
            addresses: vec![address.into()],
            tools_running: true,
            power: "poweredOn".into(),
        }
    }

    fn told(nodes: &[Node], machines: &[Machine], datacenters: &[&str]) -> Vec<String> {
        let datacenters: Vec<String> = datacenters.iter().map(|d| (*d).to_owned()).collect();
        let (matches, status) = match_machines(nodes, machines, &datacenters);
        assert_eq!(matches.found + matches.missing.len() + matches.ambiguous.len(), nodes.len());
        let line = |m: &MachineStatus| format!("{} {} by {}: {}", m.node, m.machine, m.by, m.problems.join("; "));
        status.list.iter().map(line).collect()
    }

    #[test]
    fn the_order_of_what_counts() {
        assert_eq!(swapped(UUID), "422e4956-ad22-1139-6d72-59cc8f26bc90");
        for bad in ["", "x", "56492e4222ad39116d7259cc8f26bc90", "é6492e4-22ad-3911-6d72-59cc8f26bc90"] {
            assert_eq!(swapped(bad), "");
        }
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
            assert_eq!(told(&one, &machines, &[]), [expected]);
        }
        let machines = [machine("m", "", "", "other", "10.0.0.1")];
        assert_eq!(told(&one, &machines, &[]), ["n1 /DC0/vm/m by address: "]);
        assert_eq!(told(&one, &machines, &["DC0"]), ["n1 /DC0/vm/m by address: "]);
        let none = ["n1  by : no virtual machine has its UUID, name or address"];
        assert_eq!(told(&one, &machines, &["/Europe/DC0"]), none);
        assert_eq!(told(&one, &[], &[]), none);
        // What is not known fits nobody: an empty UUID, name or address is no key.
        assert_eq!(told(&[node("n1", "", "")], &[machine("m", "", "", "", "")], &[]), none);
    }

    #[test]
    fn nothing_is_guessed() {
        let clones: Vec<Machine> = (0..7).map(|i| machine(&format!("c{i}"), UUID, OTHER, "n1", "10.0.0.1")).collect();
        assert_eq!(
            told(&[node("n1", UUID, "10.0.0.1")], &clones, &[]),
            ["n1  by BIOS UUID: several virtual machines fit: /DC0/vm/c0, /DC0/vm/c1, /DC0/vm/c2, /DC0/vm/c3, /DC0/vm/c4 and 2 more"]
        );
        assert_eq!(
            told(&[node("n1", UUID, ""), node("n2", UUID, "")], &clones[..1], &[]),
            [
                "n1 /DC0/vm/c0 by BIOS UUID: the machine fits other nodes too: n2",
                "n2 /DC0/vm/c0 by BIOS UUID: the machine fits other nodes too: n1"
            ]
        );
    }

    #[test]
    fn what_a_machine_lacks() {
        let good = machine("m", UUID, "", "n1", "10.0.0.1");
        for (change, expected) in [
            (
                Machine {
                    power: "poweredOff".into(),
                    ..good.clone()
                },
                "it is poweredOff",
            ),
            (
                Machine {
                    hardware: "vmx-13".into(),
                    ..good.clone()
                },
                "its hardware version is vmx-13; the CSI driver needs vmx-15",
            ),
            (
                Machine {
                    hardware: "vmx-99x".into(),
                    ..good.clone()
                },
                "",
            ),
            (
                Machine {
                    disk_uuid: None,
                    ..good.clone()
                },
                "",
            ),
            (
                Machine {
                    disk_uuid: Some(false),
                    ..good.clone()
                },
                "disk.EnableUUID is FALSE; set it to TRUE while the machine is off",
            ),
            (
                Machine {
                    tools_running: false,
                    ..good.clone()
                },
                "VMware Tools do not run in it",
            ),
            (
                Machine {
                    host_name: String::new(),
                    ..good.clone()
                },
                "VMware Tools report no host name or no address",
            ),
        ] {
            let (matches, status) = match_machines(&[node("n1", UUID, "")], &[change], &[]);
            assert_eq!((matches.found, status.list[0].problems.join("; ")), (1, expected.to_owned()));
        }
    }

    /// Problems come first, and a status has an end.
    #[test]
    fn a_large_cluster() {
        let uuid = |i: usize| format!("{i:08x}-0000-0000-0000-000000000000");
        let nodes: Vec<Node> = (0..5000).map(|i| node(&format!("n{i}"), &uuid(i), "")).collect();
        let machines: Vec<Machine> = (0..4999).map(|i| machine(&format!("m{i}"), &uuid(i), "", "", "")).collect();
        let (matches, status) = match_machines(&nodes, &machines, &[]);
        assert_eq!(matches.missing, ["n4999"]);
        assert_eq!((status.nodes, status.list.len()), (5000, SHOWN));
        assert!(!status.list[0].problems.is_empty());
        assert!(serde_json::to_string(&status).expect("JSON").len() < 64 << 10);
    }
}
