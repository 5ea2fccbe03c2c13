// SPDX-License-Identifier: Apache-2.0
//! Computes the permissions that a driver's account needs: one for each object, or one on a folder that has only nodes of the cluster.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::Remedy;
use vdo_vsphere::vsphere::{Inventory, ManagedObject, NodeReport, RequiredPrivilege};

/// What an account has to get on an object.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Grant {
    /// The object.
    pub object: ManagedObject,
    /// Its inventory path.
    pub path: String,
    /// The privileges without those that every role has; none of them is Read-only.
    pub privileges: BTreeSet<String>,
    /// Whether it holds for everything below the object.
    pub propagate: bool,
}

/// The administrator cannot see what the account needs a permission on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this administrator cannot see {kind} {path}, but the drivers need a permission on it")]
pub struct GrantError {
    kind: String,
    path: String,
}

impl Remedy for GrantError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Log in as a user with the role Administrator on the root folder, with propagation.".into())
    }
}

/// The privileges that every role has.
pub(super) const OF_EVERY_ROLE: [&str; 3] = ["System.Anonymous", "System.Read", "System.View"];

/// Whether every role has a privilege.
pub fn is_of_every_role(privilege: &str) -> bool {
    OF_EVERY_ROLE.contains(&privilege)
}

/// The permissions that give what is required: one for each object, and one on a folder where every machine below it is a node of this
/// cluster. `datastores` limits those of which one would be enough to these identifiers; without any, each gets one.
///
/// # Errors
/// When an object cannot be seen.
pub fn grants(
    required: &[RequiredPrivilege],
    inventory: &Inventory,
    nodes: &[NodeReport],
    datastores: &BTreeSet<String>,
) -> Result<Vec<Grant>, GrantError> {
    let folders = own_folders(inventory, nodes);
    let mut all: BTreeMap<(bool, ManagedObject), Grant> = BTreeMap::new();
    for one in required.iter().filter(|one| is_wanted(one, datastores)) {
        if one.unseen {
            let (kind, path) = (one.object.kind.clone(), one.path.clone());
            return Err(GrantError { kind, path });
        }
        let folder = folders.get(one.object.id.as_str()).filter(|_| one.object.kind == "VirtualMachine");
        let (object, path) = match folder.and_then(|id| inventory.places.get(*id)) {
            Some(folder) => (&folder.object, &folder.path),
            None => (&one.object, &one.path),
        };
        let grant = all.entry((folder.is_none(), object.clone())).or_insert_with(|| Grant {
            object: object.clone(),
            path: path.clone(),
            privileges: BTreeSet::new(),
            propagate: folder.is_some(),
        });
        if !is_of_every_role(&one.privilege) {
            grant.privileges.insert(one.privilege.clone());
        }
    }
    // An account has one permission on an object, and one on an object below hides what it inherits there: a folder that passes its
    // permission on needs no other one, nor do those inside it.
    let wide: BTreeMap<ManagedObject, BTreeSet<String>> = all
        .values()
        .filter(|grant| grant.propagate)
        .map(|grant| (grant.object.clone(), grant.privileges.clone()))
        .collect();
    let hidden = |grant: &Grant| {
        let way = inventory.ancestry(&grant.object.id);
        let above =
            |object: &ManagedObject, given: &BTreeSet<String>| way.contains(&object.id.as_str()) && given.is_superset(&grant.privileges);
        !grant.propagate && wide.iter().any(|(object, given)| above(object, given))
    };
    Ok(all.into_values().filter(|grant| !hidden(grant)).collect())
}

fn is_wanted(one: &RequiredPrivilege, datastores: &BTreeSet<String>) -> bool {
    let chosen = datastores.is_empty() || datastores.contains(&one.object.id);
    one.choice.is_none() || one.object.kind != "Datastore" || chosen
}

/// Whether these grants give a privilege on an object, on itself or from above. `way` is the object and what it lies in.
#[must_use]
pub fn is_covered(grants: &[Grant], way: &[&str], privilege: &str) -> bool {
    let object = way.first().copied().unwrap_or_default();
    let reaches = |grant: &&Grant| grant.object.id == object || (grant.propagate && way.contains(&grant.object.id.as_str()));
    let mut reaching = grants.iter().filter(reaches);
    reaching.any(|grant| is_of_every_role(privilege) || grant.privileges.contains(privilege))
}

