// SPDX-License-Identifier: Apache-2.0
//! The fixes for the nodes of a cluster, each with its steps or with what a person has to do, and whether consent is needed.

use super::places::place;
use super::{Catalog, MachineRef, Step};
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::Node;
use vdo_api::types::{name_list, shell_word};
use vdo_vsphere::vsphere::{Advice, AdviceLine, Inventory, MINIMUM_HARDWARE, NodeReport, Requirements, kubelet_check};

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

/// Whether steps are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// They are.
    Given,
    /// A person is asked.
    Ask,
    /// No one can be asked.
    Missing,
}

/// Whether steps are wanted that belong together. `yes` is said once for all that can be undone; what cannot be undone was allowed by name
/// before it got into a plan, and is still asked about where there is a terminal.
#[must_use]
pub fn consent(steps: &[Step], yes: bool, terminal: bool) -> Consent {
    let reversible = steps.iter().all(Step::is_reversible);
    match (yes, terminal) {
        (true, true) if !reversible => Consent::Ask,
        (true, _) => Consent::Given,
        (false, true) => Consent::Ask,
        (false, false) => Consent::Missing,
    }
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
                "no tag of category {category} applies to nodes {}, but their labels name a tag",
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

/// The finding of a node with this reason, and its machine.
fn found(report: &NodeReport, inventory: &Inventory, reason: Reason) -> Option<(String, MachineRef)> {
    let finding = report.findings.iter().find(|finding| finding.reason == reason)?;
    let machine = inventory.machines.get(report.at?)?;
    let reference = MachineRef {
        id: machine.id.clone(),
        instance_uuid: machine.instance_uuid.clone(),
        path: machine.path.clone(),
    };
    Some((finding.message.clone(), reference))
}

fn setting(report: &NodeReport, inventory: &Inventory) -> Option<Fix> {
    let reason = Reason::DiskUuidDisabled;
    let (message, machine) = found(report, inventory, reason)?;
    let by_hand = power_off(report);
    let step = Step::SetDiskUuid {
        machine,
        value: Some("TRUE".into()),
        before: None,
    };
    Some(Fix {
        reason,
        message,
        steps: by_hand.is_empty().then_some(step).into_iter().collect(),
        by_hand,
    })
}

fn hardware(report: &NodeReport, inventory: &Inventory, is_allowed: bool) -> Option<Fix> {
    let reason = Reason::HardwareVersionTooOld;
    let (message, machine) = found(report, inventory, reason)?;
    let by_hand = match (is_allowed, report.snapshot) {
        (false, _) => "An upgrade of the hardware cannot be undone. Allow it with --allow hardware-version.".into(),
        (true, true) => Advice::run(
            "A machine with a snapshot cannot be upgraded. Remove the snapshot first, and run this command again:",
            format!("govc snapshot.remove -vm {} '*'", shell_word(&machine.path)),
        ),
        (true, false) => power_off(report),
    };
    let step = Step::UpgradeHardware {
        machine,
        from: report.hardware.clone(),
        to: format!("vmx-{MINIMUM_HARDWARE}"),
    };
    Some(Fix {
        reason,
        message,
        steps: by_hand.is_empty().then_some(step).into_iter().collect(),
        by_hand,
    })
}

/// How a machine is powered off without harm for what runs there; nothing where it is off.
fn power_off(report: &NodeReport) -> Advice {
    if report.power == "poweredOff" {
        return Advice::default();
    }
    let (node, machine) = (shell_word(&report.node), shell_word(&report.machine));
    Advice::of([
        AdviceLine::Text(format!(
            "The machine is {}. Power it off, and run this command again:",
            report.power
        )),
        AdviceLine::Verbatim(format!("kubectl drain {node} --ignore-daemonsets --delete-emptydir-data")),
        AdviceLine::Verbatim(format!("govc vm.power -s {machine}")),
        AdviceLine::Text("Afterwards:".into()),
        AdviceLine::Verbatim(format!("govc vm.power -on {machine}")),
        AdviceLine::Verbatim(format!("kubectl uncordon {node}")),
    ])
}
