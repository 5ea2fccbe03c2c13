//! What is in a vCenter, read with one paged query.

use super::caller::Caller;
use super::method::{Method, element, refer, reference};
use super::xml::Element;
use super::{ProbeError, SessionError};
use crate::facts::{Datastore, Entity, Host, Inventory, Machine, ManagedObject};
use std::collections::BTreeMap;

/// Objects in one page. Of a page, its text is what is held in memory: some megabytes.
const PAGE: usize = 1000;

/// No vCenter has more objects than its supported maximum; one that goes on for ever is not read for ever.
const MAX_PAGES: usize = 1000;

/// A tree of folders is about as deep as people can think.
const MAX_DEPTH: usize = 64;

/// What is read of each kind of object.
const KINDS: [(&str, &[&str]); 7] = [
    ("Datacenter", &["name", "parent"]),
    ("Folder", &["name", "parent"]),
    ("ComputeResource", &["name", "parent"]),
    ("VirtualApp", &["name", "parent", "parentFolder"]),
    (
        "HostSystem",
        &[
            "name",
            "parent",
            "summary.config.product.version",
            "runtime.connectionState",
            "runtime.inMaintenanceMode",
        ],
    ),
    (
        "Datastore",
        &[
            "name",
            "parent",
            "host",
            "summary.url",
            "summary.type",
            "summary.accessible",
            "summary.maintenanceMode",
        ],
    ),
    (
        "VirtualMachine",
        &[
            "name",
            "parent",
            "parentVApp",
            "config.template",
            "config.uuid",
            "config.instanceUuid",
            "config.version",
            "config.flags.diskUuidEnabled",
            "guest.hostName",
            "guest.ipAddress",
            "guest.net",
            "guest.toolsRunningStatus",
            "runtime.host",
            "runtime.powerState",
            "snapshot.currentSnapshot",
        ],
    ),
];

/// An object as it was read.
struct Item {
    object: ManagedObject,
    values: BTreeMap<String, Element>,
}

impl Item {
    fn of(element: &mut Element) -> Option<Self> {
        let object = reference(element.child("obj")?);
        let sets = element.children.iter_mut().filter(|child| child.name == "propSet");
        let values = sets.filter_map(|set| {
            let name = set.text_of("name");
            Some((name, std::mem::take(set.children.iter_mut().find(|child| child.name == "val")?)))
        });
        Some(Self {
            object,
            values: values.collect(),
        })
    }

    fn text(&self, path: &str) -> String {
        self.values.get(path).map(|value| value.text.trim().to_owned()).unwrap_or_default()
    }
}

/// Whether an object of an answer says that the session is gone: vCenter answers with a fault, the simulator with this.
fn is_lost(object: &Element) -> bool {
    let faults = object
        .all("missingSet")
        .filter_map(|missing| missing.child("fault")?.child("fault"));
    faults.into_iter().any(|fault| fault.xsi_type == "NotAuthenticated")
}

pub(super) async fn read(caller: &mut Caller<'_>) -> Result<Inventory, SessionError> {
    let (views, root) = (caller.service().views.clone(), caller.service().root.clone());
    let kinds: String = KINDS.iter().map(|(kind, _)| element("type", kind)).collect();
    let arguments = refer("container", &root) + &kinds + &element("recursive", "true");
    let created = caller.call(Method::CreateContainerView, &views, &arguments).await?;
    let view = created
        .child("returnval")
        .map(reference)
        .ok_or_else(|| malformed(caller, "it made no view".to_owned()))?;
    let mut gathered = Gathered::new(root);
    let read = pages(caller, &of_view(&view), &mut |item| gathered.take(&item)).await;
    // It would go with the session; what counts is what was read.
    let destroyed = caller.call(Method::DestroyView, &view, "").await;
    read?;
    destroyed?;
    Ok(gathered.finish())
}

/// Reads the devices of some machines.
pub(super) async fn look_into(caller: &mut Caller<'_>, inventory: &mut Inventory, machines: &[usize]) -> Result<(), SessionError> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for some in machines.chunks(PAGE) {
        let sets = some.iter().filter_map(|at| inventory.machines.get(*at)).map(|machine| {
            let object = ManagedObject {
                kind: "VirtualMachine".into(),
                id: machine.id.clone(),
            };
            format!("<objectSet>{}<skip>false</skip></objectSet>", refer("obj", &object))
        });
        let specification = format!(
            "<specSet>{}{}</specSet><options><maxObjects>{PAGE}</maxObjects></options>",
            properties("VirtualMachine", &["config.hardware.device"]),
            sets.collect::<String>()
        );
        pages(caller, &specification, &mut |item: Item| {
            let devices = item.values.get("config.hardware.device");
            let kinds = devices
                .into_iter()
                .flat_map(|devices| &devices.children)
                .map(|device| device.xsi_type.clone());
            let controllers = kinds.filter(|kind| is_scsi(kind)).collect();
            found.insert(item.object.id, controllers);
        })
        .await?;
    }
    for at in machines {
        if let Some(machine) = inventory.machines.get_mut(*at) {
            machine.controllers = found.remove(&machine.id);
        }
    }
    Ok(())
}

