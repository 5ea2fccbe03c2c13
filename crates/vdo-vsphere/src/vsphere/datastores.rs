// SPDX-License-Identifier: Apache-2.0
//! Checks that named datastores and storage policies exist and are usable, and finds the datastores that all hosts of the nodes share.

use super::{Datastore, Inventory, Policy, Requirements};
use super::{Finding, NodeReport};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::Reason;
use vdo_api::types::distance;
use vdo_api::types::name_list;

/// The datastores that all hosts of the nodes of one topology segment reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SharedDatastores {
    /// The segment: pairs `category=tag`, separated by commas; empty without topology.
    pub segment: String,
    /// The hosts that the nodes run on, by name.
    pub hosts: Vec<String>,
    /// The names of the datastores that all these hosts reach, in order.
    pub datastores: Vec<String>,
    /// The host without which the other hosts would share a datastore, if `datastores` is empty and there is such a host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub emptied_by: String,
}

/// Something that is named and is not in this vCenter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingStorage {
    /// Its URL or name.
    pub name: String,
    /// The finding where it is nowhere else.
    pub finding: Finding,
}

/// What is named and is not here. Policies that could not be read are none that are missing.
#[must_use]
pub fn missing_storage(requirements: &Requirements, inventory: &Inventory, policies: Option<&[Policy]>) -> Vec<MissingStorage> {
    let here = |url: &str| inventory.datastores.iter().any(|datastore| same_url(&datastore.url, url));
    let datastores = requirements
        .datastores
        .iter()
        .filter(|wanted| !here(&wanted.url))
        .map(|wanted| MissingStorage {
            name: wanted.url.clone(),
            finding: no_datastore(&wanted.url, &wanted.named_in, &inventory.datastores),
        });
    let missing = requirements.policies.iter().filter_map(|wanted| {
        let policies = policies?;
        let here = policies.iter().any(|policy| policy.name == wanted.name);
        (!here).then(|| MissingStorage {
            name: wanted.name.clone(),
            finding: no_policy(&wanted.name, &wanted.named_in, policies),
        })
    });
    datastores.chain(missing).collect()
}

/// Holds the datastores and policies that are named against those that exist. What is not here may be in another vCenter that the
/// driver uses: whether it is, only all of them together can tell.
#[must_use]
pub fn storage_findings(requirements: &Requirements, inventory: &Inventory, policies: Option<&[Policy]>) -> Vec<Finding> {
    let unusable = requirements.datastores.iter().filter_map(|wanted| {
        let found = inventory.datastores.iter().find(|datastore| same_url(&datastore.url, &wanted.url));
        unusable(found?, wanted.vsan, &wanted.named_in)
    });
    let missing_storage = match requirements.others {
        0 => missing_storage(requirements, inventory, policies),
        _ => vec![],
    };
    missing_storage
        .into_iter()
        .map(|missing_storage| missing_storage.finding)
        .chain(unusable)
        .collect()
}

