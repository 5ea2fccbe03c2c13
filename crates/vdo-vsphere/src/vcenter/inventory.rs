// SPDX-License-Identifier: Apache-2.0
//! Reads the inventory of a vCenter with one paged query; `inventory_objects.rs` converts each object of an answer.

use super::call::Caller;
use super::identifiers::{identifier, reference};
use super::inspection_limits::Held;
use super::inventory_objects::{COST, Gathered, Item};
use super::offload::Unread;
use super::requests::{Method, element, refer};
use super::xml::Element;
use crate::vsphere::{Inventory, ManagedObject, SessionError};
use std::collections::BTreeMap;

/// Objects in one page. Of a page, its text is what is held in memory: some megabytes.
const PAGE: usize = 1000;

/// No vCenter has more objects than its supported maximum; one that goes on for ever is not read for ever.
const MAX_PAGES: usize = 1000;

/// What is read of each kind of object.
const KINDS: [(&str, &[&str]); 7] = [
    ("Datacenter", &["name", "parent", "datastoreFolder", "hostFolder", "vmFolder"]),
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
            "summary.capacity",
            "summary.freeSpace",
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
            "guest.net",
            "guest.toolsRunningStatus",
            "runtime.host",
            "runtime.powerState",
            "snapshot.currentSnapshot",
        ],
    ),
];

/// Whether an object of an answer means that the session has ended: vCenter answers with a fault, the simulator with this.
fn is_lost(object: &Element) -> bool {
    let faults = object
        .all("missingSet")
        .filter_map(|missing| missing.child("fault")?.child("fault"));
    faults.into_iter().any(|fault| fault.xsi_type == "NotAuthenticated")
}

pub async fn read(caller: &mut Caller<'_>) -> Result<Inventory, SessionError> {
    let (views, root) = (caller.service().views.clone(), caller.service().root.clone());
    let kinds: String = KINDS.iter().map(|(kind, _)| element("type", kind)).collect();
    let arguments = refer("container", &root) + &kinds + &element("recursive", "true");
    let created = caller.call(Method::CreateContainerView, &views, &arguments).await?;
    let view = created
        .child("returnval")
        .ok_or_else(|| "it contains no view".to_owned())
        .and_then(reference)
        .map_err(|because| caller.session.malformed(because))?;
    drop(created);
    let gathered = Gathered::new(root, caller.budget.hold());
    let read = pages(caller, &of_view(&view), gathered, Gathered::take).await;
    // It would go with the session; what counts is what was read.
    let destroyed = caller.call(Method::DestroyView, &view, "").await;
    let gathered = read?;
    destroyed?;
    caller.offload(|work| gathered.finish(work)).await
}

/// Reads what is above datastores and hosts from the root on, so that no view has to be made and destroyed.
pub async fn hosts_and_datastores(caller: &mut Caller<'_>) -> Result<Inventory, SessionError> {
    let root = caller.service().root.clone();
    let gathered = Gathered::new(root.clone(), caller.budget.hold());
    let gathered = pages(caller, &from_root(&root), gathered, Gathered::take).await?;
    caller.offload(|work| gathered.finish(work)).await
}

/// Reads the devices of some machines.
pub async fn look_into(caller: &mut Caller<'_>, inventory: &mut Inventory, machines: &[usize]) -> Result<(), SessionError> {
    let mut found = Devices(BTreeMap::new(), caller.budget.hold());
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
        found = pages(caller, &specification, found, Devices::take).await?;
    }
    let Devices(mut found, held) = found;
    held.keep();
    for at in machines {
        if let Some(machine) = inventory.machines.get_mut(*at) {
            machine.controllers = found.remove(&machine.id);
        }
    }
    Ok(())
}

/// The kinds of SCSI controllers of machines.
struct Devices(BTreeMap<String, Vec<String>>, Held);

