// SPDX-License-Identifier: Apache-2.0
//! Decides which objects get which tag, so that both drivers find the zones and regions that the labels of the nodes name.
//!
//! Both drivers look on the host that a machine runs on and on everything that the host lies in. A tag is placed as high as its kind of
//! category usually is, a region on the datacenter and everything else on the cluster, but never above machines of which another value is
//! known, or none: in this case the hosts get the tag.

use super::Catalog;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::facts::Node;
use vdo_api::types::{name_list, shell_word};
use vdo_vsphere::vsphere::{
    Advice, Inventory, ManagedObject, NodeReport, Requirements, Tagging, labels_of_category, tag_of_host, taggable,
};

/// What is to be done for one category.
#[derive(Debug, Default)]
pub(super) struct Placement<'a> {
    /// The objects that get a tag, with the tag.
    pub(super) tags: BTreeMap<&'a ManagedObject, &'a str>,
    /// The nodes that get a zone or region by that.
    pub(super) nodes: Vec<&'a str>,
    /// What no command can decide, and what to do.
    pub(super) open: Vec<(String, Advice)>,
}

/// A node in a category.
struct Seat<'a> {
    node: &'a str,
    host: &'a str,
    /// The tag that counts for it.
    tag: Option<&'a str>,
    /// What its labels name.
    labels: BTreeSet<&'a str>,
}

impl Seat<'_> {
    /// What it is or should be, if that is known.
    fn value(&self) -> Option<&str> {
        match (self.tag, self.labels.len()) {
            (Some(tag), _) => Some(tag),
            (None, 1) => self.labels.first().copied(),
            _ => None,
        }
    }
}

/// The objects whose tags decide where a tag may go: all that the hosts of the nodes lie in, and the other hosts of their clusters.
#[must_use]
pub fn read_for(inventory: &Inventory, reports: &[NodeReport]) -> Vec<ManagedObject> {
    let mut all: BTreeSet<ManagedObject> = taggable(inventory, reports, false).into_iter().collect();
    let clusters: BTreeSet<&str> = hosts(inventory, reports).filter_map(|host| cluster(inventory, host)).collect();
    let members = inventory.places.values().filter(|place| clusters.contains(place.parent.as_str()));
    all.extend(members.map(|place| place.object.clone()));
    all.into_iter().collect()
}

/// Finds the places for the tags of a category.
pub(super) fn place<'a>(
    category: &str,
    requirements: &Requirements,
    nodes: &'a [Arc<Node>],
    reports: &'a [NodeReport],
    inventory: &'a Inventory,
    catalog: &'a Catalog,
    tagging: &'a Tagging,
) -> Placement<'a> {
    let keys = labels_of_category(requirements, category);
    let by_name: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.name.as_str(), node.as_ref())).collect();
    let seat = |report: &'a NodeReport| {
        let host = inventory.machines.get(report.at?)?.host.as_str();
        let node = by_name.get(report.node.as_str())?;
        Some(Seat {
            node: &report.node,
            host,
            tag: tag_of_host(inventory, tagging, host, category),
            labels: keys.iter().filter_map(|key| node.place.label(key)).collect(),
        })
    };
    let seats: Vec<Seat<'a>> = reports.iter().filter_map(seat).collect();
    let mut placement = Placement::default();
    let mut disagreeing = BTreeSet::new();
    for seat in seats.iter().filter(|seat| seat.tag.is_none()) {
        let wanted = match seat.labels.len() {
            0 => continue,
            1 => seat.labels.first().copied().unwrap_or_default(),
            _ => {
                let values: Vec<&str> = seat.labels.iter().copied().collect();
                let what = format!(
                    "the labels {} of node {} have different values: {}",
                    keys.join(" and "),
                    seat.node,
                    name_list(&values)
                );
                placement
                    .open
                    .push((what, "Give the labels the same value, and run this command again.".into()));
                continue;
            }
        };
        match target(category, requirements, seat, wanted, &seats, inventory, catalog) {
            Some(object) => {
                placement.tags.insert(object, wanted);
                placement.nodes.push(seat.node);
            }
            None => {
                disagreeing.insert(seat.host);
            }
        }
    }
    placement
        .open
        .extend(disagreeing.into_iter().map(|host| disagreement(category, host, &seats, inventory)));
    let unlabelled = unlabelled(category, &keys, &seats, &placement, inventory);
    placement.open.extend(unlabelled);
    placement
}

