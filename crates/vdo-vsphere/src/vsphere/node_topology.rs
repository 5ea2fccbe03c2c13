// SPDX-License-Identifier: Apache-2.0
//! The table of `vdoctl doctor topology`: zone and region labels of each node, the tags they come from, and mismatches.

use super::topology_tags::find_tag;
use super::{Inventory, NodeReport, Requirements, Tagging, labels_of_category};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::Node;

/// A node in a tag category.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTopology {
    /// The node.
    pub node: String,
    /// The inventory path of its machine; empty if the machine was not found.
    pub machine: String,
    /// The category.
    pub category: String,
    /// The labels of the node that drivers set from a tag of the category.
    pub labels: BTreeMap<String, String>,
    /// The tag that applies to the node; empty if there is none.
    pub tag: String,
    /// The objects that have a tag of the category, the nearest to the machine first. No driver reads a tag on the machine itself.
    pub tags: Vec<TagPlace>,
    /// The reason of the problem; empty if there is no problem.
    pub reason: String,
    /// The problem; empty if there is no problem.
    pub problem: String,
}

/// A tag on an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagPlace {
    /// The tag.
    pub tag: String,
    /// The kind of the object, as vSphere names it.
    pub kind: String,
    /// The inventory path of the object.
    pub path: String,
}

/// The lines of all nodes, by node, in the categories that some driver reads.
#[must_use]
pub fn node_topology(
    requirements: &Requirements,
    inventory: &Inventory,
    nodes: &[Arc<Node>],
    reports: &[NodeReport],
    tagging: &Tagging,
) -> Vec<NodeTopology> {
    let by_name: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.name.as_str(), node.as_ref())).collect();
    let mut all = Vec::new();
    for report in reports {
        for category in requirements.all_categories() {
            let mut line = NodeTopology {
                node: report.node.clone(),
                machine: report.machine.clone(),
                category: category.to_owned(),
                ..NodeTopology::default()
            };
            if let Some(node) = by_name.get(report.node.as_str()) {
                let keys = labels_of_category(requirements, category).into_iter();
                let own = keys.filter_map(|key| Some((key.clone(), node.place.label(&key)?.to_owned())));
                line.labels = own.collect();
            }
            let problem = judge(&mut line, report, inventory, tagging);
            (line.reason, line.problem) = problem.map(|(reason, text)| (reason.as_str().to_owned(), text)).unwrap_or_default();
            all.push(line);
        }
    }
    all.sort_by(|a, b| (&a.node, &a.category).cmp(&(&b.node, &b.category)));
    all
}

