// SPDX-License-Identifier: Apache-2.0
//! Computes the privileges that the features in use need on each object, from the rules of the matrix or of this build.

use super::NodeReport;
use super::datastores::same_url;
use super::{Feature, Inventory, ManagedObject, Requirements};
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use vdo_api::yaml;
use vdo_core::matrix::{Index, PrivilegeRule, PrivilegeRules};

/// What the drivers may do and why, for an index that says nothing of it. It is what the index of this build has.
static BUILT_IN: LazyLock<PrivilegeRules> =
    LazyLock::new(|| yaml::load(include_str!("../../../../matrix-index/privileges.yaml")).unwrap_or_default());

/// The rules of an index, or those of this build.
fn rules(index: Option<&Index>) -> &PrivilegeRules {
    index.and_then(|index| index.privileges.as_ref()).unwrap_or(&BUILT_IN)
}

/// A word of a rule, where this build knows it: an index may be newer.
fn word<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    let text: StrDeserializer<'a, serde::de::value::Error> = serde::de::IntoDeserializer::into_deserializer(text);
    T::deserialize(text).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum On {
    Root,
    Datacenter,
    Host,
    AboveHost,
    AboveMachine,
    Machine,
    Datastore,
    VsanCluster,
}

/// A privilege that is needed on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredPrivilege {
    /// The object.
    pub object: ManagedObject,
    /// The privilege.
    pub privilege: String,
    /// The inventory path of the object; its identifier where the account cannot see it.
    pub path: String,
    /// The privilege as the vSphere Client spells it; empty where that is not known.
    pub(super) shown_as: String,
    pub(super) features: BTreeSet<Feature>,
    pub(super) role: String,
    pub(super) evidence: String,
    /// No document of a driver names it.
    pub(super) inferred: bool,
    /// Objects of one rule of which one is enough, by rule; `None` where each counts.
    pub choice: Option<usize>,
    /// The account cannot see the object at all, so there is nothing to ask about.
    pub unseen: bool,
}

/// Which privileges the features in use need, on which objects, by the rules of an index.
#[must_use]
pub fn required_privileges(
    requirements: &Requirements,
    encrypted: bool,
    (inventory, nodes): (&Inventory, &[NodeReport]),
    index: Option<&Index>,
) -> Vec<RequiredPrivilege> {
    let objects = Objects::of(requirements, inventory, nodes);
    let PrivilegeRules { rules, names } = rules(index);
    let mut all: BTreeMap<(ManagedObject, String, Option<usize>), RequiredPrivilege> = BTreeMap::new();
    let used = |rule: &PrivilegeRule| {
        let feature = word::<Feature>(&rule.feature)?;
        let is_used = requirements.features.contains(&feature) || (feature == Feature::Encryption && encrypted);
        (is_used && rule.holds(&requirements.versions)).then_some(feature)
    };
    for (number, rule, feature) in rules
        .iter()
        .enumerate()
        .filter_map(|(number, rule)| Some((number, rule, used(rule)?)))
    {
        let places = rule.on.iter().filter_map(|on| word::<On>(on));
        for (object, path, seen, named) in places.filter_map(|on| objects.0.get(&on)).flatten() {
            // What is named must do; of what is only there, one is enough.
            let choice = (rule.which.as_deref() == Some("any") && !named).then_some(number);
            for privilege in &rule.privileges {
                let demand = all
                    .entry((object.clone(), privilege.clone(), choice))
                    .or_insert_with(|| RequiredPrivilege {
                        object: object.clone(),
                        privilege: privilege.clone(),
                        shown_as: names
                            .get(privilege)
                            .or_else(|| BUILT_IN.names.get(privilege))
                            .cloned()
                            .unwrap_or_default(),
                        path: path.clone(),
                        features: BTreeSet::new(),
                        role: rule.role.clone(),
                        evidence: rule.evidence.clone(),
                        inferred: rule.inferred,
                        choice,
                        unseen: !seen,
                    });
                demand.features.insert(feature);
            }
        }
    }
    all.into_values().collect()
}

/// What to ask a vCenter: each set of privileges with the objects that it is needed on.
#[must_use]
pub fn privilege_queries(required_privileges: &[RequiredPrivilege]) -> Vec<(Vec<ManagedObject>, Vec<String>)> {
    let mut of_object: BTreeMap<&ManagedObject, BTreeSet<&str>> = BTreeMap::new();
    for demand in required_privileges.iter().filter(|demand| !demand.unseen) {
        of_object.entry(&demand.object).or_default().insert(&demand.privilege);
    }
    let mut groups: BTreeMap<BTreeSet<&str>, Vec<ManagedObject>> = BTreeMap::new();
    for (object, privileges) in of_object {
        groups.entry(privileges).or_default().push(object.clone());
    }
    let owned = |set: BTreeSet<&str>| set.into_iter().map(str::to_owned).collect();
    groups.into_iter().map(|(set, objects)| (objects, owned(set))).collect()
}