impl Devices {
    fn take(&mut self, item: Item) -> Result<(), Unread> {
        let devices = item.values.get("config.hardware.device");
        let devices = devices.into_iter().flat_map(|devices| &devices.children);
        let kinds = devices.map(|device| device.xsi_type.clone());
        let controllers: Vec<String> = kinds.filter(|kind| is_scsi(kind)).collect();
        self.1.grow(COST + controllers.len() * COST)?;
        self.0.insert(item.object.id, controllers);
        Ok(())
    }
}

fn is_scsi(kind: &str) -> bool {
    matches!(
        kind,
        "ParaVirtualSCSIController" | "VirtualLsiLogicController" | "VirtualLsiLogicSASController" | "VirtualBusLogicController"
    )
}

/// What is read of pages, and how.
struct Page<T> {
    lost: bool,
    taken: T,
    take: fn(&mut T, Item) -> Result<(), Unread>,
}

/// Reads properties of objects page by page, and hands each object to `take`, so that a long list takes no more memory than a page.
pub async fn pages<T: Send + 'static>(
    caller: &mut Caller<'_>,
    specification: &str,
    taken: T,
    take: fn(&mut T, Item) -> Result<(), Unread>,
) -> Result<T, SessionError> {
    let collector = caller.service().collector.clone();
    let (mut method, mut arguments) = (Method::RetrievePropertiesEx, specification.to_owned());
    let mut page = Page { lost: false, taken, take };
    for _ in 0..MAX_PAGES {
        let response;
        (response, page) = caller
            .call_each(method, &collector, &arguments, page, |page, mut object| {
                page.lost |= is_lost(&object);
                match Item::of(&mut object)? {
                    Some(item) => (page.take)(&mut page.taken, item),
                    None => Ok(()),
                }
            })
            .await?;
        if page.lost {
            return Err(caller.session.lost());
        }
        let token = response.child("returnval").map(|page| page.text_of("token")).unwrap_or_default();
        if token.is_empty() {
            return Ok(page.taken);
        }
        let token = identifier(&token).map_err(|because| caller.session.malformed(because))?;
        (method, arguments) = (Method::ContinueRetrievePropertiesEx, element("token", &token));
    }
    let endless = format!("it has more than {MAX_PAGES} pages");
    Err(caller.session.malformed(endless).into())
}

/// The part of a question that names the properties of a kind.
pub fn properties(kind: &str, paths: &[&str]) -> String {
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

/// The way from the root folder to hosts and datastores: a kind, the property that leads on, and what that leads to.
const WAYS: [(&str, &str, &[&str]); 4] = [
    (
        "Folder",
        "childEntity",
        &[
            "Folder.childEntity",
            "Datacenter.hostFolder",
            "Datacenter.datastoreFolder",
            "ComputeResource.host",
        ],
    ),
    ("Datacenter", "hostFolder", &["Folder.childEntity"]),
    ("Datacenter", "datastoreFolder", &["Folder.childEntity"]),
    ("ComputeResource", "host", &[]),
];

fn from_root(root: &ManagedObject) -> String {
    let sets = KINDS.iter().filter(|(kind, _)| !matches!(*kind, "VirtualMachine" | "VirtualApp"));
    let sets: String = sets.map(|(kind, paths)| properties(kind, paths)).collect();
    let ways = WAYS.iter().map(|(kind, path, next)| {
        let next: String = next
            .iter()
            .map(|name| format!("<selectSet>{}</selectSet>", element("name", name)))
            .collect();
        let name = element("name", &format!("{kind}.{path}"));
        let steps = element("type", kind) + &element("path", path) + &element("skip", "false");
        format!(r#"<selectSet xsi:type="TraversalSpec">{name}{steps}{next}</selectSet>"#)
    });
    let object = refer("obj", root);
    let ways: String = ways.collect();
    format!(
        "<specSet>{sets}<objectSet>{object}<skip>false</skip>{ways}</objectSet></specSet><options><maxObjects>{PAGE}</maxObjects></options>"
    )
}
