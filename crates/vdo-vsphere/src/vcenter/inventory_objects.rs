// SPDX-License-Identifier: Apache-2.0
//! Converts the properties of vCenter objects (machines, hosts, datastores, folders) into the inventory, and computes their paths.

use super::identifiers::{self, identifier, identifier_or_none, reference};
use super::inspection_limits::Held;
use super::offload::{Unread, Work};
use super::xml::Element;
use crate::vsphere::{Datastore, Entity, Host, Inventory, Machine, ManagedObject};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_core::driverconfig::node_addresses::Adapter;

/// A tree of folders is about as deep as people can think.
const MAX_DEPTH: usize = 64;

/// The folders of a datacenter by the property that names them, and what they are called in every vCenter.
const FOLDERS: [(&str, &str); 3] = [("datastoreFolder", "datastore"), ("hostFolder", "host"), ("vmFolder", "vm")];

/// An object as it was read.
pub struct Item {
    /// Which object.
    pub object: ManagedObject,
    /// Its properties that were asked for and that it has.
    pub values: BTreeMap<String, Element>,
}

impl Item {
    /// Reads an object of an answer; `None` where the element has no object.
    pub fn of(element: &mut Element) -> Result<Option<Self>, Unread> {
        let Some(object) = element.child("obj").map(reference).transpose()? else {
            return Ok(None);
        };
        let sets = element.children.iter_mut().filter(|child| child.name == "propSet");
        let values = sets.filter_map(|set| {
            let name = set.text_of("name");
            Some((name, std::mem::take(set.children.iter_mut().find(|child| child.name == "val")?)))
        });
        Ok(Some(Self {
            object,
            values: values.collect(),
        }))
    }

    fn text(&self, path: &str) -> String {
        self.values.get(path).map(|value| value.text.trim().to_owned()).unwrap_or_default()
    }
}

/// What a text costs in memory besides its characters.
pub const COST: usize = 40;

/// What has come so far. Paths are written when everything is there: a parent may come after its children.
pub struct Gathered {
    inventory: Inventory,
    /// Machines by name; those and datastores with the identifier of their parent.
    machines: Vec<Machine>,
    datastores: Vec<(Datastore, String)>,
    /// The folders that every datacenter has, by identifier: name and datacenter. An account may see what is in one, and not the folder.
    folders: BTreeMap<String, (&'static str, String)>,
    networks: BTreeSet<Arc<str>>,
    held: Held,
}

impl Gathered {
    pub fn new(root: ManagedObject, held: Held) -> Self {
        Self {
            inventory: Inventory {
                root,
                ..Inventory::default()
            },
            machines: vec![],
            datastores: vec![],
            folders: BTreeMap::new(),
            networks: BTreeSet::new(),
            held,
        }
    }

    pub fn take(&mut self, item: Item) -> Result<(), Unread> {
        // A machine in a vApp lies in no folder but the vApp's; that one's own parent is a resource pool, if it is not in another vApp.
        let places = ["parentFolder", "parentVApp", "parent"].map(|path| item.text(path));
        let name = identifiers::name(item.text("name"))?;
        let parent = identifier_or_none(&places.into_iter().find(|id| !id.is_empty()).unwrap_or_default())?;
        match item.object.kind.as_str() {
            "VirtualMachine" if item.text("config.template") != "true" => {
                let networks = self.networks.len();
                let machine = Machine {
                    folder: parent,
                    ..machine(&item, name, &mut self.networks)?
                };
                self.hold(size_of::<Machine>(), &weight_of_machine(&machine))?;
                if self.networks.len() > networks {
                    let names: Vec<usize> = machine.adapters.iter().map(|adapter| adapter.network.len()).collect();
                    self.hold(0, &names)?;
                }
                self.machines.push(machine);
            }
            "VirtualMachine" => {
                self.hold(size_of::<String>(), &[parent.len()])?;
                self.inventory.template_folders.insert(parent);
            }
            "Datastore" => {
                let datastore = datastore(&item, name)?;
                let hosts = datastore.hosts.iter().map(String::len);
                let texts = [&datastore.url, &datastore.kind, &datastore.maintenance].map(String::len);
                let texts: Vec<usize> = hosts.chain(texts).collect();
                self.hold(size_of::<(Datastore, String)>(), &texts)?;
                self.datastores.push((datastore, parent));
            }
            kind => {
                self.hold(size_of::<Entity>(), &[name.len(), kind.len(), parent.len()])?;
                if kind == "HostSystem" {
                    let host = host(&item, &name);
                    self.hold(size_of::<Host>(), &[host.version.len(), host.state.len()])?;
                    self.inventory.hosts.insert(item.object.id.clone(), host);
                }
                for (property, called) in FOLDERS {
                    let folder = identifier_or_none(&item.text(property))?;
                    if !folder.is_empty() {
                        self.hold(size_of::<(&str, String)>(), &[folder.len(), item.object.id.len()])?;
                        self.folders.insert(folder, (called, item.object.id.clone()));
                    }
                }
                let place = Entity {
                    object: item.object.clone(),
                    path: name,
                    parent,
                };
                self.inventory.places.insert(item.object.id, place);
            }
        }
        Ok(())
    }