/// The objects of each kind of place, with their paths, whether they can be seen, and whether they are named.
struct Objects(BTreeMap<On, BTreeSet<(ManagedObject, String, bool, bool)>>);

impl Objects {
    fn of(requirements: &Requirements, inventory: &Inventory, nodes: &[NodeReport]) -> Self {
        let mut objects = Self(BTreeMap::new());
        objects.add(On::Root, inventory.root.clone(), "/".into(), true, false);
        for machine in nodes.iter().filter_map(|node| inventory.machines.get(node.at?)) {
            let object = ManagedObject {
                kind: "VirtualMachine".into(),
                id: machine.id.clone(),
            };
            objects.add(On::Machine, object, machine.path.clone(), true, false);
            objects.way(On::AboveMachine, inventory, &machine.folder);
            if let [host, above @ ..] = inventory.ancestry(&machine.host).as_slice() {
                objects.place(On::Host, inventory, host);
                above.iter().for_each(|id| objects.place(On::AboveHost, inventory, id));
            }
        }
        let hosts: BTreeSet<String> = objects.ids(On::Host);
        for datastore in &inventory.datastores {
            let named = requirements.datastores.iter().any(|wanted| same_url(&wanted.url, &datastore.url));
            let shared = !hosts.is_empty() && hosts.iter().all(|host| datastore.hosts.contains(host));
            if named || shared {
                let object = ManagedObject {
                    kind: "Datastore".into(),
                    id: datastore.id.clone(),
                };
                objects.add(On::Datastore, object, datastore.path.clone(), true, named);
            }
            let vsan = datastore.kind == "vsan";
            for host in datastore.hosts.iter().filter(|host| vsan && hosts.contains(*host)) {
                if let Some(cluster) = inventory.places.get(host).map(|place| place.parent.as_str()) {
                    objects.place(On::VsanCluster, inventory, cluster);
                }
            }
        }
        objects
    }

    fn add(&mut self, on: On, object: ManagedObject, path: String, seen: bool, named: bool) {
        self.0.entry(on).or_default().insert((object, path, seen, named));
    }

    fn ids(&self, on: On) -> BTreeSet<String> {
        self.0
            .get(&on)
            .into_iter()
            .flatten()
            .map(|(object, ..)| object.id.clone())
            .collect()
    }

    fn way(&mut self, on: On, inventory: &Inventory, from: &str) {
        inventory.ancestry(from).iter().for_each(|id| self.place(on, inventory, id));
    }