/// Fills in the tags, and tells what does not fit.
fn judge(line: &mut NodeTopology, report: &NodeReport, inventory: &Inventory, tagging: &Tagging) -> Option<(Reason, String)> {
    let category = line.category.as_str();
    let Some(machine) = report.at.and_then(|at| inventory.machines.get(at)) else {
        return Some((Reason::NodeNotFound, "its machine is not known".into()));
    };
    let way = inventory.ancestry(&machine.host);
    let tags = |id: &str, kind: &str, path: &str| {
        let of = tagging.attached.get(id).into_iter().flatten().filter(|(own, _)| own == category);
        let place = |(_, tag): &(String, String)| TagPlace {
            tag: tag.clone(),
            kind: kind.to_owned(),
            path: path.to_owned(),
        };
        of.map(place).collect::<Vec<_>>()
    };
    let mut places = tags(&machine.id, "VirtualMachine", &machine.path);
    let on_machine = places.first().map(|place| place.tag.clone());
    places.extend(way.iter().flat_map(|id| {
        let kind = inventory.places.get(*id).map_or("Folder", |place| place.object.kind.as_str());
        tags(id, kind, inventory.name_of(id))
    }));
    line.tags = places;
    if !tagging.categories.contains(category) {
        return Some((Reason::TopologyCategoryNotFound, "the vCenter has no such category".into()));
    }
    let found = find_tag(&way, category, inventory, tagging);
    let Some((_, tag)) = found.nearest else {
        let more = on_machine.map(|tag| format!("; the machine has tag {tag:?}, but no driver reads tags of machines"));
        let text = format!("its host and the objects above it have no tag{}", more.unwrap_or_default());
        return Some((Reason::TopologyTagMissing, text));
    };
    line.tag = tag.to_owned();
    if let Some(text) = found.ambiguous {
        return Some((Reason::TopologyTagAmbiguous, text));
    }
    let (label, value) = line.labels.iter().find(|(_, value)| *value != tag)?;
    Some((
        Reason::TopologyLabelDiffers,
        format!("label {label} is {value:?}, but the tag is {tag:?}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::required_privileges::tests::{inventory, nodes};
    use vdo_api::facts::Place;

    #[test]
    fn topology_line_each_case_names_tag_place_and_problem() {
        let requirements = Requirements {
            zone_and_region: Some(("zone".into(), "region".into())),
            categories: vec!["zone".into()],
            ..Requirements::default()
        };
        let reported = |attached: &[(&str, &str)], categories: &[&str], labels: &[(&str, &str)], reports: &[NodeReport]| {
            let mut tagging = Tagging {
                categories: categories.iter().map(|one| (*one).to_owned()).collect(),
                ..Tagging::default()
            };
            for (object, tag) in attached {
                let tags = tagging.attached.entry((*object).to_owned()).or_default();
                tags.insert(("zone".to_owned(), (*tag).to_owned()));
            }
            let node = Node {
                name: "n1".into(),
                place: Place {
                    labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
                    ..Place::default()
                },
                ..Node::default()
            };
            let lines = node_topology(&requirements, &inventory(), &[node.into()], reports, &tagging);
            assert_eq!(
                lines.iter().map(|line| line.category.as_str()).collect::<Vec<_>>(),
                ["region", "zone"]
            );
            let zone = &lines[1];
            let places: Vec<String> = zone
                .tags
                .iter()
                .map(|place| format!("{} on {} {}", place.tag, place.kind, place.path))
                .collect();
            format!("{} [{}] {} {}", zone.tag, places.join(", "), zone.reason, zone.problem)
        };
        let both = &["zone", "region"][..];
        let cpi = ("topology.kubernetes.io/zone", "a");
        let csi = ("topology.csi.vmware.com/zone", "b");
        for (attached, categories, labels, expected) in [
            (
                &[("cluster", "a")][..],
                both,
                &[cpi][..],
                "a [a on ClusterComputeResource /DC0/host/C0]  ",
            ),
            (
                &[("cluster", "a")],
                both,
                &[cpi, csi],
                "a [a on ClusterComputeResource /DC0/host/C0] TopologyLabelDiffers label topology.csi.vmware.com/zone is \"b\", but \
                 the tag is \"a\"",
            ),
            (
                &[("vm-1", "a")],
                both,
                &[],
                " [a on VirtualMachine /DC0/vm/n1] TopologyTagMissing its host and the objects above it have no \
                 tag; the machine has tag \"a\", but no driver reads tags of machines",
            ),
            (
                &[("host-1", "a"), ("dc", "b")],
                both,
                &[],
                "a [a on HostSystem /DC0/host/C0/h1, b on Datacenter /DC0] TopologyTagAmbiguous /DC0/host/C0/h1 has tag \"a\" of \
                 category zone, but /DC0 above it has tag \"b\"",
            ),
            (
                &[],
                &["region"][..],
                &[],
                " [] TopologyCategoryNotFound the vCenter has no such category",
            ),
        ] {
            assert_eq!(reported(attached, categories, labels, &nodes()), expected);
        }
        let nowhere = [NodeReport {
            node: "n1".into(),
            ..NodeReport::default()
        }];
        assert_eq!(reported(&[], both, &[cpi], &nowhere), " [] NodeNotFound its machine is not known");
    }
}
