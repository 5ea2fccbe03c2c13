// SPDX-License-Identifier: Apache-2.0
//! Counts the expected pods of a driver's deleted workloads, and adds the missing workloads to the driver's health.

use super::scheduling::{Standing, standing};
use super::{DriverHealth, Pods};
use crate::manifest::Object;
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::Node;
use vdo_api::types::ObjectId;

/// A workload of a driver that is not there.
#[derive(Debug, Clone)]
pub struct MissingWorkload {
    /// Its id.
    pub id: ObjectId,
    /// As it was applied last, where that is known.
    pub applied: Option<Object>,
}

impl MissingWorkload {
    /// The pods that it would have: of a Deployment its replicas, of a DaemonSet one on each node that is alive and that they may run on.
    fn pods(&self, nodes: &[Arc<Node>]) -> Pods {
        let replicas = self.applied.as_ref().and_then(|workload| workload.number("/spec/replicas"));
        let wanted = match (self.id.kind(), self.applied.as_ref().and_then(Object::pod_spec)) {
            ("DaemonSet", Some(pod)) => count(nodes.iter().filter(|node| standing(pod, true, node) == Standing::Due).count()),
            ("DaemonSet", None) => count(nodes.len()),
            _ => replicas.unwrap_or(1),
        };
        Pods { wanted, ..Pods::default() }
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The health of a driver without these workloads; `found` is that of the others, if there are any. A failing pod is listed before them.
#[must_use]
pub fn without(found: Option<DriverHealth>, missing: &[MissingWorkload], nodes: &[Arc<Node>]) -> Option<DriverHealth> {
    let Some(first) = missing.first() else { return found };
    let mut pods = found.as_ref().map(|health| health.pods).unwrap_or_default();
    for workload in missing {
        pods.add(workload.pods(nodes));
    }
    let found_nodes = found.as_ref().map(|health| health.nodes.clone()).unwrap_or_default();
    if let Some(health) = found.filter(|health| health.reason == Reason::PodsFailing) {
        return Some(DriverHealth { pods, ..health });
    }
    let what = match missing.len() - 1 {
        0 => format!("{} is missing", first.id),
        more => format!("{} and {} are missing", first.id, vdo_api::types::count(more, "more workload")),
    };
    Some(DriverHealth {
        ready: false,
        reason: Reason::WorkloadMissing,
        message: format!("{what}; {} of {} pods are ready", pods.ready, pods.wanted),
        pods,
        failure: None,
        unmade: None,
        nodes: found_nodes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::NodesFound;
    use serde_json::json;

    fn workload(kind: &str, replicas: Option<i64>) -> MissingWorkload {
        let spec = json!({"replicas": replicas, "template": {"spec": {"nodeSelector": {"os": "linux"}}}});
        let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}, "spec": spec});
        MissingWorkload {
            id: ObjectId::new("apps", kind, "n", "x"),
            applied: replicas.and_then(|_| Object::new(object).ok()),
        }
    }

    #[test]
    fn missing_workload_counts_as_missing_pods() {
        let node = |os: &str| {
            let mut node = Node::default();
            node.place.labels = [("os".to_owned(), os.to_owned())].into();
            Arc::new(node)
        };
        let nodes = [node("linux"), node("linux"), node("windows")];
        let health = |ready, reason| DriverHealth {
            ready,
            reason,
            message: "as it was".into(),
            pods: Pods {
                ready: 4,
                wanted: 4,
                updated: 4,
            },
            failure: None,
            unmade: None,
            nodes: NodesFound::default(),
        };
        let healthy = || Some(health(true, Reason::Healthy));
        for (found, missing, expected) in [
            (healthy(), vec![], "Healthy 4/4: as it was"),
            (
                healthy(),
                vec![workload("Deployment", Some(3))],
                "WorkloadMissing 4/7: Deployment n/x is missing; 4 of 7 pods are ready",
            ),
            (
                healthy(),
                vec![workload("Deployment", None)],
                "WorkloadMissing 4/5: Deployment n/x is missing; 4 of 5 pods are ready",
            ),
            (
                None,
                vec![workload("DaemonSet", Some(0)), workload("DaemonSet", None)],
                "WorkloadMissing 0/5: DaemonSet n/x and 1 more workload are missing; 0 of 5 pods are ready",
            ),
            (
                Some(health(false, Reason::PodsFailing)),
                vec![workload("Deployment", Some(1))],
                "PodsFailing 4/5: as it was",
            ),
        ] {
            let found = without(found, &missing, &nodes).expect("health");
            assert_eq!(format!("{} {}: {}", found.reason, found.pods, found.message), expected);
        }
        assert_eq!(without(None, &[], &nodes), None);
    }
}