fn is_scsi(kind: &str) -> bool {
    matches!(
        kind,
        "ParaVirtualSCSIController" | "VirtualLsiLogicController" | "VirtualLsiLogicSASController" | "VirtualBusLogicController"
    )
}

async fn pages(caller: &mut Caller<'_>, specification: &str, take: &mut (dyn FnMut(Item) + Send)) -> Result<(), SessionError> {
    let collector = caller.service().collector.clone();
    let (mut method, mut arguments) = (Method::RetrievePropertiesEx, specification.to_owned());
    for _ in 0..MAX_PAGES {
        let mut lost = false;
        let response = caller
            .call_each(method, &collector, &arguments, &mut |mut object| {
                lost |= is_lost(&object);
                if let Some(item) = Item::of(&mut object) {
                    take(item);
                }
            })
            .await?;
        if lost {
            return Err(caller.lost());
        }
        let token = response.child("returnval").map(|page| page.text_of("token")).unwrap_or_default();
        if token.is_empty() {
            return Ok(());
        }
        (method, arguments) = (Method::ContinueRetrievePropertiesEx, element("token", &token));
    }
    Err(malformed(caller, format!("it goes on for more than {MAX_PAGES} pages")))
}

fn malformed(caller: &Caller<'_>, because: String) -> SessionError {
    SessionError::Connection(ProbeError::Malformed {
        address: caller.address(),
        because,
    })
}

fn properties(kind: &str, paths: &[&str]) -> String {
    let paths: String = paths.iter().map(|path| element("pathSet", path)).collect();
    format!("<propSet><type>{kind}</type><all>false</all>{paths}</propSet>")
}

fn of_view(view: &ManagedObject) -> String {
    let sets: String = KINDS.iter().map(|(kind, paths)| properties(kind, paths)).collect();
    format!(
        concat!(
            "<specSet>{}<objectSet>{}<skip>true</skip>",
            r#"<selectSet xsi:type="TraversalSpec"><name>v</name><type>ContainerView</type><path>view</path><skip>false</skip></selectSet>"#,
            "</objectSet></specSet><options><maxObjects>{}</maxObjects></options>"
        ),
        sets,
        refer("obj", view),
        PAGE
    )
}

/// What has come so far. Paths are written when everything is there: a parent may come after its children.
struct Gathered {
    inventory: Inventory,
    /// Machines and datastores with the identifier of their parent.
    machines: Vec<(Machine, String)>,
    datastores: Vec<(Datastore, String)>,
}

impl Gathered {
    fn new(root: ManagedObject) -> Self {
        Self {
            inventory: Inventory {
                root,
                ..Inventory::default()
            },
            machines: vec![],
            datastores: vec![],
        }
    }

    fn take(&mut self, item: &Item) {
        // A machine in a vApp lies in no folder but the vApp's; that one's own parent is a resource pool, if it is not in another vApp.
        let places = ["parentFolder", "parentVApp", "parent"].map(|path| item.text(path));
        let (name, parent) = (item.text("name"), places.into_iter().find(|id| !id.is_empty()).unwrap_or_default());
        match item.object.kind.as_str() {
            "VirtualMachine" if item.text("config.template") != "true" => self.machines.push((machine(item, name), parent)),
            "VirtualMachine" => {}
            "Datastore" => self.datastores.push((datastore(item, name), parent)),
            kind => {
                if kind == "HostSystem" {
                    self.inventory.hosts.insert(item.object.id.clone(), host(item, &name));
                }
                let place = Entity {
                    object: item.object.clone(),
                    path: name,
                    parent,
                };
                self.inventory.places.insert(item.object.id.clone(), place);
            }
        }
    }

    fn finish(mut self) -> Inventory {
        let places = &self.inventory.places;
        let paths: Vec<(String, String)> = places
            .iter()
            .map(|(id, place)| (id.clone(), self.way(&place.path, &place.parent, is_datacenter(place)).0))
            .collect();
        let mut machines = vec![];
        for (mut machine, parent) in std::mem::take(&mut self.machines) {
            (machine.path, machine.datacenter) = self.way(&machine.path, &parent, false);
            machine.folder = parent;
            machines.push(machine);
        }
        let mut datastores = vec![];
        for (mut datastore, parent) in std::mem::take(&mut self.datastores) {
            datastore.path = self.way(&datastore.name, &parent, false).0;
            datastores.push(datastore);
        }
        let mut inventory = self.inventory;
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
        inventory
    }

