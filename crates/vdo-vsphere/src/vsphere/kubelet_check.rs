// SPDX-License-Identifier: Apache-2.0
//! Checks that kubelets run with `--cloud-provider=external` (KubeletNotExternal), and names the setting for each distribution.

use super::{Advice, AdviceLine, Check, Finding};
use std::sync::Arc;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::{Node, left_alone};
use vdo_api::types::count;

/// Whether the kubelets leave their nodes to a cloud provider. One that does not has neither a provider ID nor the taint that waits for
/// one, and no cloud provider will ever look at it.
#[must_use]
pub fn kubelet_check(nodes: &[Arc<Node>]) -> Check {
    let passed = match nodes.len() {
        0 => "there are no nodes yet".to_owned(),
        n => format!(
            "{} checked: each node has a provider ID or waits for a cloud provider",
            count(n, "node")
        ),
    };
    let findings = left_alone(nodes.iter().map(|node| &**node), nodes.len()).map(|(first, summary)| {
        let (kind, first) = (first.distribution(), &first.name);
        let place = kind.place();
        let mut advice = vec![AdviceLine::Text(format!("{}{}:", place[..1].to_uppercase(), &place[1..]))];
        advice.extend(kind.stanza().iter().map(|line| AdviceLine::Verbatim((*line).to_owned())));
        advice.push(AdviceLine::Text(kind.later().into()));
        advice.push(AdviceLine::Verbatim(format!(
            "kubectl taint node {first} node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"
        )));
        Finding::new(
            Reason::KubeletNotExternal,
            format!("{summary}; their kubelets run without --cloud-provider=external"),
            Advice::of(advice),
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
        let rke2 = Arc::new(Node {
            name: "c".into(),
            kubelet: Some("v1.34.4+rke2r1".into()),
            ..Node::default()
        });
        let remedy = kubelet_check(&[rke2]).remedy.to_string();
        assert!(
            remedy.starts_with("With RKE2, in /etc/rancher/rke2/config.yaml") && remedy.contains("cloud-provider-name: external"),
            "{remedy}"
        );
    }
}