/// Whether two URLs name one datastore: the slash at the end is often left out.
pub(super) fn same_url(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

fn no_datastore(url: &str, named_in: &str, existing: &[Datastore]) -> Finding {
    let urls: Vec<&str> = existing.iter().map(|datastore| datastore.url.as_str()).collect();
    let remedy = "Copy the URL from the datastore's summary in vCenter (govc datastore.info NAME), or give the user the role Read-only on \
                  the datastore.";
    Finding::new(Reason::DatastoreNotFound, none("datastore", url, named_in, &urls), remedy)
}

fn no_policy(name: &str, named_in: &str, existing: &[Policy]) -> Finding {
    let names: Vec<&str> = existing.iter().map(|policy| policy.name.as_str()).collect();
    let remedy = "Correct the name, or give the user StorageProfile.View on the root folder.";
    Finding::new(
        Reason::StoragePolicyNotFound,
        none("storage policy", name, named_in, &names),
        remedy,
    )
}

fn none(what: &str, name: &str, named_in: &str, existing: &[&str]) -> String {
    format!(
        "{named_in} names {what} {name:?}, which does not exist; {}",
        hint(what, name, existing)
    )
}

fn unusable(datastore: &Datastore, vsan: bool, named_in: &str) -> Option<Finding> {
    let Datastore {
        path, kind, maintenance, ..
    } = datastore;
    if vsan && kind != "vsan" {
        return Some(Finding::new(
            Reason::DatastoreNotVsan,
            format!("{named_in} names datastore {path} for file volumes, but the type of this datastore is {kind}"),
            "Name a vSAN datastore with file service, or name no datastore to use all vSAN datastores.",
        ));
    }
    let because = if !datastore.accessible || datastore.hosts.is_empty() {
        "cannot be reached from any host".to_owned()
    } else if in_maintenance(datastore) {
        format!("is in maintenance mode ({maintenance})")
    } else {
        return None;
    };
    Some(Finding::new(
        Reason::DatastoreUnusable,
        format!("{named_in} names datastore {path}, which {because}"),
        "Mount the datastore on the hosts of the nodes, or end the maintenance mode of the datastore.",
    ))
}

fn in_maintenance(datastore: &Datastore) -> bool {
    !datastore.maintenance.is_empty() && datastore.maintenance != "normal"
}

/// What could have been meant, or what there is.
fn hint(what: &str, wanted: &str, existing: &[&str]) -> String {
    let bare = wanted.to_lowercase();
    let near: Vec<&str> = existing
        .iter()
        .filter(|name| distance(&name.to_lowercase(), &bare) <= 1 + bare.len() / 6)
        .copied()
        .collect();
    match (near.is_empty(), existing.is_empty()) {
        (false, _) => format!("did you mean {}?", name_list(&near)),
        (true, false) => format!("the user can see: {}", name_list(existing)),
        (true, true) => format!("the user can see no {what}"),
    }
}

/// The datastores that all hosts of the nodes reach, in each segment by itself. `segments` has the segment of each node, and
/// nothing of nodes without one.
#[must_use]
pub fn shared_datastores(inventory: &Inventory, nodes: &[NodeReport], segments: &BTreeMap<String, String>) -> Vec<SharedDatastores> {
    let mut hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in nodes {
        let Some(machine) = node.at.and_then(|at| inventory.machines.get(at)) else {
            continue;
        };
        if inventory.hosts.contains_key(&machine.host) {
            let segment = segments.get(&node.node).map_or("", String::as_str);
            hosts.entry(segment).or_default().insert(&machine.host);
        }
    }
    let usable: Vec<&Datastore> = inventory.datastores.iter().filter(|d| d.accessible && !in_maintenance(d)).collect();
    let name = |id: &str| inventory.hosts.get(id).map_or_else(|| id.to_owned(), |host| host.name.clone());
    hosts
        .into_iter()
        .map(|(segment, hosts)| {
            let shared = |without: Option<&str>| {
                let needed = |datastore: &&&Datastore| {
                    let others = hosts.iter().filter(|host| Some(**host) != without);
                    others.into_iter().all(|host| datastore.hosts.iter().any(|id| id == host))
                };
                usable
                    .iter()
                    .filter(needed)
                    .map(|datastore| datastore.name.clone())
                    .collect::<Vec<_>>()
            };
            let datastores = shared(None);
            let emptied_by = if datastores.is_empty() {
                let lonely = |host: &&&str| !shared(Some(**host)).is_empty();
                hosts.iter().find(lonely).map(|host| name(host)).unwrap_or_default()
            } else {
                String::new()
            };
            SharedDatastores {
                segment: segment.to_owned(),
                hosts: hosts.iter().map(|host| name(host)).collect(),
                datastores,
                emptied_by,
            }
        })
        .collect()
}

/// The names of the datastores that can be used, in order, and of the hosts that reach each.
#[must_use]
pub fn reached_datastores(inventory: &Inventory) -> Vec<(String, BTreeSet<String>)> {
    let usable = inventory.datastores.iter().filter(|one| one.accessible && !in_maintenance(one));
    let hosts = |datastore: &Datastore| {
        let known = datastore.hosts.iter().filter_map(|id| inventory.hosts.get(id));
        known.map(|host| host.name.clone()).collect()
    };
    usable.map(|datastore| (datastore.name.clone(), hosts(datastore))).collect()
}

/// The finding where there are none.
#[must_use]
pub fn no_shared_datastore(shared: &[SharedDatastores]) -> Option<Finding> {
    let empty = shared.iter().find(|one| one.datastores.is_empty())?;
    let of = match empty.segment.as_str() {
        "" => String::new(),
        segment => format!(" in {segment}"),
    };
    let culprit = match empty.emptied_by.as_str() {
        "" => format!(
            "leaving out a single host does not change this; the hosts are {}",
            name_list(&empty.hosts)
        ),
        host => format!("without host {host}, a datastore can be reached from all other hosts"),
    };
    let message = match empty.hosts.as_slice() {
        [host] => format!("no datastore can be reached from host {host}, the only host of the nodes{of}"),
        hosts => format!(
            "no datastore can be reached from all {} hosts of the nodes{of}; {culprit}",
            hosts.len()
        ),
    };
    Some(Finding::new(
        Reason::NoSharedDatastore,
        message,
        "Mount a datastore on all of these hosts, or set topologyCategories and tag the hosts that share a datastore.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::{Host, Machine, WantedDatastore, WantedPolicy};

    fn datastore(name: &str, kind: &str, hosts: &[&str]) -> Datastore {
        Datastore {
            id: name.into(),
            name: name.into(),
            path: format!("/DC0/datastore/{name}"),
            url: format!("ds:///vmfs/volumes/{name}/"),
            kind: kind.into(),
            accessible: true,
            maintenance: "normal".into(),
            capacity: None,
            free: None,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        }
    }

    fn reported(url: &str, vsan: bool, datastore: Datastore) -> String {
        let requirements = Requirements {
            datastores: vec![WantedDatastore {
                url: url.into(),
                named_in: "StorageClass fast".into(),
                vsan,
            }],
            ..Requirements::default()
        };
        let inventory = Inventory {
            datastores: vec![datastore],
            ..Inventory::default()
        };
        let findings = storage_findings(&requirements, &inventory, None);
        let several = Requirements { others: 1, ..requirements };
        assert!(
            storage_findings(&several, &inventory, None)
                .iter()
                .all(|f| f.reason != Reason::DatastoreNotFound)
        );
        findings
            .iter()
            .map(|f| format!("{} {}", f.reason, f.message))
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn datastore_check_unknown_url_suggests_existing() {
        let good = || datastore("vsan:52c1", "vsan", &["h1"]);
        let url = "ds:///vmfs/volumes/vsan:52c1/";
        assert_eq!(reported(url, true, good()), "");
        assert_eq!(reported(url.trim_end_matches('/'), false, good()), "");
        assert_eq!(
            reported("ds:///vmfs/volumes/vsan:52c2/", false, good()),
            "DatastoreNotFound StorageClass fast names datastore \"ds:///vmfs/volumes/vsan:52c2/\", which does not exist; did you \
             mean ds:///vmfs/volumes/vsan:52c1/?"
        );
        assert_eq!(
            reported("ds:///x", false, good()),
            "DatastoreNotFound StorageClass fast names datastore \"ds:///x\", which does not exist; the user can see: \
             ds:///vmfs/volumes/vsan:52c1/"
        );
    }

    #[test]
    fn datastore_check_unusable_datastore_is_reported() {
        let good = || datastore("vsan:52c1", "vsan", &["h1"]);
        let url = "ds:///vmfs/volumes/vsan:52c1/";
        let (mut local, mut lonely, mut off, mut busy) = (good(), good(), good(), good());
        local.kind = "VMFS".into();
        lonely.hosts.clear();
        off.accessible = false;
        busy.maintenance = "enteringMaintenance".into();
        for (datastore, vsan, expected) in [
            (local.clone(), false, ""),
            (
                local,
                true,
                "DatastoreNotVsan StorageClass fast names datastore /DC0/datastore/vsan:52c1 for file volumes, but the type of this \
                 datastore is VMFS",
            ),
            (
                lonely,
                false,
                "DatastoreUnusable StorageClass fast names datastore /DC0/datastore/vsan:52c1, which cannot be reached from any host",
            ),
            (
                off,
                false,
                "DatastoreUnusable StorageClass fast names datastore /DC0/datastore/vsan:52c1, which cannot be reached from any host",
            ),
            (
                busy,
                false,
                "DatastoreUnusable StorageClass fast names datastore /DC0/datastore/vsan:52c1, which is in maintenance mode \
                 (enteringMaintenance)",
            ),
        ] {
            assert_eq!(reported(url, vsan, datastore), expected);
        }
    }

    #[test]
    fn storage_policy_check_unknown_name_suggests_existing() {
        let requirements = Requirements {
            policies: vec![WantedPolicy {
                name: "Gold".into(),
                named_in: "StorageClass fast".into(),
            }],
            ..Requirements::default()
        };
        let reported = |policies: Option<&[&str]>| {
            let policies: Option<Vec<Policy>> = policies.map(|names| {
                let policy = |name: &&str| Policy {
                    name: (*name).into(),
                    encrypts: false,
                };
                names.iter().map(policy).collect()
            });
            let findings = storage_findings(&requirements, &Inventory::default(), policies.as_deref());
            findings.first().map(|f| format!("{} {}", f.reason, f.message)).unwrap_or_default()
        };
        assert_eq!(reported(Some(&["Silver", "Gold"])), "");
        assert_eq!(reported(None), "", "what could not be read is not missing");
        let start = "StoragePolicyNotFound StorageClass fast names storage policy \"Gold\", which does not exist; ";
        assert_eq!(reported(Some(&["gold", "Silver"])), format!("{start}did you mean gold?"));
        assert_eq!(reported(Some(&["Silver"])), format!("{start}the user can see: Silver"));
        assert_eq!(reported(Some(&[])), format!("{start}the user can see no storage policy"));
    }

    fn shared(datastores: Vec<Datastore>, hosts: &[&str], segments: &[(&str, &str)]) -> Vec<SharedDatastores> {
        let machine = |host: &&str| Machine {
            host: (*host).to_owned(),
            ..Machine::default()
        };
        let inventory = Inventory {
            machines: hosts.iter().map(machine).collect(),
            hosts: hosts
                .iter()
                .map(|id| {
                    let host = Host {
                        name: format!("esx-{id}"),
                        ..Host::default()
                    };
                    ((*id).to_owned(), host)
                })
                .collect(),
            datastores,
            ..Inventory::default()
        };
        let nodes: Vec<NodeReport> = (0..hosts.len())
            .map(|at| NodeReport {
                node: format!("n{at}"),
                at: Some(at),
                ..NodeReport::default()
            })
            .collect();
        let segments = segments
            .iter()
            .map(|(node, segment)| ((*node).to_owned(), (*segment).to_owned()))
            .collect();
        shared_datastores(&inventory, &nodes, &segments)
    }

    #[test]
    fn shared_datastores_reached_by_all_hosts_are_listed() {
        let both = || datastore("both", "VMFS", &["1", "2"]);
        let all = shared(vec![both(), datastore("one", "VMFS", &["1"])], &["1", "2", "2"], &[]);
        assert_eq!(
            (all.len(), &all[0].hosts, &all[0].datastores),
            (1, &vec!["esx-1".to_owned(), "esx-2".into()], &vec!["both".to_owned()])
        );
        assert_eq!(no_shared_datastore(&all), None);
    }

    #[test]
    fn shared_datastores_one_host_apart_is_named() {
        let both = || datastore("both", "VMFS", &["1", "2"]);
        let third = shared(vec![both()], &["1", "2", "3"], &[]);
        assert_eq!((third[0].datastores.len(), third[0].emptied_by.as_str()), (0, "esx-3"));
        let message = no_shared_datastore(&third).expect("a finding").message;
        assert_eq!(
            message,
            "no datastore can be reached from all 3 hosts of the nodes; without host esx-3, a datastore can be reached from all other hosts"
        );
    }

    #[test]
    fn shared_datastores_none_names_all_hosts() {
        let each = |host: &str| datastore(&format!("local-{host}"), "VMFS", &[host]);
        let apart = shared(vec![each("1"), each("2"), each("3")], &["1", "2", "3"], &[]);
        assert_eq!(apart[0].emptied_by, "");
        assert!(no_shared_datastore(&apart).is_some_and(|f| {
            f.message
                .ends_with("leaving out a single host does not change this; the hosts are esx-1, esx-2, esx-3")
        }));
    }

    #[test]
    fn shared_datastores_with_zones_are_listed_per_segment() {
        let each = |host: &str| datastore(&format!("local-{host}"), "VMFS", &[host]);
        // A segment each, and everything is as it should be.
        let zones = shared(vec![each("1"), each("2")], &["1", "2"], &[("n0", "zone=a"), ("n1", "zone=b")]);
        assert_eq!(
            zones
                .iter()
                .map(|z| (z.segment.as_str(), z.datastores[0].as_str()))
                .collect::<Vec<_>>(),
            [("zone=a", "local-1"), ("zone=b", "local-2")]
        );
    }

    #[test]
    fn shared_datastores_in_maintenance_are_excluded() {
        let both = || datastore("both", "VMFS", &["1", "2"]);
        let mut closed = both();
        closed.maintenance = "inMaintenance".into();
        assert_eq!(shared(vec![closed], &["1"], &[])[0].datastores, [] as [String; 0]);
    }

    #[test]
    fn shared_datastores_without_nodes_is_empty() {
        assert_eq!(shared(vec![], &[], &[]), []);
    }
}