    /// The path from the root, and that of the datacenter on it; the name alone where the way to it cannot be seen.
    fn way(&self, name: &str, parent: &str, is_datacenter_itself: bool) -> (String, String) {
        let mut names = vec![name];
        let mut datacenter = is_datacenter_itself.then_some(0);
        let mut at = parent;
        while at != self.inventory.root.id {
            let Some(place) = self.inventory.places.get(at).filter(|_| names.len() < MAX_DEPTH) else {
                return (name.to_owned(), String::new());
            };
            if is_datacenter(place) {
                datacenter = Some(names.len());
            }
            names.push(&place.path);
            at = &place.parent;
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

fn datastore(item: &Item, name: String) -> Datastore {
    let mounts = item
        .values
        .get("host")
        .into_iter()
        .flat_map(|mounts| mounts.all("DatastoreHostMount"));
    let reached = mounts.filter(|mount| {
        let says_no = |what: &str| mount.child("mountInfo").is_some_and(|info| info.text_of(what) == "false");
        !says_no("mounted") && !says_no("accessible")
    });
    Datastore {
        id: item.object.id.clone(),
        name,
        path: String::new(),
        url: item.text("summary.url"),
        kind: item.text("summary.type"),
        accessible: item.text("summary.accessible") != "false",
        maintenance: item.text("summary.maintenanceMode"),
        hosts: reached.map(|mount| mount.text_of("key")).collect(),
    }
}

fn machine(item: &Item, name: String) -> Machine {
    // Networks inside the guest, such as those of its containers, have no adapter of the machine.
    let adapters = item
        .values
        .get("guest.net")
        .into_iter()
        .flat_map(|net| net.all("GuestNicInfo"))
        .filter(|nic| nic.text_of("deviceConfigId") != "-1");
    let mut addresses: Vec<String> = adapters
        .flat_map(|nic| nic.all("ipAddress"))
        .map(|address| address.text.trim().to_owned())
        .chain([item.text("guest.ipAddress")])
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort();
    addresses.dedup();
    Machine {
        id: item.object.id.clone(),
        path: name,
        uuid: item.text("config.uuid"),
        instance_uuid: item.text("config.instanceUuid"),
        hardware: item.text("config.version"),
        disk_uuid: item.text("config.flags.diskUuidEnabled").parse().ok(),
        host_name: item.text("guest.hostName"),
        addresses,
        tools_running: item.text("guest.toolsRunningStatus") == "guestToolsRunning",
        power: item.text("runtime.powerState"),
        host: item.text("runtime.host"),
        snapshot: item.values.contains_key("snapshot.currentSnapshot"),
        ..Machine::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcenter::xml;

    fn item(kind: &str, id: &str, name: &str, parent: &str) -> Item {
        let value = |text: &str| xml::parse(&element("val", text)).expect("XML");
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
        item.values.insert(path.into(), xml::parse(&element("val", text)).expect("XML"));
        item
    }

    #[test]
    fn inventory_paths_nested_folders_and_vapps_are_joined() {
        let mut gathered = Gathered::new(ManagedObject {
            kind: "Folder".into(),
            id: "group-d1".into(),
        });
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
            gathered.take(&item);
        }
        let found = gathered.finish();
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

    /// A machine has the addresses of its adapters, not those of networks inside it; a datastore the hosts that reach it.
    #[test]
    fn inventory_machine_addresses_are_of_its_adapters_only() {
        let with = |kind: &str, values: &[(&str, &str)]| {
            let mut item = item(kind, "x-1", "x", "group-d1");
            for (name, value) in values {
                item.values
                    .insert((*name).into(), xml::parse(&format!("<val>{value}</val>")).expect("XML"));
            }
            item
        };
        let nic = |id: &str, address: &str| format!("<GuestNicInfo><ipAddress>{address}</ipAddress>{id}</GuestNicInfo>");
        let net = nic("<deviceConfigId>4000</deviceConfigId>", "10.0.0.2")
            + &nic("<deviceConfigId>-1</deviceConfigId>", "172.17.0.1")
            + &nic("", "10.0.0.3");
        let found = machine(
            &with("VirtualMachine", &[("guest.net", &net), ("guest.ipAddress", "10.0.0.2")]),
            "x".into(),
        );
        assert_eq!(found.addresses, ["10.0.0.2", "10.0.0.3"]);
    }

    #[test]
    fn inventory_datastore_hosts_are_those_that_reach_it() {
        let with = |kind: &str, values: &[(&str, &str)]| {
            let mut item = item(kind, "x-1", "x", "group-d1");
            for (name, value) in values {
                item.values
                    .insert((*name).into(), xml::parse(&format!("<val>{value}</val>")).expect("XML"));
            }
            item
        };
        let mount =
            |host: &str, info: &str| format!("<DatastoreHostMount><key>{host}</key><mountInfo>{info}</mountInfo></DatastoreHostMount>");
        let mounts = mount("h1", "")
            + &mount("h2", "<mounted>false</mounted>")
            + &mount("h3", "<accessible>false</accessible>")
            + &mount("h4", "<accessible>true</accessible>");
        assert_eq!(datastore(&with("Datastore", &[("host", &mounts)]), "x".into()).hosts, ["h1", "h4"]);
    }
}
