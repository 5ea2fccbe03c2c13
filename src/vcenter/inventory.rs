//! What is in a vCenter, read with one paged query.

use super::method::{Method, element};
use super::session::{Caller, Moref};
use super::xml::Element;
use super::{ProbeError, SessionError};
use crate::facts::{Inventory, Machine};
use std::collections::BTreeMap;

/// Objects in one page: few enough for an answer of some megabytes, many enough for ten pages of five thousand.
const PAGE: usize = 500;

/// No vCenter has more objects than its supported maximum; one that goes on for ever is not read for ever.
const MAX_PAGES: usize = 1000;

/// A tree of folders is about as deep as people can think.
const MAX_DEPTH: usize = 64;

const MACHINE: [&str; 11] = [
    "name",
    "parent",
    "config.uuid",
    "config.instanceUuid",
    "config.version",
    "config.flags.diskUuidEnabled",
    "guest.hostName",
    "guest.ipAddress",
    "guest.net",
    "guest.toolsRunningStatus",
    "runtime.powerState",
];

/// A datacenter, a folder or a machine as it was read.
struct Item {
    moref: Moref,
    values: BTreeMap<String, Element>,
}

impl Item {
    fn text(&self, path: &str) -> String {
        self.values.get(path).map(|value| value.text.trim().to_owned()).unwrap_or_default()
    }
}

pub(super) async fn read(caller: &mut Caller<'_>) -> Result<Inventory, SessionError> {
    let (views, root) = (caller.service().views.clone(), caller.service().root.clone());
    let arguments =
        root.element("container") + "<type>Datacenter</type><type>Folder</type><type>VirtualMachine</type>" + &element("recursive", "true");
    let created = caller.call(Method::CreateContainerView, &views, &arguments).await?;
    let view = created
        .child("returnval")
        .map(Moref::of)
        .ok_or_else(|| malformed(caller, "it made no view".to_owned()))?;
    let items = pages(caller, &view).await;
    // It would go with the session; what counts is what was read.
    let destroyed = caller.call(Method::DestroyView, &view, "").await;
    let items = items?;
    destroyed?;
    Ok(assemble(&root, &items))
}

