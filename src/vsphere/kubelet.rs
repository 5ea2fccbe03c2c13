use super::{Advice, AdviceLine, Check, Finding};
use crate::api::{ConditionType, Reason};
use crate::facts::Node;
use crate::types::name_list;
use std::sync::Arc;

/// Whether the kubelets leave their nodes to a cloud provider. One that does not has neither a provider ID nor the taint that waits for
/// one, and no cloud provider will ever look at it.
#[must_use]
pub fn kubelet_check(nodes: &[Arc<Node>]) -> Check {
    let alone: Vec<&str> = nodes
        .iter()
        .filter(|node| node.provider_id.is_empty() && !node.uninitialized)
        .map(|node| node.name.as_str())
        .collect();
    let passed = match nodes.len() {
        0 => "there are no nodes yet".to_owned(),
        n => format!("the kubelets of {n} nodes wait for a cloud provider or have one"),
    };
    let findings = (!alone.is_empty()).then(|| {
        let first = alone[0];
        Finding::new(
            Reason::KubeletNotExternal,
            format!(
                "{} of {} nodes have neither a provider ID nor the taint that waits for one: {}; their kubelets run without --cloud-provider=external",
                alone.len(),
                nodes.len(),
                name_list(&alone)
            ),
            Advice::of([
                AdviceLine::Text("With kubeadm, in InitConfiguration and JoinConfiguration before a node joins:".into()),
                AdviceLine::Verbatim("nodeRegistration: {kubeletExtraArgs: [{name: cloud-provider, value: external}]}".into()),
                AdviceLine::Text(
                    "On a node that is there: add --cloud-provider=external to /var/lib/kubelet/kubeadm-flags.env, restart the kubelet, then".into(),
                ),
                AdviceLine::Verbatim(format!("kubectl taint node {first} node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule")),
            ]),
        )
    });
    Check::of(ConditionType::NodesInitialized, passed, findings.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_check_node_without_external_cloud_provider_fails() {
        let node = |name: &str, id: &str, uninitialized| {
            Arc::new(Node {
                name: name.into(),
                provider_id: id.into(),
                uninitialized,
                ..Node::default()
            })
        };
        let well = [node("a", "vsphere://x", false), node("b", "", true), node("c", "vsphere://y", true)];
        assert_eq!(kubelet_check(&well).status, Some(true));
        let check = kubelet_check(&[node("a", "", true), node("b", "", false)]);
        assert_eq!((check.status, check.reason), (Some(false), Reason::KubeletNotExternal));
        assert!(
            check.message.starts_with("1 of 2 nodes") && check.message.contains(": b;"),
            "{}",
            check.message
        );
        let remedy = check.remedy.to_string();
        assert!(
            remedy.contains("kubeletExtraArgs: [{name: cloud-provider") && remedy.contains("taint node b "),
            "{remedy}"
        );
    }
}