    /// Memory for an object with an identifier, a name, a parent and these texts. Vectors may be half empty.
    fn hold(&mut self, object: usize, texts: &[usize]) -> Result<(), Unread> {
        let texts: usize = texts.iter().map(|text| COST + text).sum();
        Ok(self.held.grow(object * 3 / 2 + 3 * COST + texts)?)
    }

    pub fn finish(mut self, work: &Work) -> Result<Inventory, Unread> {
        let mut paths = vec![];
        for (id, place) in &self.inventory.places {
            let path = self.way(&place.path, &place.parent, is_datacenter(place)).0;
            work.go_on()?;
            self.held.grow(COST + id.len() + path.len())?;
            paths.push((id.clone(), path));
        }
        let mut machines = std::mem::take(&mut self.machines);
        for machine in &mut machines {
            (machine.path, machine.datacenter) = self.way(&machine.path, &machine.folder, false);
            work.go_on()?;
            self.held.grow(machine.path.len() + machine.datacenter.len())?;
        }
        let mut datastores = vec![];
        for (mut datastore, parent) in std::mem::take(&mut self.datastores) {
            datastore.path = self.way(&datastore.name, &parent, false).0;
            work.go_on()?;
            self.held.grow(datastore.path.len())?;
            datastores.push(datastore);
        }
        let Self { mut inventory, held, .. } = self;
        for (id, path) in paths {
            if let Some(place) = inventory.places.get_mut(&id) {
                place.path = path;
            }
        }
        let datacenters = inventory.places.values().filter(|place| is_datacenter(place));
        inventory.datacenters = datacenters.map(|place| place.path.clone()).collect();
        inventory.datacenters.sort();
        machines.sort_by(|a, b| a.path.cmp(&b.path));
        datastores.sort_by(|a, b| a.path.cmp(&b.path));
        (inventory.machines, inventory.datastores) = (machines, datastores);
        held.keep();
        Ok(inventory)
    }