async fn pages(caller: &mut Caller<'_>, view: &Moref) -> Result<Vec<Item>, SessionError> {
    let collector = caller.service().collector.clone();
    let (mut items, mut method, mut arguments) = (vec![], Method::RetrievePropertiesEx, specification(view));
    for _ in 0..MAX_PAGES {
        let response = caller.call(method, &collector, &arguments).await?;
        let Some(page) = response.child("returnval") else {
            return Ok(items);
        };
        for object in page.all("objects") {
            let missing = object
                .all("missingSet")
                .filter_map(|missing| missing.child("fault")?.child("fault"));
            if missing.into_iter().any(|fault| fault.xsi_type == "NotAuthenticated") {
                return Err(caller.lost());
            }
            items.extend(item(object));
        }
        let token = page.text_of("token");
        if token.is_empty() {
            return Ok(items);
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

fn specification(view: &Moref) -> String {
    let set = |kind: &str, paths: &[&str]| {
        let paths: String = paths.iter().map(|path| element("pathSet", path)).collect();
        format!("<propSet><type>{kind}</type><all>false</all>{paths}</propSet>")
    };

    format!(
        concat!(
            "<specSet>{}{}{}<objectSet>{}<skip>true</skip>",
            r#"<selectSet xsi:type="TraversalSpec"><name>v</name><type>ContainerView</type><path>view</path><skip>false</skip></selectSet>"#,
            "</objectSet></specSet><options><maxObjects>{}</maxObjects></options>"
        ),
        set("Datacenter", &["name", "parent"]),
        set("Folder", &["name", "parent"]),
        set("VirtualMachine", &MACHINE),
        view.element("obj"),
        PAGE
    )
}

fn item(object: &Element) -> Option<Item> {
    let moref = Moref::of(object.child("obj")?);
    let values = object
        .all("propSet")
        .filter_map(|set| Some((set.text_of("name"), set.child("val")?.clone())))
        .collect();
    Some(Item { moref, values })
}

/// Names and parents become paths; everything else is copied.
fn assemble(root: &Moref, items: &[Item]) -> Inventory {
    let known: BTreeMap<&str, &Item> = items.iter().map(|item| (item.moref.id.as_str(), item)).collect();
    let mut inventory = Inventory::default();
    for item in items {
        let (path, datacenter) = way(root, &known, item);
        match item.moref.kind.as_str() {
            "Datacenter" => inventory.datacenters.push(path),
            "VirtualMachine" => inventory.machines.push(machine(item, path, datacenter)),
            _ => {}
        }
    }
    inventory.datacenters.sort();
    inventory.machines.sort_by(|a, b| a.path.cmp(&b.path));
    inventory
}

/// The path from the root, and that of the datacenter on it. A machine in a vApp has no parent that can be followed.
fn way(root: &Moref, known: &BTreeMap<&str, &Item>, item: &Item) -> (String, String) {
    let (mut names, mut datacenter) = (vec![], None);
    let mut at = Some(item);
    while let Some(here) = at.filter(|_| names.len() < MAX_DEPTH) {
        if here.moref.kind == "Datacenter" {
            datacenter = Some(names.len());
        }
        names.push(here.text("name"));
        let parent = here.text("parent");
        at = known.get(parent.as_str()).copied();
        if at.is_none() && parent != root.id {
            return (names.swap_remove(0), String::new());
        }
    }
    let join = |names: &[String]| names.iter().rev().map(|name| format!("/{name}")).collect::<String>();
    (join(&names), datacenter.map(|at| join(&names[at..])).unwrap_or_default())
}

fn machine(item: &Item, path: String, datacenter: String) -> Machine {
    let mut addresses: Vec<String> = item
        .values
        .get("guest.net")
        .into_iter()
        .flat_map(|net| net.all("GuestNicInfo"))
        .flat_map(|nic| nic.all("ipAddress"))
        .map(|address| address.text.trim().to_owned())
        .chain([item.text("guest.ipAddress")])
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort();
    addresses.dedup();
    Machine {
        path,
        datacenter,
        uuid: item.text("config.uuid"),
        instance_uuid: item.text("config.instanceUuid"),
        hardware: item.text("config.version"),
        disk_uuid: item.text("config.flags.diskUuidEnabled").parse().ok(),
        host_name: item.text("guest.hostName"),
        addresses,
        tools_running: item.text("guest.toolsRunningStatus") == "guestToolsRunning",
        power: item.text("runtime.powerState"),
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
            moref: Moref {
                kind: kind.into(),
                id: id.into(),
            },
            values: values.into_iter().map(|(k, v)| (k.to_owned(), value(v))).collect(),
        }
    }

    #[test]
    fn paths_through_nested_folders() {
        let root = Moref {
            kind: "Folder".into(),
            id: "group-d1".into(),
        };
        let found = assemble(
            &root,
            &[
                item("VirtualMachine", "vm-1", "node", "group-v2"),
                item("VirtualMachine", "vm-2", "in an app", ""),
                item("VirtualMachine", "vm-3", "unseen", "group-v9"),
                item("Folder", "group-v2", "vm", "datacenter-2"),
                item("Datacenter", "datacenter-2", "DC%2f0", "group-d3"),
                item("Datacenter", "datacenter-1", "DC0", "group-d1"),
                item("Folder", "group-d3", "Europe", "group-d1"),
                item("Folder", "group-x", "loop", "group-x"),
            ],
        );
        assert_eq!(found.datacenters, ["/DC0", "/Europe/DC%2f0"]);
        let paths: Vec<_> = found.machines.iter().map(|m| (m.path.as_str(), m.datacenter.as_str())).collect();
        assert_eq!(
            paths,
            [("/Europe/DC%2f0/vm/node", "/Europe/DC%2f0"), ("in an app", ""), ("unseen", "")]
        );
    }
}
