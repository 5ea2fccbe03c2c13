// SPDX-License-Identifier: Apache-2.0
//! Compares vCenter tags with the zone and region labels of nodes (TopologyConsistent), and finds the tag that applies to a node.
//!
//! `node_topology.rs` makes the table of `vdoctl doctor topology`.

use super::check::shell;
use super::{Advice, Check, Finding, NodeReport};
use super::{Inventory, ManagedObject, Requirements, Tagging};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::Node;
use vdo_api::types::{count, name_list};

/// Everything that can bear a tag of a zone or region: the hosts of the nodes, and all that they lie in. With `machines`, also these, whose
/// tags no driver reads.
#[must_use]
pub fn taggable(inventory: &Inventory, nodes: &[NodeReport], machines: bool) -> Vec<ManagedObject> {
    let all = || nodes.iter().filter_map(|node| inventory.machines.get(node.at?));
    let ids: BTreeSet<&str> = all().flat_map(|machine| inventory.ancestry(&machine.host)).collect();
    let places = ids
        .iter()
        .filter_map(|id| inventory.places.get(*id))
        .map(|place| place.object.clone());
    let machines = all().filter(|_| machines).map(|machine| ManagedObject {
        kind: "VirtualMachine".into(),
        id: machine.id.clone(),
    });
    places.chain(std::iter::once(inventory.root.clone())).chain(machines).collect()
}

/// What the tags say of a node.
struct Says {
    /// The tag of each category, as far as there is one.
    tags: BTreeMap<String, String>,
    findings: Vec<Finding>,
}

/// Compares tags with labels. Gives the stage, and the segment of each node in the categories of the CSI driver.
#[must_use]
pub fn topology(
    requirements: &Requirements,
    inventory: &Inventory,
    nodes: &[Arc<Node>],
    reports: &[NodeReport],
    tagging: &Tagging,
) -> (Check, BTreeMap<String, String>) {
    let kind = ConditionType::TopologyConsistent;
    let categories = requirements.all_categories();
    if categories.is_empty() {
        return (Check::passed(kind, "no topology is requested"), BTreeMap::new());
    }
    let mut groups: BTreeMap<(Reason, String), (Finding, Vec<String>)> = BTreeMap::new();
    let mut add = |what: String, finding: Finding, node: &str| {
        groups
            .entry((finding.reason, what))
            .or_insert_with(|| (finding, vec![]))
            .1
            .push(node.to_owned());
    };
    for category in categories.iter().filter(|category| !tagging.categories.contains(**category)) {
        let finding = Finding::new(
            Reason::TopologyCategoryNotFound,
            format!("there is no tag category {category:?} in the vCenter"),
            Advice::run(
                "Create the tag category, or correct its name in the VDOConfig:",
                format!("govc tags.category.create -m=false {}", shell(category)),
            ),
        );
        add((*category).to_owned(), finding, "");
    }
    let existing: Vec<&str> = categories
        .into_iter()
        .filter(|category| tagging.categories.contains(*category))
        .collect();
    let labels: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.name.as_str(), node.as_ref())).collect();
    let mut segments = BTreeMap::new();
    let mut looked_at = 0;
    for report in reports {
        let Some(machine) = report.at.and_then(|at| inventory.machines.get(at)) else {
            continue;
        };
        looked_at += 1;
        let says = says(&inventory.ancestry(&machine.host), &existing, inventory, tagging);
        let node = labels.get(report.node.as_str());
        let differing = node.map(|node| differing(requirements, node, &says.tags)).unwrap_or_default();
        for (what, finding) in says
            .findings
            .into_iter()
            .map(|finding| (finding.message.clone(), finding))
            .chain(differing)
        {
            add(what, finding, &report.node);
        }
        let segment = requirements
            .categories
            .iter()
            .filter_map(|c| Some(format!("{c}={}", says.tags.get(c)?)));
        let segment = segment.collect::<Vec<_>>().join(",");
        if !segment.is_empty() {
            segments.insert(report.node.clone(), segment);
        }
    }
    let findings = groups.into_values().map(|(mut finding, nodes)| {
        if !nodes[0].is_empty() {
            finding.message = format!("{} (nodes {})", finding.message, name_list(&nodes));
        }
        finding
    });
    let passed = format!("the tags of {} exist, and the node labels match them", count(looked_at, "node"));
    (Check::of(kind, passed, findings.collect()), segments)
}

