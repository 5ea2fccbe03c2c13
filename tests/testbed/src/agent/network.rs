// SPDX-License-Identifier: Apache-2.0
//! The kubelet begins no pod that needs a pod network on a node that has none.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::Api;

/// What the kubelet says of a pod for which its node lacks a network.
pub(super) async fn lacking(client: &Client, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    if spec.host_network == Some(true) {
        return None;
    }
    let node: Node = Api::all(client.clone()).get(spec.node_name.as_deref()?).await.ok()?;
    let conditions = node.status?.conditions?;
    let ready = conditions
        .into_iter()
        .find(|condition| condition.type_ == "Ready" && condition.status == "False")?;
    let message = ready.message.filter(|message| message.contains("NetworkPluginNotReady"))?;
    Some(format!("network is not ready: {message}"))
}