    /// The path from the root, and that of the datacenter on it; the name alone where the way to it cannot be seen.
    fn way(&self, name: &str, parent: &str, is_datacenter_itself: bool) -> (String, String) {
        let mut names = vec![name];
        let mut datacenter = is_datacenter_itself.then_some(0);
        let mut at = parent;
        while at != self.inventory.root.id {
            let place = self.inventory.places.get(at);
            let (called, above) = match (place, self.folders.get(at)) {
                _ if names.len() >= MAX_DEPTH => return (name.to_owned(), String::new()),
                (Some(place), _) => (place.path.as_str(), &place.parent),
                (None, Some((called, datacenter))) => (*called, datacenter),
                (None, None) => return (name.to_owned(), String::new()),
            };
            if place.is_some_and(is_datacenter) {
                datacenter = Some(names.len());
            }
            names.push(called);
            at = above;
        }
        let join = |names: &[&str]| names.iter().rev().map(|name| format!("/{name}")).collect::<String>();
        (join(&names), datacenter.map(|at| join(&names[at..])).unwrap_or_default())
    }
}

fn is_datacenter(place: &Entity) -> bool {
    place.object.kind == "Datacenter"
}

fn host(item: &Item, name: &str) -> Host {
    Host {
        name: name.to_owned(),
        version: item.text("summary.config.product.version"),
        state: item.text("runtime.connectionState"),
        maintenance: item.text("runtime.inMaintenanceMode") == "true",
    }
}

fn datastore(item: &Item, name: String) -> Result<Datastore, Unread> {
    let mounts = item
        .values
        .get("host")
        .into_iter()
        .flat_map(|mounts| mounts.all("DatastoreHostMount"));
    let reached = mounts.filter(|mount| {
        let says_no = |what: &str| mount.child("mountInfo").is_some_and(|info| info.text_of(what) == "false");
        !says_no("mounted") && !says_no("accessible")
    });
    let hosts: Result<_, String> = reached.map(|mount| identifier(&mount.text_of("key"))).collect();
    Ok(Datastore {
        id: item.object.id.clone(),
        name,
        path: String::new(),
        url: item.text("summary.url"),
        kind: item.text("summary.type"),
        accessible: item.text("summary.accessible") != "false",
        maintenance: item.text("summary.maintenanceMode"),
        capacity: item.text("summary.capacity").parse().ok(),
        free: item.text("summary.freeSpace").parse().ok(),
        hosts: hosts?,
    })
}

fn weight_of_machine(machine: &Machine) -> Vec<usize> {
    let own = [
        &machine.path,
        &machine.uuid,
        &machine.instance_uuid,
        &machine.hardware,
        &machine.host_name,
        &machine.power,
        &machine.host,
    ];
    let adapters = machine.adapters.iter();
    let adapters = adapters.flat_map(|adapter| &adapter.addresses);
    own.into_iter().chain(adapters).map(String::len).collect()
}

/// One copy of the name of each network serves all machines.
fn shared(networks: &mut BTreeSet<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = networks.get(name) {
        return known.clone();
    }
    let new: Arc<str> = name.into();
    networks.insert(new.clone());
    new
}

fn machine(item: &Item, name: String, networks: &mut BTreeSet<Arc<str>>) -> Result<Machine, Unread> {
    // Networks inside the guest, such as those of its containers, have no adapter of the machine.
    let adapters = item
        .values
        .get("guest.net")
        .into_iter()
        .flat_map(|net| net.all("GuestNicInfo"))
        .filter(|nic| nic.text_of("deviceConfigId") != "-1")
        .map(|nic| Adapter {
            network: shared(networks, nic.text_of("network").trim()),
            addresses: nic.all("ipAddress").map(|address| address.text.trim().to_owned()).collect(),
        });
    Ok(Machine {
        id: item.object.id.clone(),
        path: name,
        uuid: item.text("config.uuid"),
        instance_uuid: item.text("config.instanceUuid"),
        hardware: item.text("config.version"),
        disk_uuid: item.text("config.flags.diskUuidEnabled").parse().ok(),
        host_name: item.text("guest.hostName"),
        adapters: adapters.collect(),
        tools_running: item.text("guest.toolsRunningStatus") == "guestToolsRunning",
        power: item.text("runtime.powerState"),
        host: identifier_or_none(&item.text("runtime.host"))?,
        snapshot: item.values.contains_key("snapshot.currentSnapshot"),
        ..Machine::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcenter::inspection_limits::{Budget, Limits, Pool};
    use crate::vcenter::requests::element;
    use crate::vcenter::xml::whole;
    use crate::vsphere::Excess;

    fn root() -> ManagedObject {
        ManagedObject {
            kind: "Folder".into(),
            id: "group-d1".into(),
        }
    }

    fn item(kind: &str, id: &str, name: &str, parent: &str) -> Item {
        let value = |text: &str| whole(&element("val", text));
        let values = [("name", name), ("parent", parent)];
        Item {
            object: ManagedObject {
                kind: kind.into(),
                id: id.into(),
            },
            values: values.into_iter().map(|(k, v)| (k.to_owned(), value(v))).collect(),
        }
    }

    fn also(mut item: Item, path: &str, text: &str) -> Item {
        item.values.insert(path.into(), whole(&element("val", text)));
        item
    }

    #[test]
    fn inventory_paths_nested_folders_and_vapps_are_joined() {
        let work = Work::with(Budget::default());
        let mut gathered = Gathered::new(root(), work.hold());
        for item in [
            item("VirtualMachine", "vm-1", "node", "group-v2"),
            item("VirtualMachine", "vm-2", "no parent", ""),
            also(item("VirtualMachine", "vm-4", "in an app", ""), "parentVApp", "app-2"),
            also(item("VirtualApp", "app-1", "App", "pool-7"), "parentFolder", "group-v2"),
            item("VirtualApp", "app-2", "Inner", "app-1"),
            item("VirtualMachine", "vm-3", "unseen", "group-v9"),
            item("Datastore", "datastore-1", "fast", "group-s1"),
            item("Folder", "group-s1", "datastore", "datacenter-2"),
            item("Folder", "group-v2", "vm", "datacenter-2"),
            item("Datacenter", "datacenter-2", "DC%2f0", "group-d3"),
            item("Datacenter", "datacenter-1", "DC0", "group-d1"),
            item("Folder", "group-d3", "Europe", "group-d1"),
            item("Folder", "group-x", "loop", "group-x"),
        ] {
            gathered.take(item).expect("an object");
        }
        let found = gathered.finish(&work).expect("an inventory");
        assert_eq!(found.datacenters, ["/DC0", "/Europe/DC%2f0"]);
        let paths: Vec<_> = found.machines.iter().map(|m| (m.path.as_str(), m.datacenter.as_str())).collect();
        assert_eq!(
            paths,
            [
                ("/Europe/DC%2f0/vm/App/Inner/in an app", "/Europe/DC%2f0"),
                ("/Europe/DC%2f0/vm/node", "/Europe/DC%2f0"),
                ("no parent", ""),
                ("unseen", "")
            ]
        );
        assert_eq!(found.datastores[0].path, "/Europe/DC%2f0/datastore/fast");
        assert_eq!(found.ancestry("group-v2"), ["group-v2", "datacenter-2", "group-d3", "group-d1"]);
        assert_eq!(found.ancestry("group-v9"), ["group-v9"], "what cannot be seen is named, too");
        assert_eq!(
            (found.name_of("datacenter-2"), found.name_of("group-d1"), found.name_of("x")),
            ("/Europe/DC%2f0", "/", "x")
        );
    }

    /// An account may see a machine or datastore and its datacenter, and nothing between: the path is the one that an administrator sees,
    /// as long as there is nothing between but the folder that every datacenter has.
    #[test]
    fn inventory_path_through_an_unseen_folder_of_the_datacenter() {
        let work = Work::with(Budget::default());
        let mut gathered = Gathered::new(root(), work.hold());
        let datacenter = |id: &str, name: &str, parent: &str, folders: [(&str, &str); 2]| {
            folders
                .iter()
                .fold(item("Datacenter", id, name, parent), |item, (property, folder)| {
                    also(item, property, folder)
                })
        };
        for item in [
            datacenter(
                "datacenter-1",
                "DC0",
                "group-d1",
                [("datastoreFolder", "group-s1"), ("vmFolder", "group-v1")],
            ),
            datacenter(
                "datacenter-2",
                "DC1",
                "group-s2",
                [("datastoreFolder", "group-s2"), ("hostFolder", "group-h2")],
            ),
            item("Datastore", "datastore-1", "fast", "group-s1"),
            item("Datastore", "datastore-2", "in a folder", "group-s9"),
            item("Datastore", "datastore-3", "without end", "group-s2"),
            item("VirtualMachine", "vm-1", "node", "group-v1"),
        ] {
            gathered.take(item).expect("an object");
        }
        let found = gathered.finish(&work).expect("an inventory");
        let paths: Vec<&str> = found.datastores.iter().map(|datastore| datastore.path.as_str()).collect();
        assert_eq!(paths, ["/DC0/datastore/fast", "in a folder", "without end"]);
        let machine = &found.machines[0];
        assert_eq!((machine.path.as_str(), machine.datacenter.as_str()), ("/DC0/vm/node", "/DC0"));
    }

    fn with(kind: &str, values: &[(&str, &str)]) -> Item {
        let mut item = item(kind, "x-1", "x", "group-d1");
        for (name, value) in values {
            item.values.insert((*name).into(), whole(&format!("<val>{value}</val>")));
        }
        item
    }

    /// A machine has the addresses of its adapters, not those of networks inside it; a datastore the hosts that reach it.
    #[test]
    fn inventory_machine_addresses_are_of_its_adapters_only() {
        let nic = |id: &str, address: &str| format!("<GuestNicInfo><ipAddress>{address}</ipAddress>{id}</GuestNicInfo>");
        let net = nic("<deviceConfigId>4000</deviceConfigId>", "10.0.0.2")
            + &nic("<deviceConfigId>-1</deviceConfigId>", "172.17.0.1")
            + &nic("", "10.0.0.3");
        let found = machine(&with("VirtualMachine", &[("guest.net", &net)]), "x".into(), &mut BTreeSet::new()).expect("a machine");
        assert_eq!(found.addresses(), ["10.0.0.2", "10.0.0.3"]);
    }

    #[test]
    fn inventory_datastore_hosts_are_those_that_reach_it() {
        let mount =
            |host: &str, info: &str| format!("<DatastoreHostMount><key>{host}</key><mountInfo>{info}</mountInfo></DatastoreHostMount>");
        let mounts = mount("h1", "")
            + &mount("h2", "<mounted>false</mounted>")
            + &mount("h3", "<accessible>false</accessible>")
            + &mount("h4", "<accessible>true</accessible>");
        let found = datastore(&with("Datastore", &[("host", &mounts)]), "x".into()).expect("a datastore");
        assert_eq!(found.hosts, ["h1", "h4"]);
    }

    /// Each path repeats the names of all folders above it, so a few long names could become gigabytes.
    #[test]
    fn inventory_paths_longer_than_memory_are_refused() {
        let pool = Pool::new(16 << 20);
        let work = Work::with(Budget::new(Limits::default(), &pool));
        let mut gathered = Gathered::new(root(), work.hold());
        let long = "x".repeat(1000);
        for i in 1..60 {
            let folder = item("Folder", &format!("group-d{}", i + 1), &long, &format!("group-d{i}"));
            gathered.take(folder).expect("a folder");
        }
        for i in 0..2000 {
            gathered
                .take(item("VirtualMachine", &format!("vm-{i}"), "m", "group-d60"))
                .expect("a machine");
        }
        assert!(pool.used() < 4 << 20, "{}", pool.used());
        assert_eq!(gathered.finish(&work).err(), Some(Excess::Memory.into()));
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn inventory_identifier_unlike_one_is_refused() {
        let long = "x".repeat(2000);
        for (bad, path) in [
            (item("VirtualMachine", "vm-1", &long, "group-v1"), "name"),
            (item("VirtualMachine", "vm-1", "m", "a b"), "parent"),
            (also(item("VirtualMachine", "vm-1", "m", "group-v1"), "runtime.host", &long), "host"),
            (also(item("VirtualMachine", "vm-1", "m", ""), "parentVApp", "a b"), "vApp"),
        ] {
            let work = Work::with(Budget::default());
            let reported = Gathered::new(root(), work.hold()).take(bad);
            assert!(matches!(reported, Err(Unread::Malformed(_))), "{path}: {reported:?}");
        }
    }
}