/// What the tags of one category between the host of a node and the root say.
pub(super) struct CategoryTag<'a> {
    /// The object with the nearest tag, and that tag.
    pub(super) nearest: Option<(&'a str, &'a str)>,
    /// Why another one may be taken instead.
    pub(super) ambiguous: Option<String>,
}

/// Looks for the tag of a category. The nearest counts; a farther one that differs may be taken instead by a driver.
pub(super) fn find_tag<'a>(way: &[&'a str], category: &str, inventory: &Inventory, tagging: &'a Tagging) -> CategoryTag<'a> {
    let (mut nearest, mut ambiguous) = (None, None);
    for id in way.iter().copied() {
        let attached = tagging.attached.get(id).into_iter().flatten().filter(|(of, _)| of == category);
        let tags: Vec<&str> = attached.map(|(_, tag)| tag.as_str()).collect();
        match (tags.as_slice(), nearest) {
            ([], _) => {}
            ([tag], None) => nearest = Some((id, *tag)),
            ([tag], Some((_, nearer))) if nearer == *tag => {}
            ([tag], Some((at, nearer))) => {
                ambiguous = ambiguous.or(Some(format!(
                    "{} has tag {nearer:?} of category {category}, but {} above it has tag {tag:?}",
                    inventory.name_of(at),
                    inventory.name_of(id)
                )));
            }
            (many, _) => {
                let which = name_list(many);
                let reported = format!("{} has several tags of category {category}: {which}", inventory.name_of(id));
                ambiguous = ambiguous.or(Some(reported));
                nearest = nearest.or(Some((id, many[0])));
            }
        }
    }
    CategoryTag { nearest, ambiguous }
}

/// The tag of a category that counts for machines on a host, if there is one.
#[must_use]
pub fn tag_of_host<'a>(inventory: &'a Inventory, tagging: &'a Tagging, host: &'a str, category: &str) -> Option<&'a str> {
    let found = find_tag(&inventory.ancestry(host), category, inventory, tagging);
    found.nearest.map(|(_, tag)| tag)
}

/// What the tags say in all categories.
fn says(way: &[&str], categories: &[&str], inventory: &Inventory, tagging: &Tagging) -> Says {
    let mut says = Says {
        tags: BTreeMap::new(),
        findings: vec![],
    };
    for category in categories {
        let found = find_tag(way, category, inventory, tagging);
        if let Some((_, tag)) = found.nearest {
            says.tags.insert((*category).to_owned(), tag.to_owned());
        }
        if let Some(reported) = found.ambiguous {
            let remedy = Advice::run(
                "Keep only one tag of the category on the host and on the objects above the host:",
                "govc tags.detach -c CATEGORY TAG PATH",
            );
            says.findings.push(Finding::new(Reason::TopologyTagAmbiguous, reported, remedy));
        } else if found.nearest.is_none() {
            let host = way.first().map_or("", |id| inventory.name_of(id));
            says.findings.push(Finding::new(
                Reason::TopologyTagMissing,
                format!("host {host} and the objects above it have no tag of category {category}"),
                Advice::run(
                    "Attach a tag of this category to the host, its cluster or its datacenter:",
                    format!("govc tags.attach -c {} TAG {}", shell(category), shell(host)),
                ),
            ));
        }
    }
    says
}

/// The labels of nodes that a driver sets from the tag of a category, that of the cloud provider first.
#[must_use]
pub fn labels_of_category(requirements: &Requirements, category: &str) -> Vec<String> {
    let of_cpi = requirements.zone_and_region.iter().flat_map(|(zone, region)| {
        let both = [(zone, "topology.kubernetes.io/zone"), (region, "topology.kubernetes.io/region")];
        both.into_iter()
            .filter(|(own, _)| *own == category)
            .map(|(_, label)| label.to_owned())
    });
    let of_csi = requirements.categories.iter().filter(|own| *own == category);
    of_cpi.chain(of_csi.map(|own| format!("topology.csi.vmware.com/{own}"))).collect()
}

