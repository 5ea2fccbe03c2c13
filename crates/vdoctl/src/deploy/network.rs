// SPDX-License-Identifier: Apache-2.0
//! Decides whether the operator runs in the host network of its node (`--host-network`).
//!
//! Many network plugins wait for nodes that the cloud provider has initialised, and the cloud provider comes with the operator.

use super::super::CliError;
use kube::Client;
use serde_json::Value;
use std::sync::Arc;
use vdo::cluster::{Select, Watch, list};
use vdo_api::facts::Node;
use vdo_core::install::HostNetwork;
use vdo_core::manifest::Object;

/// How the operator works there, where it has to, or is `asked` to.
pub(super) async fn host_network(asked: bool, client: &Client, nodes: &[Arc<Node>]) -> Result<Option<HostNetwork>, CliError> {
    if !asked && !lack_network(nodes) {
        return Ok(None);
    }
    let labels = Select::Labels("kubernetes.io/service-name=kubernetes".into());
    let slices = list(client, &Watch::new("discovery.k8s.io/v1", "EndpointSlice", "default", labels)).await?;
    Ok(Some(HostNetwork {
        api_server: slices.iter().find_map(endpoint),
    }))
}

/// Whether none of the nodes that may run the operator has a pod network.
fn lack_network(nodes: &[Arc<Node>]) -> bool {
    let mut eligible = nodes.iter().filter(|node| node.control_plane).peekable();
    eligible.peek().is_some() && eligible.all(|node| node.network.is_some())
}

fn endpoint(slice: &Object) -> Option<(String, u16)> {
    let host = slice.value().pointer("/endpoints/0/addresses/0")?.as_str()?;
    let port = slice.value().pointer("/ports/0/port").and_then(Value::as_u64)?;
    Some((host.to_owned(), u16::try_from(port).ok()?))
}

/// The line that reports it.
pub(super) fn reported(network: &HostNetwork, asked: bool) -> String {
    let why = if asked {
        ""
    } else {
        ", because no control-plane node has a pod network"
    };
    let by = match &network.api_server {
        Some((host, port)) => format!("the operator will reach the API server at {host} port {port}"),
        None => "the operator needs kube-proxy to reach the API server".to_owned(),
    };
    format!("the operator will run in the host network of its node{why}; {by}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn network_is_lacking_when_no_control_plane_node_has_one() {
        let node = |control_plane, network: bool| {
            Arc::new(Node {
                control_plane,
                network: (!network).then(|| "KubeletNotReady".to_owned()),
                ..Node::default()
            })
        };
        for (nodes, expected) in [
            (vec![], false),
            (vec![node(false, false)], false),
            (vec![node(true, false), node(false, true)], true),
            (vec![node(true, false), node(true, true)], false),
        ] {
            assert_eq!(lack_network(&nodes), expected, "{nodes:?}");
        }
    }

    #[test]
    fn endpoint_is_read_from_a_slice() {
        let read = |endpoints: Value| {
            let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "kubernetes", "namespace": "default"},
                "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "https", "port": 6443}]});
            endpoint(&Object::new(slice).expect("an object"))
        };
        assert_eq!(read(json!([{"addresses": ["192.0.2.7"]}])), Some(("192.0.2.7".into(), 6443)));
        assert_eq!(read(json!([])), None);
    }
}