/// Nodes on one host whose labels do not name one value.
fn disagreement(category: &str, host: &str, seats: &[Seat<'_>], inventory: &Inventory) -> (String, Advice) {
    let own: Vec<&str> = seats.iter().filter(|seat| seat.host == host).map(|seat| seat.node).collect();
    let what = format!(
        "nodes {} run on host {}, but their labels do not have the same value for {category}",
        name_list(&own),
        inventory.name_of(host)
    );
    (
        what,
        "Move machines to another host or correct the labels, and run this command again.".into(),
    )
}

/// Nodes that neither a tag nor a label names a value for, unless the tag of another node counts for them.
fn unlabelled(
    category: &str,
    keys: &[String],
    seats: &[Seat<'_>],
    placement: &Placement<'_>,
    inventory: &Inventory,
) -> Option<(String, Advice)> {
    let is_tagged = |id: &&str| placement.tags.keys().any(|object| object.id == **id);
    let nodes: Vec<&str> = seats
        .iter()
        .filter(|seat| seat.tag.is_none() && seat.labels.is_empty())
        .filter(|seat| !inventory.ancestry(seat.host).iter().any(is_tagged))
        .map(|seat| seat.node)
        .collect();
    let what = format!(
        "no tag of category {category} applies to nodes {}, and these nodes have no label for this category",
        name_list(&nodes)
    );
    let command = format!("kubectl label node {} {}=VALUE", shell_word(nodes.first()?), keys.first()?);
    let remedy = Advice::run(
        "Set the label on each of these nodes as below, then run the fix again. For example:",
        command,
    );
    Some((what, remedy))
}

/// The object that gets the tag of a node.
fn target<'a>(
    category: &str,
    requirements: &Requirements,
    seat: &Seat<'a>,
    wanted: &str,
    seats: &[Seat<'a>],
    inventory: &'a Inventory,
    catalog: &Catalog,
) -> Option<&'a ManagedObject> {
    let is_region = requirements.zone_and_region.as_ref().is_some_and(|(_, region)| region == category);
    let way = inventory.ancestry(seat.host);
    let of_kind = |kind: &str| {
        way.iter()
            .copied()
            .find(|id| inventory.places.get(*id).is_some_and(|place| place.object.kind == kind))
    };
    let candidates = [
        of_kind("Datacenter").filter(|_| is_region),
        cluster(inventory, seat.host),
        Some(seat.host),
    ];
    let fits = |id: &&str| {
        let below = |place: &str| inventory.ancestry(place).contains(id);
        let nodes = seats
            .iter()
            .filter(|other| below(other.host))
            .all(|other| other.value() == Some(wanted));
        let differs = |tags: &BTreeSet<(String, String)>| tags.iter().any(|(own, tag)| own == category && tag != wanted);
        let tags = catalog
            .attached
            .iter()
            .filter(|(object, _)| below(object))
            .any(|(_, tags)| differs(tags));
        nodes && !tags
    };
    let found = candidates.into_iter().flatten().find(fits)?;
    inventory.places.get(found).map(|place| &place.object)
}

fn hosts<'a>(inventory: &'a Inventory, reports: &'a [NodeReport]) -> impl Iterator<Item = &'a str> {
    let machines = reports.iter().filter_map(|report| inventory.machines.get(report.at?));
    machines.map(|machine| machine.host.as_str())
}

/// The cluster that a host lies in. A host alone lies in an object that people do not see.
fn cluster<'a>(inventory: &'a Inventory, host: &'a str) -> Option<&'a str> {
    let parent = inventory.places.get(inventory.places.get(host)?.parent.as_str())?;
    (parent.object.kind == "ClusterComputeResource").then_some(parent.object.id.as_str())
}