    fn place(&mut self, on: On, inventory: &Inventory, id: &str) {
        let root = id == inventory.root.id;
        let place = inventory.places.get(id);
        let object = match place {
            Some(place) => place.object.clone(),
            None if root => inventory.root.clone(),
            None => ManagedObject {
                kind: "ManagedEntity".into(),
                id: id.to_owned(),
            },
        };
        if object.kind == "Datacenter" {
            self.add(On::Datacenter, object.clone(), inventory.name_of(id).to_owned(), true, false);
        }
        self.add(on, object, inventory.name_of(id).to_owned(), place.is_some() || root, false);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::vsphere::{Datastore, Entity, Host, Machine};
    use vdo_core::drivers::STORAGE;

    /// Two hosts in a cluster; one machine on the first; a vSAN datastore on both, a local one on the first.
    pub(in crate::vsphere) fn inventory() -> Inventory {
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
        let datastore = |id: &str, kind: &str, hosts: &[&str]| Datastore {
            id: id.into(),
            path: format!("/DC0/datastore/{id}"),
            url: format!("ds:///{id}/"),
            kind: kind.into(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..Datastore::default()
        };
        Inventory {
            root: object("Folder", "root"),
            datacenters: vec!["/DC0".into()],
            machines: vec![Machine {
                id: "vm-1".into(),
                path: "/DC0/vm/n1".into(),
                folder: "vms".into(),
                host: "host-1".into(),
                ..Machine::default()
            }],
            hosts: [("host-1".to_owned(), Host::default()), ("host-2".to_owned(), Host::default())].into(),
            datastores: vec![
                datastore("shared", "vsan", &["host-1", "host-2"]),
                datastore("local", "VMFS", &["host-1"]),
                datastore("far", "VMFS", &["host-2"]),
            ],
            places: [
                place("Datacenter", "dc", "/DC0", "root"),
                place("Folder", "vms", "/DC0/vm", "dc"),
                place("Folder", "hosts", "/DC0/host", "dc"),
                place("ClusterComputeResource", "cluster", "/DC0/host/C0", "hosts"),
                place("HostSystem", "host-1", "/DC0/host/C0/h1", "cluster"),
                place("HostSystem", "host-2", "/DC0/host/C0/h2", "cluster"),
            ]
            .into(),
            ..Inventory::default()
        }
    }

    pub(in crate::vsphere) fn nodes() -> Vec<NodeReport> {
        vec![NodeReport {
            node: "n1".into(),
            at: Some(0),
            ..NodeReport::default()
        }]
    }

    pub(in crate::vsphere) fn requirements(features: &[Feature]) -> Requirements {
        Requirements {
            features: features.iter().copied().collect(),
            ..Requirements::default()
        }
    }

    fn reported(requirements: &Requirements, encrypted: bool) -> Vec<String> {
        let required_privileges = required_privileges(requirements, encrypted, (&inventory(), &nodes()), None);
        let mut all: Vec<String> = required_privileges
            .iter()
            .map(|d| format!("{} {}", d.object.id, d.privilege))
            .collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn privilege_rules_every_privilege_has_client_name() {
        assert_eq!(BUILT_IN.rules.len(), 12);
        for rule in &BUILT_IN.rules {
            assert!(!rule.evidence.is_empty());
            assert!(word::<Feature>(&rule.feature).is_some(), "{}", rule.feature);
            assert!(rule.on.iter().all(|on| word::<On>(on).is_some()), "{:?}", rule.on);
            for privilege in &rule.privileges {
                assert!(BUILT_IN.names.contains_key(privilege), "{privilege} has no name in the client");
            }
        }
    }

    /// A newer driver may need more: a newer index has the rule, and this build asks for it. Words that it does not know are left out.
    #[test]
    fn privilege_rules_of_an_index_replace_those_of_the_build() {
        let index = |rules: &str| {
            let text = format!(
                "apiVersion: vdo.vmware.com/matrix/v1\nkind: CompatibilityMatrix\nversion: 1\n{rules}drivers:\n  {}: {{role: storage, versions: []}}\n",
                STORAGE.name
            );
            Index::parse(text.as_bytes()).expect("an index")
        };
        let of = |index: &Index, version: &str| {
            let mut block = requirements(&[Feature::Block]);
            block.versions = [(STORAGE.name.to_owned(), vec![version.parse().expect("a version")])].into();
            let found = required_privileges(&block, false, (&inventory(), &nodes()), Some(index));
            found
                .iter()
                .map(|one| format!("{} {} ({})", one.object.id, one.privilege, one.shown_as))
                .collect::<Vec<_>>()
        };
        let newer = index(
            &"privileges:\n  rules:\n  - {feature: block, role: CNS-VM, on: [machine, moon], privileges: [VirtualMachine.State.CreateSnapshot], driver: DRIVER, min: 3.9.0, evidence: e}\n  - {feature: dreams, role: X, on: [root], privileges: [Cns.Searchable], evidence: e}\n  - {feature: block, role: S, on: [root], privileges: [Cns.Searchable], evidence: e}\n  names: {VirtualMachine.State.CreateSnapshot: 'Virtual machine > Snapshot management > Create snapshot'}\n"
                .replace("DRIVER", STORAGE.name),
        );
        let search = "root Cns.Searchable (CNS > Searchable)";
        assert_eq!(of(&newer, "3.8.0"), [search]);
        assert_eq!(
            of(&newer, "3.9.0"),
            [
                search,
                "vm-1 VirtualMachine.State.CreateSnapshot (Virtual machine > Snapshot management > Create snapshot)"
            ]
        );
        let silent = index("");
        assert!(
            of(&silent, "3.9.0").len() > 5,
            "an index that says nothing leaves the rules of this build"
        );
    }

    /// Each feature needs its own privileges, on its own objects.
    #[test]
    fn privilege_demands_each_feature_needs_its_own() {
        let read = |ids: &[&str]| ids.iter().map(|id| format!("{id} System.Read")).collect::<Vec<_>>();
        assert_eq!(reported(&requirements(&[]), false), [] as [String; 0]);
        assert_eq!(
            reported(&requirements(&[Feature::CloudProvider]), false),
            read(&["dc", "host-1", "root", "vm-1", "vms"])
        );
        assert_eq!(
            reported(&requirements(&[Feature::Block]), false),
            [
                "dc System.Read",
                "host-1 System.Read",
                "local Datastore.FileManagement",
                "local System.Read",
                "root Cns.Searchable",
                "root StorageProfile.View",
                "root System.Read",
                "shared Datastore.FileManagement",
                "shared System.Read",
                "vm-1 System.Read",
                "vm-1 VirtualMachine.Config.AddExistingDisk",
                "vm-1 VirtualMachine.Config.AddRemoveDevice",
            ]
        );
        let only = |features: &[Feature], privilege: &str| {
            let all = reported(&requirements(features), false);
            all.into_iter().filter(|line| line.ends_with(privilege)).collect::<Vec<_>>()
        };
        assert_eq!(only(&[Feature::File], "Host.Config.Storage"), ["cluster Host.Config.Storage"]);
        assert_eq!(only(&[Feature::File], "AddExistingDisk"), [] as [String; 0]);
        assert_eq!(
            reported(&requirements(&[Feature::Topology]), false),
            read(&["cluster", "dc", "host-1", "hosts", "root"])
        );
        assert!(reported(&requirements(&[Feature::Block]), true).contains(&"vm-1 Cryptographer.AddDisk".to_owned()));
    }
}
