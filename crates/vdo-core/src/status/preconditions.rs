// SPDX-License-Identifier: Apache-2.0
//! Computes the conditions of the preconditions, such as NodesInitialized and NetworkReady, from the report and the nodes.

use super::{Precondition, Report};
use vdo_api::api::{ConditionType, Conditions, Reason};
use vdo_api::facts::{Cluster, Node, due, left_alone};
use vdo_api::types::{name_list, verb};

/// As many nodes as a message names.
const NAMED: usize = 5;

/// One condition for each precondition.
pub(super) fn preconditions(conditions: &mut Conditions, report: &Report) {
    let found = found(report);
    for kind in ConditionType::PRECONDITIONS {
        match worst(&found, *kind) {
            Some(p) => conditions.set(p.kind, p.holds, p.reason, p.message.clone()),
            None => conditions.keep(*kind, Reason::NotChecked, "not checked yet"),
        }
    }
}

/// The precondition that keeps pods from starting, if one is known to fail: it is the cause, and that pods are not ready is
/// its effect.
pub(super) fn hindrance(report: &Report) -> Option<Precondition> {
    let found = found(report);
    let failing = |kind: &ConditionType| worst(&found, *kind).filter(|p| p.holds == Some(false)).cloned();
    [ConditionType::NetworkReady, ConditionType::ControlPlaneEligible]
        .iter()
        .find_map(failing)
}

/// Everything that is known of preconditions: what was put into the report, and what the nodes say.
fn found(report: &Report) -> Vec<Precondition> {
    let nodes = report.cluster.iter().flat_map(|cluster| [initialized(cluster), network(cluster)]);
    nodes.chain(report.preconditions.iter().cloned()).collect()
}

/// Of several answers to the same question: a no before "is unknown", and that before a yes.
fn worst(found: &[Precondition], kind: ConditionType) -> Option<&Precondition> {
    found.iter().filter(|p| p.kind == kind).min_by_key(|p| match p.holds {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    })
}

fn initialized(cluster: &Cluster) -> Precondition {
    let kind = ConditionType::NodesInitialized;
    let total = cluster.nodes.len();
    let counted: Vec<&Node> = due(cluster.nodes.iter().map(|node| &**node)).collect();
    // No cloud provider will ever look at these nodes, so there is nothing to wait for.
    if let Some((first, summary)) = left_alone(counted.iter().copied(), total) {
        let kind_of = first.distribution();
        let message = format!(
            "{summary}; run their kubelets with --cloud-provider=external ({}: {})",
            kind_of.place(),
            kind_of.stanza().join(", ")
        );
        return Precondition::fails(kind, Reason::KubeletNotExternal, message);
    }
    let waiting: Vec<(&Node, &str)> = counted.iter().filter_map(|node| Some((*node, node.lacks()?))).collect();
    let uncounted = cluster.nodes.iter().filter(|node| !node.is_initialized());
    let apart: Vec<String> = uncounted
        .filter(|node| !waiting.iter().any(|(waits, _)| waits.name == node.name))
        .map(|node| {
            let why = node.apart().unwrap_or_default();
            let later = if node.other_provider().is_some() {
                ""
            } else {
                " and is set up later"
            };
            format!("node {} {why}{later}", node.name)
        })
        .collect();
    let total = total - apart.len();
    let beside = match apart.is_empty() {
        true => String::new(),
        false => format!("; {}", name_list(&apart)),
    };
    match waiting.first() {
        None => Precondition::holds(kind, format!("{total} of {total} nodes are initialised{beside}")),
        Some((first, lacks)) => {
            let message = format!(
                "{} of {total} nodes are not initialised; {} waits for {lacks}{beside}",
                waiting.len(),
                first.name
            );
            Precondition::fails(kind, Reason::WaitingForNodes, message)
        }
    }
}

fn network(cluster: &Cluster) -> Precondition {
    let kind = ConditionType::NetworkReady;
    let without: Vec<_> = cluster.nodes.iter().filter(|n| n.network.is_some()).collect();
    match without.as_slice() {
        [] => Precondition::holds(kind, format!("none of {} nodes waits for the pod network", cluster.nodes.len())),
        [first, ..] => {
            let names: Vec<&str> = without.iter().take(NAMED).map(|n| n.name.as_str()).collect();
            let more = without.len().saturating_sub(NAMED);
            let message = format!(
                "the pod network is not ready on {} of {} nodes: {}{}; node {} reports {}; check the pods of the network plugin on \
                 {}",
                without.len(),
                cluster.nodes.len(),
                names.join(", "),
                if more > 0 { format!(" and {more} more") } else { String::new() },
                first.name,
                first.network.as_deref().unwrap_or_default(),
                verb(without.len(), "this node", "these nodes")
            );
            Precondition::fails(kind, Reason::NetworkNotReady, message)
        }
    }
}
