// SPDX-License-Identifier: Apache-2.0
//! ControlPlaneEligible: whether the pods of every Deployment can be scheduled on enough nodes (pure).

use std::sync::Arc;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::Node;
use vdo_api::types::{count, name_list};
use vdo_core::health::{Placement, placement};
use vdo_core::plan::Desired;
use vdo_core::status::Precondition;

/// Whether the pods of every Deployment find nodes.
pub(in crate::reconcile) fn control_plane(desired: &[Desired], nodes: &[Arc<Node>]) -> Precondition {
    let kind = ConditionType::ControlPlaneEligible;
    let found: Vec<(&Desired, Placement)> = desired.iter().filter_map(|d| Some((d, placement(&d.object, nodes)?))).collect();
    let short_of = found.iter().find(|(_, place)| !place.is_enough());
    match short_of {
        Some((d, place)) => {
            let refused = place.hindrances();
            let message = format!(
                "{} needs {}, but its pods can be scheduled on {} of {} nodes ({}); label or untaint nodes, or set values that fit the \
                 nodes",
                d.object,
                count(place.needed, "node"),
                place.eligible,
                nodes.len(),
                if refused.is_empty() {
                    "there are no nodes".to_owned()
                } else {
                    refused.join("; ")
                }
            );
            Precondition::fails(kind, Reason::NoEligibleNode, message)
        }
        None => {
            let reported: Vec<String> = found
                .iter()
                .map(|(d, place)| {
                    let later = place.later();
                    let later = if later.is_empty() {
                        String::new()
                    } else {
                        format!(" ({})", name_list(&later))
                    };
                    format!(
                        "the pods of {} can be scheduled on {} of {} nodes{later}",
                        d.object,
                        place.eligible,
                        nodes.len()
                    )
                })
                .collect();
            let nothing = || "no driver has a controller that must be scheduled".to_owned();
            Precondition::holds(kind, if reported.is_empty() { nothing() } else { reported.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::preconditions::reported;
    use serde_json::json;
    use std::collections::BTreeMap;
    use vdo_api::facts::Place;
    use vdo_core::drivers::CSI;
    use vdo_core::manifest::Object;

    #[test]
    fn precondition_control_plane_without_eligible_node_fails() {
        let deployment = |replicas: i64| Desired {
            object: Object::new(
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c", "namespace": "n"},
                "spec": {"replicas": replicas, "template": {"spec": {"nodeSelector": {"role": "cp"}, "affinity": {"podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}}}}}}),
            )
            .expect("an object"),
            driver: CSI.into(),
            wave: 5,
        };
        let node = |name: &str, role: &str| {
            Arc::new(Node {
                name: name.into(),
                place: Place {
                    labels: BTreeMap::from([("role".to_owned(), role.to_owned())]),
                    ..Place::default()
                },
                ..Node::default()
            })
        };
        let nodes = [node("cp-1", "cp"), node("w-1", "worker")];
        assert_eq!(
            reported(&[
                control_plane(&[deployment(1)], &nodes),
                control_plane(&[deployment(2)], &nodes),
                control_plane(&[deployment(1)], &[]),
                control_plane(&[], &nodes),
            ]),
            [
                "ControlPlaneEligible Some(true) Healthy: the pods of Deployment n/c can be scheduled on 1 of 2 nodes",
                "ControlPlaneEligible Some(false) NoEligibleNode: Deployment n/c needs 2 nodes, but its pods can be scheduled on 1 of 2 nodes (w-1: it lacks the label role=cp); label or untaint nodes, or set values that fit the nodes",
                "ControlPlaneEligible Some(false) NoEligibleNode: Deployment n/c needs 1 node, but its pods can be scheduled on 0 of 0 nodes (there are no nodes); label or untaint nodes, or set values that fit the nodes",
                "ControlPlaneEligible Some(true) Healthy: no driver has a controller that must be scheduled",
            ]
        );
    }
}
