// SPDX-License-Identifier: Apache-2.0
//! Holds the cloud provider back while it would delete nodes of another cloud provider (pure).

use serde_json::Value;
use vdo_api::api::Reason;
use vdo_api::facts::{Cluster, Distribution, Node};
use vdo_api::types::{ById, name_list};
use vdo_core::drivers::CLOUD_PROVIDER;
use vdo_core::manifest::Object;
use vdo_core::plan::{Closed, Desired, Wait};

/// The variable with which the cloud provider deletes no Node object, whatever its value.
const KEEPS_NODES: &str = "SKIP_NODE_DELETION";

/// Holds back the cloud provider where it would begin to delete nodes of another provider: it deletes those that are not ready and of
/// which no vCenter has a machine. One that runs, and does so already, is not held back.
pub(super) fn deletes_nodes(desired: &[Desired], cluster: &Cluster, live: &ById<Object>) -> Option<Closed> {
    let workload = desired
        .iter()
        .find(|d| *d.driver == *CLOUD_PROVIDER.name && d.object.kind() == "DaemonSet")?;
    let ran = live.get(&workload.object.id());
    if keeps_nodes(&workload.object) || ran.is_some_and(|live| !keeps_nodes(live)) {
        return None;
    }
    let others: Vec<&Node> = cluster
        .nodes
        .iter()
        .map(|node| &**node)
        .filter(|node| node.other_provider().is_some())
        .collect();
    let first = others.first()?;
    let named: Vec<String> = others
        .iter()
        .map(|node| format!("{} ({}://)", node.name, node.other_provider().unwrap_or_default()))
        .collect();
    let join = match first.distribution() {
        Distribution::Rke2 | Distribution::K3s => format!(
            "; or disable the cloud controller of the distribution, {}: {}",
            first.distribution().place(),
            first.distribution().stanza().join(", ")
        ),
        Distribution::Kubeadm | Distribution::Other => String::new(),
    };
    let message = format!(
        "{} of {} nodes belong to another cloud provider: {}; the cloud provider for vSphere would delete each of these nodes when the \
         node is not ready; to keep these nodes, run: vdoctl configure drivers --set cloudProvider.keepNodes=true{join}",
        others.len(),
        cluster.nodes.len(),
        name_list(&named),
    );
    Some(Closed::refused(Wait {
        driver: CLOUD_PROVIDER.name.into(),
        reason: Reason::NodesOfOtherProvider,
        message,
    }))
}

fn keeps_nodes(workload: &Object) -> bool {
    let containers = workload.pod_spec().and_then(|pod| pod.get("containers")).and_then(Value::as_array);
    let variables = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container.get("env")?.as_array())
        .flatten();
    variables
        .filter_map(|variable| variable.get("name"))
        .any(|name| name == KEEPS_NODES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use vdo_core::drivers::CPI;
    use vdo_core::plan::Gate;

    fn node(name: &str, provider_id: &str, kubelet: &str) -> Arc<Node> {
        Arc::new(Node {
            name: name.into(),
            provider_id: provider_id.into(),
            kubelet: Some(kubelet.into()),
            ..Node::default()
        })
    }

    #[test]
    fn gate_cloud_provider_waits_before_it_deletes_nodes_of_another_provider() {
        let daemons = |keeps: bool| {
            let env = if keeps {
                json!([{"name": KEEPS_NODES, "value": "true"}])
            } else {
                json!([])
            };
            let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": CPI, "namespace": "n"},
                "spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}});
            Desired {
                object: Object::new(object).expect("an object"),
                driver: CPI.into(),
                wave: 4,
            }
        };
        let waits = |keeps: bool, live: Option<bool>, others: bool, kubelet: &str| {
            let mut nodes = vec![node("cp", "vsphere://cp", kubelet)];
            nodes.extend(others.then(|| node("m-1", "k3s://m-1", kubelet)));
            let cluster = Cluster {
                version: "v1.34.4".parse().expect("a version"),
                uid: "uid".into(),
                nodes,
            };
            let live = live.map(daemons).map(|d| (d.object.id(), d.object)).into_iter().collect();
            deletes_nodes(&[daemons(keeps)], &cluster, &live).map(|closed| match closed.gate {
                Gate::Refused(wait) => format!("{} {} {}", wait.driver, wait.reason, wait.message),
                other => format!("{other:?}"),
            })
        };
        let message = "vsphere-cpi NodesOfOtherProvider 1 of 2 nodes belong to another cloud provider: m-1 (k3s://); the cloud provider for vSphere \
                       would delete each of these nodes when the node is not ready; to keep these nodes, run: vdoctl configure drivers --set cloudProvider.keepNodes=true";
        for (keeps, live, others, expected) in [
            (false, None, true, true),
            (true, None, true, false),
            (false, None, false, false),
            // It runs so already.
            (false, Some(false), true, false),
            // It would begin to.
            (false, Some(true), true, true),
            (true, Some(true), true, false),
        ] {
            let found = waits(keeps, live, others, "v1.34.4");
            assert_eq!(found.as_deref(), expected.then_some(message), "{keeps} {live:?} {others}");
        }
        let found = waits(false, None, true, "v1.34.4+k3s1").expect("it waits");
        assert!(
            found.contains("; or disable the cloud controller") && found.contains("disable-cloud-controller: true"),
            "{found}"
        );
    }
}
