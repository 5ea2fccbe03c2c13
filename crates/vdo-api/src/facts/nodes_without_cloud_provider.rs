// SPDX-License-Identifier: Apache-2.0
//! Counts and names the nodes whose kubelets run without a cloud provider, for the condition NodesInitialized and the check of doctor.

use super::Node;
use crate::types::{count, name_list};

/// The first of the `nodes` that no cloud provider will ever initialise, and the sentence that counts and names all of them; `None` where each
/// node has a provider ID or waits for one. `total` is the number of nodes that the sentence compares with.
#[must_use]
pub fn left_alone<'a>(nodes: impl IntoIterator<Item = &'a Node>, total: usize) -> Option<(&'a Node, String)> {
    let left: Vec<&Node> = nodes.into_iter().filter(|node| node.is_left_alone()).collect();
    let names: Vec<&str> = left.iter().map(|node| node.name.as_str()).collect();
    let first = *left.first()?;
    Some((
        first,
        format!(
            "{} of {} have neither a provider ID nor the taint node.cloudprovider.kubernetes.io/uninitialized: {}",
            left.len(),
            count(total, "node"),
            name_list(&names)
        ),
    ))
}

impl Node {
    /// Whether its kubelet runs without a cloud provider: it has neither a provider ID nor the taint that waits for one.
    fn is_left_alone(&self) -> bool {
        self.provider_id.is_empty() && !self.uninitialized
    }
}