/// Labels that differ from the tags. One that is not there yet does not count.
fn differing(requirements: &Requirements, node: &Node, tags: &BTreeMap<String, String>) -> Vec<(String, Finding)> {
    let compared = tags.iter().flat_map(|(category, tag)| {
        labels_of_category(requirements, category)
            .into_iter()
            .map(move |label| (category, tag, label))
    });
    compared
        .filter_map(|(category, tag, label)| {
            let said = node.place.label(&label)?;
            (said != tag.as_str()).then(|| {
                let message = format!("label {label} is {said:?}, but the tag of category {category} is {tag:?}");
                let remedy = "Move the tag or the machine back, or delete the node and let it register again.";
                (message.clone(), Finding::new(Reason::TopologyLabelDiffers, message, remedy))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::required_privileges::tests::{inventory, nodes};

    fn requirements() -> Requirements {
        Requirements {
            zone_and_region: Some(("zone".into(), "region".into())),
            categories: vec!["zone".into()],
            ..Requirements::default()
        }
    }

    fn tagging(attached: &[(&str, &str, &str)]) -> Tagging {
        let mut tagging = Tagging {
            categories: ["zone", "region"].map(String::from).into(),
            ..Tagging::default()
        };
        for (object, category, tag) in attached {
            let tags = tagging.attached.entry((*object).to_owned()).or_default();
            tags.insert(((*category).to_owned(), (*tag).to_owned()));
        }
        tagging
    }

    fn reported(tagging: &Tagging, labels: &[(&str, &str)]) -> (String, String) {
        let node = Node {
            name: "n1".into(),
            place: vdo_api::facts::Place {
                labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
                ..vdo_api::facts::Place::default()
            },
            ..Node::default()
        };
        let (check, segments) = topology(&requirements(), &inventory(), &[node.into()], &nodes(), tagging);
        let findings: Vec<String> = check.findings.iter().map(|f| format!("{} {}", f.reason, f.message)).collect();
        assert_eq!(findings.is_empty(), check.status == Some(true));
        (findings.join("; "), segments.get("n1").cloned().unwrap_or_default())
    }

    #[test]
    fn topology_tags_equal_to_labels_passes() {
        let good = [("cluster", "zone", "a"), ("dc", "region", "eu")];
        let ok = (String::new(), "zone=a".to_owned());
        assert_eq!(reported(&tagging(&good), &[]), ok);
        let labels = [
            ("topology.csi.vmware.com/zone", "a"),
            ("topology.kubernetes.io/zone", "a"),
            ("topology.kubernetes.io/region", "eu"),
        ];
        assert_eq!(reported(&tagging(&good), &labels), ok);
        // The same tag twice on the way, and tags of other categories, do no harm.
        assert_eq!(
            reported(&tagging(&[good[0], good[1], ("host-1", "zone", "a"), ("host-1", "rack", "7")]), &[]),
            ok
        );
    }

    #[test]
    fn topology_tag_missing_ambiguous_or_unlike_label_is_reported() {
        let good = [("cluster", "zone", "a"), ("dc", "region", "eu")];
        for (attached, labels, expected) in [
            (
                &good[..1],
                &[][..],
                "TopologyTagMissing host /DC0/host/C0/h1 and the objects above it have no tag of category region (nodes n1)",
            ),
            // A tag on another host does not count for this one.
            (
                &[("host-2", "zone", "b"), good[0], good[1]],
                &[("topology.kubernetes.io/zone", "b")],
                "TopologyLabelDiffers label topology.kubernetes.io/zone is \"b\", but the tag of category zone is \"a\" (nodes n1)",
            ),
            (
                &[good[0], good[1], ("cluster", "zone", "b")],
                &[],
                "TopologyTagAmbiguous /DC0/host/C0 has several tags of category zone: a, b (nodes n1)",
            ),
            (
                &[good[0], good[1], ("dc", "zone", "b")],
                &[],
                "TopologyTagAmbiguous /DC0/host/C0 has tag \"a\" of category zone, but /DC0 above it has tag \"b\" (nodes n1)",
            ),
        ] {
            assert_eq!(reported(&tagging(attached), labels).0, expected);
        }
    }

    #[test]
    fn topology_category_absent_is_reported() {
        let good = [("cluster", "zone", "a"), ("dc", "region", "eu")];
        let mut none = tagging(&good);
        none.categories.remove("region");
        assert_eq!(
            reported(&none, &[]).0,
            "TopologyCategoryNotFound there is no tag category \"region\" in the vCenter"
        );
    }

    #[test]
    fn topology_not_requested_passes() {
        let (check, _) = topology(&Requirements::default(), &inventory(), &[], &nodes(), &Tagging::default());
        assert_eq!(check.text(), "no topology is requested");
    }

    #[test]
    fn topology_taggable_objects_include_ancestors() {
        let ids: Vec<String> = taggable(&inventory(), &nodes(), false)
            .into_iter()
            .map(|object| object.id)
            .collect();
        assert_eq!(ids, ["cluster", "dc", "host-1", "hosts", "root"]);
        assert!(taggable(&inventory(), &nodes(), true).iter().any(|object| object.id == "vm-1"));
    }
}