/// For each machine of a node the topmost folder above it in which every machine is one of a node, and at least two are. The folder of all
/// machines of a datacenter is none: what is made there later belongs to anyone.
fn own_folders<'a>(inventory: &'a Inventory, nodes: &[NodeReport]) -> BTreeMap<&'a str, &'a str> {
    let of_nodes: BTreeSet<usize> = nodes.iter().filter_map(|node| node.at).collect();
    let mut counted: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (at, machine) in inventory.machines.iter().enumerate() {
        for id in inventory.ancestry(&machine.folder) {
            let (all, own) = counted.entry(id).or_default();
            *all += 1;
            *own += usize::from(of_nodes.contains(&at));
        }
    }
    for folder in &inventory.template_folders {
        for id in inventory.ancestry(folder) {
            counted.entry(id).or_default().0 += 1;
        }
    }
    let is_own = |id: &&str| {
        let Some(place) = inventory.places.get(*id).filter(|place| place.object.kind == "Folder") else {
            return false;
        };
        let top = inventory
            .places
            .get(&place.parent)
            .is_none_or(|parent| parent.object.kind == "Datacenter");
        !top && counted.get(id).is_some_and(|(all, own)| all == own && *own > 1)
    };
    let topmost = |at: &usize| {
        let machine = inventory.machines.get(*at)?;
        let folder = inventory.ancestry(&machine.folder).into_iter().rfind(is_own)?;
        Some((machine.id.as_str(), folder))
    };
    of_nodes.iter().filter_map(topmost).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use vdo_vsphere::vsphere::{Entity, Feature, Machine, Requirements, required_privileges};

    /// A datacenter with a cluster of one host, a datastore, machines in folders; the first so many machines are nodes.
    pub(in crate::accounts) fn site(folders: &[&str], nodes: usize) -> (Inventory, Vec<NodeReport>) {
        let object = |kind: &str, id: &str| ManagedObject {
            kind: kind.into(),
            id: id.into(),
        };
        let place = |kind: &str, id: &str, path: &str, parent: &str| {
            let place = Entity {
                object: object(kind, id),
                path: path.into(),
                parent: parent.into(),
            };
            (id.to_owned(), place)
        };
        let machine = |(at, folder): (usize, &&str)| Machine {
            id: format!("vm-{at}"),
            path: format!("/DC0/vm/{folder}/n{at}"),
            folder: (*folder).into(),
            host: "host".into(),
            ..Machine::default()
        };
        let inventory = Inventory {
            root: object("Folder", "root"),
            datacenters: vec!["/DC0".into()],
            machines: folders.iter().enumerate().map(machine).collect(),
            hosts: [("host".to_owned(), vdo_vsphere::vsphere::Host::default())].into(),
            datastores: vec![vdo_vsphere::vsphere::Datastore {
                id: "ds".into(),
                path: "/DC0/datastore/ds".into(),
                url: "ds:///ds/".into(),
                hosts: vec!["host".into()],
                ..vdo_vsphere::vsphere::Datastore::default()
            }],
            places: [
                place("Datacenter", "dc", "/DC0", "root"),
                place("Folder", "vm", "/DC0/vm", "dc"),
                place("Folder", "k8s", "/DC0/vm/k8s", "vm"),
                place("Folder", "workers", "/DC0/vm/k8s/workers", "k8s"),
                place("Folder", "hosts", "/DC0/host", "dc"),
                place("ClusterComputeResource", "cluster", "/DC0/host/C0", "hosts"),
                place("HostSystem", "host", "/DC0/host/C0/h", "cluster"),
            ]
            .into(),
            ..Inventory::default()
        };
        let reports = (0..nodes).map(|at| NodeReport {
            node: format!("n{at}"),
            at: Some(at),
            ..NodeReport::default()
        });
        (inventory, reports.collect())
    }

    pub(in crate::accounts) fn required(features: &[Feature], site: &(Inventory, Vec<NodeReport>)) -> Vec<RequiredPrivilege> {
        let requirements = Requirements {
            features: features.iter().copied().collect(),
            ..Requirements::default()
        };
        required_privileges(&requirements, false, (&site.0, &site.1), None)
    }

    fn shown(features: &[Feature], folders: &[&str], nodes: usize, change: impl FnOnce(&mut Inventory)) -> Vec<String> {
        let mut site = site(folders, nodes);
        change(&mut site.0);
        let granted = grants(&required(features, &site), &site.0, &site.1, &BTreeSet::new()).expect("grants");
        let line = |grant: &Grant| {
            let privileges: Vec<&str> = grant
                .privileges
                .iter()
                .map(|one| one.rsplit('.').next().unwrap_or_default())
                .collect();
            format!(
                "{}{} {}",
                grant.path,
                if grant.propagate { " and below" } else { "" },
                privileges.join(",")
            )
        };
        let mut all: Vec<String> = granted.iter().map(line).collect();
        all.sort();
        all
    }

    /// What the documents of the drivers list, on these objects and on no others; what a driver needs twice is one permission.
    #[test]
    fn grants_are_one_for_each_object_that_needs_something() {
        assert_eq!(
            shown(&[Feature::Block], &["vm", "vm"], 1, |_| ()),
            [
                "/ Searchable,View",
                "/DC0 ",
                "/DC0/datastore/ds FileManagement",
                "/DC0/host/C0/h ",
                "/DC0/vm/vm/n0 AddExistingDisk,AddRemoveDevice"
            ]
        );
        assert_eq!(
            shown(&[Feature::CloudProvider], &["k8s", "vm"], 1, |_| ()),
            ["/ ", "/DC0 ", "/DC0/host/C0/h ", "/DC0/vm ", "/DC0/vm/k8s ", "/DC0/vm/k8s/n0 "]
        );
        assert_eq!(
            shown(&[Feature::Topology], &["vm"], 1, |_| ()),
            ["/ ", "/DC0 ", "/DC0/host ", "/DC0/host/C0 ", "/DC0/host/C0/h "]
        );
        assert_eq!(shown(&[], &["vm"], 1, |_| ()), [] as [String; 0]);
    }

    /// A folder passes the permission on only where all of its machines are nodes; templates count, the folder of all machines never does.
    #[test]
    fn grants_use_a_folder_of_the_cluster_alone() {
        let machines = |folders: &[&str], nodes, change: fn(&mut Inventory)| {
            let all = shown(&[Feature::Block], folders, nodes, change);
            all.into_iter().filter(|line| line.contains("/vm/")).collect::<Vec<_>>()
        };
        let k8s = "/DC0/vm/k8s and below AddExistingDisk,AddRemoveDevice";
        assert_eq!(machines(&["k8s", "k8s", "vm"], 2, |_| ()), [k8s]);
        assert_eq!(machines(&["k8s", "workers", "vm"], 2, |_| ()), [k8s]);
        let workers = "/DC0/vm/k8s/workers and below AddExistingDisk,AddRemoveDevice";
        assert_eq!(machines(&["workers", "workers", "k8s"], 2, |_| ()), [workers]);
        assert_eq!(machines(&["vm", "vm"], 2, |_| ()).len(), 2, "all machines of a datacenter");
        assert_eq!(machines(&["k8s", "vm"], 1, |_| ()).len(), 1);
        assert!(
            machines(&["k8s", "vm"], 1, |_| ())[0].starts_with("/DC0/vm/k8s/n0 "),
            "one machine needs no folder"
        );
        let template = |inventory: &mut Inventory| _ = inventory.template_folders.insert("k8s".into());
        assert_eq!(machines(&["k8s", "k8s", "vm"], 2, template).len(), 2, "a template is not a node");
    }

    /// A permission inside the folder would hide the one that it passes on.
    #[test]
    fn grants_inside_an_own_folder_are_left_out() {
        assert_eq!(
            shown(&[Feature::Block, Feature::CloudProvider], &["workers", "workers", "vm"], 2, |i| i
                .machines[1]
                .folder =
                "k8s".into()),
            [
                "/ Searchable,View",
                "/DC0 ",
                "/DC0/datastore/ds FileManagement",
                "/DC0/host/C0/h ",
                "/DC0/vm ",
                "/DC0/vm/k8s and below AddExistingDisk,AddRemoveDevice"
            ]
        );
    }

    /// For any set of features no kind of object gets more than the documents of the drivers list for it, and the one privilege more that
    /// vSphere's own documents list for machines with encrypted volumes.
    #[test]
    fn grants_are_never_more_than_documented() {
        let documented = |kind: &str| match kind {
            "Folder" => &["Cns.Searchable", "StorageProfile.View"][..],
            "Datastore" => &["Datastore.FileManagement"],
            "VirtualMachine" => &[
                "VirtualMachine.Config.AddExistingDisk",
                "VirtualMachine.Config.AddRemoveDevice",
                "Cryptographer.AddDisk",
            ],
            "ClusterComputeResource" => &["Host.Config.Storage"],
            _ => &[],
        };
        let all = [
            Feature::CloudProvider,
            Feature::Block,
            Feature::File,
            Feature::Topology,
            Feature::Encryption,
        ];
        let mut given = BTreeSet::new();
        for chosen in 0..1_u32 << all.len() {
            let features: Vec<Feature> = (0..all.len()).filter(|at| chosen & (1 << at) != 0).map(|at| all[at]).collect();
            let mut site = site(&["vm", "vm"], 1);
            site.0.datastores[0].kind = "vsan".into();
            for grant in grants(&required(&features, &site), &site.0, &site.1, &BTreeSet::new()).expect("grants") {
                let root = grant.object.kind != "Folder" || grant.path == "/";
                for privilege in &grant.privileges {
                    assert!(
                        root && documented(&grant.object.kind).contains(&privilege.as_str()),
                        "{features:?}: {grant:?}"
                    );
                    assert!(
                        privilege != "Cryptographer.AddDisk" || features.contains(&Feature::Encryption),
                        "{features:?}"
                    );
                }
                given.extend(grant.privileges);
            }
        }
        assert_eq!(given.len(), 7, "some are never given: {given:?}");
    }

    /// Of thousands of machines in folders of the cluster there is one permission.
    #[test]
    fn grants_for_thousands_of_machines_in_own_folders_are_few() {
        let folders = [vec!["k8s"; 2500], vec!["workers"; 2500], vec!["vm"]].concat();
        let granted = shown(&[Feature::Block], &folders, 5000, |_| ());
        assert_eq!(granted.len(), 5, "{granted:?}");
    }

    #[test]
    fn grants_on_datastores_can_be_limited() {
        let site = site(&["vm"], 1);
        let block = required(&[Feature::Block], &site);
        let on = |chosen: &str| {
            let all = grants(&block, &site.0, &site.1, &[chosen.to_owned()].into()).expect("grants");
            all.iter().any(|grant| grant.object.id == "ds")
        };
        assert!(on("ds") && !on("other"));
    }

    #[test]
    fn grants_on_an_object_that_cannot_be_seen_are_refused() {
        let mut site = site(&["vm"], 1);
        site.0.places.remove("cluster");
        let topology = required(&[Feature::Topology], &site);
        let error = grants(&topology, &site.0, &site.1, &BTreeSet::new()).expect_err("an error");
        assert!(error.to_string().contains("cluster") && error.remedy().is_some(), "{error}");
    }

    #[test]
    fn grants_cover_what_lies_below_a_folder() {
        let site = site(&["k8s", "workers", "vm"], 2);
        let block = required(&[Feature::Block], &site);
        let all = grants(&block, &site.0, &site.1, &BTreeSet::new()).expect("grants");
        let disk = "VirtualMachine.Config.AddExistingDisk";
        assert!(is_covered(&all, &["vm-1", "workers", "k8s", "vm", "dc", "root"], disk));
        assert!(!is_covered(&all, &["vm-2", "vm", "dc", "root"], disk));
        assert!(is_covered(&all, &["root"], "System.Read") && !is_covered(&all, &["vm-2", "vm", "dc", "root"], "System.Read"));
    }
}
