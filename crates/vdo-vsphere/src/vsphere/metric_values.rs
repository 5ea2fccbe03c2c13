// SPDX-License-Identifier: Apache-2.0
//! Computes the numbers for the Prometheus series of a vCenter: nodes by state and hardware, ESXi versions, free space, volumes.
//!
//! A text of a vCenter is used only if it has the form of a version, and each list has a limit: every text is a label of a series.

use super::{Datastore, Inspection, LoginOutcome, NodeReport, Readings};
use std::collections::{BTreeMap, BTreeSet};

/// Different versions, or datastores, that have a series each.
const MOST: usize = 100;

/// What stands for words beyond the bound, or of another form.
const OTHER: &str = "other";

/// The numbers of one vCenter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Nodes by the power state of their machine; `notFound` and `ambiguous` where there is not exactly one.
    pub nodes: BTreeMap<String, u64>,
    /// Nodes by the hardware version of their machine, such as `vmx-19`.
    pub hardware: BTreeMap<String, u64>,
    /// Hosts that these machines run on, by the version of ESXi.
    pub hosts: BTreeMap<String, u64>,
    /// Datastores that one of these hosts reaches: capacity and free space in bytes, by inventory path.
    pub datastores: BTreeMap<String, (u64, u64)>,
    /// Registered volumes of the cluster by kind: `block`, `file`; `None` where they could not be counted.
    pub volumes: Option<BTreeMap<String, u64>>,
}

/// The numbers that an inspection has read; `None` where it read nothing.
#[must_use]
pub fn figures(inspection: &Inspection) -> Option<Figures> {
    match &inspection.login {
        LoginOutcome::Succeeded(readings) => Some(of(readings)),
        _ => None,
    }
}

fn of(readings: &Readings) -> Figures {
    let inventory = &readings.inventory;
    let machines = || readings.nodes.iter().filter_map(|node| inventory.machines.get(node.at?));
    let hosts: BTreeSet<&str> = machines()
        .map(|machine| machine.host.as_str())
        .filter(|id| !id.is_empty())
        .collect();
    let reached = |datastore: &&Datastore| datastore.hosts.iter().any(|host| hosts.contains(host.as_str()));
    let space = |datastore: &Datastore| Some((datastore.path.clone(), (datastore.capacity?, datastore.free?)));
    let versions = hosts
        .iter()
        .filter_map(|id| inventory.hosts.get(*id))
        .map(|host| host.version.as_str());
    Figures {
        nodes: counted(readings.nodes.iter().map(state)),
        hardware: counted(machines().map(|machine| version(&machine.hardware))),
        hosts: counted(versions.map(version)),
        datastores: inventory.datastores.iter().filter(reached).filter_map(space).take(MOST).collect(),
        volumes: readings
            .volume_kinds
            .as_ref()
            .and_then(|kinds| kinds.as_ref().ok())
            .map(|kinds| kinds.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()),
    }
}

/// The power states of vSphere are a closed list.
fn state(node: &NodeReport) -> &str {
    match (node.is_found(), node.candidates.is_empty(), node.power.as_str()) {
        (true, _, state @ ("poweredOn" | "poweredOff" | "suspended")) => state,
        (true, ..) => "unknown",
        (false, true, _) => "notFound",
        (false, false, _) => "ambiguous",
    }
}

/// A text that has the form of a version: `vmx-19`, `8.0.3`.
fn version(text: &str) -> &str {
    let number = text.strip_prefix("vmx-").unwrap_or(text);
    let is_number = |part: &str| (1..=6).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        "" => "unknown",
        _ if number.split('.').count() <= 4 && number.split('.').all(is_number) => text,
        _ => OTHER,
    }
}

fn counted<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for word in words {
        let word = if all.len() < MOST || all.contains_key(word) { word } else { OTHER };
        *all.entry(word.to_owned()).or_default() += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::{Granted, Host, Inventory, Machine, SessionError, Tagging};

    fn readings() -> Readings {
        let host = |version: &str| Host {
            version: version.into(),
            ..Host::default()
        };
        let machine = |host: &str, hardware: &str| Machine {
            host: host.into(),
            hardware: hardware.into(),
            ..Machine::default()
        };
        let datastore = |name: &str, hosts: &[&str], space: Option<(u64, u64)>| Datastore {
            path: format!("/DC0/datastore/{name}"),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            capacity: space.map(|space| space.0),
            free: space.map(|space| space.1),
            ..Datastore::default()
        };
        let node = |at: Option<usize>, power: &str, candidates: &[&str]| NodeReport {
            at,
            power: power.into(),
            candidates: candidates.iter().map(|path| (*path).to_owned()).collect(),
            ..NodeReport::default()
        };
        Readings {
            inventory: Inventory {
                machines: vec![machine("h1", "vmx-19"), machine("h1", "vmx-19"), machine("h2", "made\"up")],
                hosts: [("h1", "8.0.3"), ("h2", ""), ("h3", "7.0.3")]
                    .map(|(id, version)| (id.to_owned(), host(version)))
                    .into(),
                datastores: vec![
                    datastore("fast", &["h1"], Some((100, 40))),
                    datastore("far", &["h3"], Some((9, 9))),
                    datastore("unsaid", &["h2"], None),
                ],
                ..Inventory::default()
            },
            nodes: vec![
                node(Some(0), "poweredOn", &[]),
                node(Some(1), "poweredOn", &[]),
                node(Some(2), "melting", &[]),
                node(None, "", &[]),
                node(None, "", &["/DC0/vm/a", "/DC0/vm/b"]),
            ],
            policies: Ok(Vec::new()),
            file_service: None,
            required_privileges: Vec::new(),
            granted: Ok(Granted::default()),
            tagging: Ok(Tagging::default()),
            volumes: None,
            volume_kinds: Some(Ok([("block", 7), ("file", 1)].into())),
        }
    }

    fn table(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
    }

    #[test]
    fn figures_count_what_the_nodes_use() {
        let found = of(&readings());
        let expected = Figures {
            nodes: table(&[("ambiguous", 1), ("notFound", 1), ("poweredOn", 2), ("unknown", 1)]),
            hardware: table(&[("other", 1), ("vmx-19", 2)]),
            hosts: table(&[("8.0.3", 1), ("unknown", 1)]),
            datastores: [("/DC0/datastore/fast".to_owned(), (100, 40))].into(),
            volumes: Some(table(&[("block", 7), ("file", 1)])),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn figures_without_an_answer_about_volumes_have_none() {
        let forbidden = SessionError::Forbidden {
            address: "vc:443".into(),
            user: "u".into(),
            method: "CnsQueryAllVolume",
        };
        for kinds in [None, Some(Err(forbidden))] {
            let readings = Readings {
                volume_kinds: kinds,
                ..readings()
            };
            assert_eq!(of(&readings).volumes, None);
        }
    }

    #[test]
    fn figures_words_of_a_vcenter_are_bounded() {
        for (text, expected) in [
            ("8.0.3", "8.0.3"),
            ("vmx-21", "vmx-21"),
            ("", "unknown"),
            ("8.0.3\" x", "other"),
            ("1.2.3.4.5", "other"),
            ("12345678", "other"),
            ("8..0", "other"),
        ] {
            assert_eq!(version(text), expected, "{text:?}");
        }
        let many: Vec<String> = (0..1000).map(|at| format!("8.0.{at}")).collect();
        let all = counted(many.iter().map(String::as_str));
        assert_eq!((all.len(), all[OTHER]), (MOST + 1, 1000 - MOST as u64));
    }
}
