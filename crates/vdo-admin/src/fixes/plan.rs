// SPDX-License-Identifier: Apache-2.0
//! Plans the fixes of `vdoctl doctor --fix` in their order, each with steps or instructions, and the steps that create and attach tags.
//!
//! `machine.rs` has the steps for machines, `tag_placement.rs` the objects that get a tag.

use super::machine::{hardware, setting};
use super::tag_placement::place;
use super::{Catalog, Step};
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::Node;
use vdo_api::types::name_list;
use vdo_vsphere::vsphere::{Advice, Inventory, NodeReport, Requirements, kubelet_check};

/// Something that is wrong: with the steps that fix it, or without any and with what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it is, as `vdoctl explain` knows it.
    pub reason: Reason,
    /// What was found, about which object.
    pub message: String,
    /// The steps; they are consented to together.
    pub steps: Vec<Step>,
    /// What a person has to do; empty where the steps are everything.
    pub by_hand: Advice,
}

/// What is to be fixed for the nodes of a cluster: first the tags, which need no one to wait, then the machines, where a step that cannot be
/// undone comes last and only if it is `allowed`, and at the end what no command can do.
#[must_use]
pub fn plan(
    requirements: &Requirements,
    nodes: &[Arc<Node>],
    reports: &[NodeReport],
    inventory: &Inventory,
    catalog: &Catalog,
    hardware_is_allowed: bool,
) -> Vec<Fix> {
    let mut all = Vec::new();
    for category in requirements.all_categories() {
        all.extend(tags(category, requirements, nodes, reports, inventory, catalog));
    }
    let settings = reports.iter().filter_map(|report| setting(report, inventory));
    let hardware = reports.iter().filter_map(|report| hardware(report, inventory, hardware_is_allowed));
    all.extend(settings.chain(hardware));
    // What can be done comes first; the order is kept otherwise.
    all.sort_by_key(|fix| fix.steps.is_empty());
    let kubelets = kubelet_check(nodes).findings.into_iter();
    all.extend(kubelets.map(|finding| Fix {
        reason: finding.reason,
        message: finding.message,
        steps: Vec::new(),
        by_hand: finding.remedy,
    }));
    all
}

fn tags(
    category: &str,
    requirements: &Requirements,
    nodes: &[Arc<Node>],
    reports: &[NodeReport],
    inventory: &Inventory,
    catalog: &Catalog,
) -> Vec<Fix> {
    let tagging = catalog.tagging();
    let placement = place(category, requirements, nodes, reports, inventory, catalog, &tagging);
    let mut all = Vec::new();
    if !placement.tags.is_empty() {
        let mut steps = Vec::new();
        let is_there = catalog.categories.contains_key(category);
        if !is_there {
            steps.push(Step::CreateCategory { category: category.into() });
        }
        let mut new: Vec<&str> = placement
            .tags
            .values()
            .copied()
            .filter(|tag| catalog.tag(category, tag).is_none())
            .collect();
        new.sort_unstable();
        new.dedup();
        steps.extend(new.into_iter().map(|tag| Step::CreateTag {
            category: category.into(),
            tag: tag.into(),
        }));
        steps.extend(placement.tags.iter().map(|(object, tag)| Step::AttachTag {
            category: category.into(),
            tag: (*tag).to_owned(),
            object: (*object).clone(),
            path: inventory.name_of(&object.id).to_owned(),
        }));
        all.push(Fix {
            reason: match is_there {
                true => Reason::TopologyTagMissing,
                false => Reason::TopologyCategoryNotFound,
            },
            message: format!(
                "no tag of category {category} applies to nodes {}, but the labels of these nodes have a value for this category",
                name_list(&placement.nodes)
            ),
            steps,
            by_hand: Advice::default(),
        });
    }
    all.extend(placement.open.into_iter().map(|(message, by_hand)| Fix {
        reason: Reason::TopologyTagMissing,
        message,
        steps: Vec::new(),
        by_hand,
    }));
    all
}
