// SPDX-License-Identifier: Apache-2.0
//! The datacenters, hosts, machines, datastores, tags and storage policies of a vCenter as data.
//!
//! `inventory.rs`, `tags.rs` and `policies.rs` in `vcenter` read them.

use std::collections::{BTreeMap, BTreeSet};
use vdo_core::driverconfig::node_addresses::Adapter;

/// A reference to a managed object of a vCenter, such as `HostSystem` `host-21`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct ManagedObject {
    /// The kind, as vSphere names it.
    pub kind: String,
    /// The identifier, unique within the vCenter.
    pub id: String,
}

/// What is in a vCenter, as far as the account may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The root folder.
    pub root: ManagedObject,
    /// The inventory paths of the datacenters, such as `/Europe/DC0`, in order.
    pub datacenters: Vec<String>,
    /// The virtual machines without templates, by path.
    pub machines: Vec<Machine>,
    /// The identifiers of the folders with templates.
    pub template_folders: BTreeSet<String>,
    /// The hosts, by identifier.
    pub hosts: BTreeMap<String, Host>,
    /// The datastores, by path.
    pub datastores: Vec<Datastore>,
    /// Everything that other objects lie in, hosts included, by identifier.
    pub places: BTreeMap<String, Entity>,
}

impl Inventory {
    /// The object and all that it lies in, nearest first, the root folder last. It ends early where one cannot be seen; then the last
    /// element is the unseen one, of which only the identifier is known.
    #[must_use]
    pub fn ancestry<'a>(&'a self, id: &'a str) -> Vec<&'a str> {
        let (mut way, mut at) = (vec![], id);
        while !at.is_empty() && !way.contains(&at) {
            way.push(at);
            at = self.places.get(at).map_or("", |place| place.parent.as_str());
        }
        way
    }

    /// What an object is called in messages: its path, or the identifier of what cannot be seen.
    #[must_use]
    pub fn name_of<'a>(&'a self, id: &'a str) -> &'a str {
        if id == self.root.id {
            return "/";
        }
        self.places.get(id).map_or(id, |place| place.path.as_str())
    }

    /// The path of any object, of a machine or datastore too; the identifier of what cannot be seen.
    #[must_use]
    pub fn path_of<'a>(&'a self, object: &'a ManagedObject) -> &'a str {
        let machine = || self.machines.iter().find(|machine| machine.id == object.id).map(|one| &one.path);
        let datastore = || {
            self.datastores
                .iter()
                .find(|datastore| datastore.id == object.id)
                .map(|one| &one.path)
        };
        let found = match object.kind.as_str() {
            "VirtualMachine" => machine(),
            "Datastore" => datastore(),
            _ => None,
        };
        found.map_or_else(|| self.name_of(&object.id), String::as_str)
    }
}

/// A datacenter, folder, cluster or host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entity {
    /// What it is.
    pub object: ManagedObject,
    /// Its inventory path; its name alone where the way to it cannot be seen.
    pub path: String,
    /// The identifier of what it lies in; empty for the root.
    pub parent: String,
}

/// An ESXi host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The version of ESXi; empty while it is disconnected.
    pub version: String,
    /// The connection state, such as `connected`.
    pub state: String,
    /// Whether it is in maintenance mode.
    pub maintenance: bool,
}

/// A datastore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Datastore {
    /// Its identifier.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its inventory path.
    pub path: String,
    /// Its URL, such as `ds:///vmfs/volumes/…/`.
    pub url: String,
    /// Its type, such as `VMFS`, `NFS`, `vsan`.
    pub kind: String,
    /// Whether any host reaches it.
    pub accessible: bool,
    /// The maintenance mode, such as `normal`; empty where the vCenter does not report it.
    pub maintenance: String,
    /// Its size in bytes; `None` where the vCenter does not report it.
    pub capacity: Option<u64>,
    /// Its free space in bytes, in the same way.
    pub free: Option<u64>,
    /// The identifiers of the hosts that have mounted it and reach it.
    pub hosts: Vec<String>,
}

/// A virtual machine. Texts are empty where the vCenter does not report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its identifier.
    pub id: String,
    /// Its inventory path; its name alone where the way to it cannot be seen.
    pub path: String,
    /// The path of its datacenter; empty where that cannot be seen.
    pub datacenter: String,
    /// The identifier of the folder that it lies in.
    pub folder: String,
    /// The BIOS UUID.
    pub uuid: String,
    /// The instance UUID.
    pub instance_uuid: String,
    /// The hardware version, such as `vmx-19`.
    pub hardware: String,
    /// `disk.EnableUUID`; `None` where it was never set.
    pub disk_uuid: Option<bool>,
    /// The host name inside.
    pub host_name: String,
    /// Its network adapters.
    pub adapters: Vec<Adapter>,
    /// Whether VMware Tools run.
    pub tools_running: bool,
    /// The power state, such as `poweredOn`.
    pub power: String,
    /// The identifier of the host that it runs on.
    pub host: String,
    /// Whether it has a snapshot.
    pub snapshot: bool,
    /// The kinds of its SCSI controllers, such as `ParaVirtualSCSIController`; `None` where they were not read.
    pub controllers: Option<Vec<String>>,
}

impl Machine {
    /// Its addresses, of all adapters, in order.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let all = self.adapters.iter().flat_map(|adapter| &adapter.addresses);
        let all: BTreeSet<&String> = all.filter(|address| !address.is_empty()).collect();
        all.into_iter().cloned().collect()
    }
}

/// The tags of a vCenter, as far as they were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tagging {
    /// The names of the categories that were looked for and exist.
    pub categories: BTreeSet<String>,
    /// The tags on each object as category and name, by identifier of the object.
    pub attached: BTreeMap<String, BTreeSet<(String, String)>>,
}

/// A storage policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Whether volumes that it places are encrypted.
    pub encrypts: bool,
}
