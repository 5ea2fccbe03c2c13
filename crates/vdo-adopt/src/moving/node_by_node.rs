// SPDX-License-Identifier: Apache-2.0
//! Decides which node gets the new node plugin next, and whether the move waits for pods or the registration on a node (pure).

use super::{Node, Old, State, Wait};

/// The node plugin of an old driver, and what it does on one node.
pub(super) enum OnNode<'a> {
    Settled,
    Untouched(&'a Node),
    Waits(Wait),
}

impl State {
    pub(super) fn on_nodes(&self, old: &Old) -> OnNode<'_> {
        let there = |node: &Node| old.pods.iter().any(|pod| pod.node == node.object.name());
        let of_driver = || {
            self.new
                .iter()
                .filter(|new| new.driver.name == old.driver.name && new.object.kind() == "DaemonSet")
        };
        let new = |node: &Node| of_driver().flat_map(|new| &new.pods).find(|pod| pod.node == node.object.name());
        for node in self.nodes.iter().filter(|node| node.is_moved() && node.is_ready()) {
            let name = node.object.name().to_owned();
            let why = match new(node) {
                _ if there(node) => "the old node plugin to terminate",
                Some(pod) if !pod.ready => "the new node plugin to be ready",
                Some(_) if !node.is_registered => "the new node plugin to be registered",
                Some(_) => continue,
                None => "the new node plugin",
            };
            return OnNode::Waits(Wait::Node(name, why));
        }
        let mut left: Vec<&Node> = self.nodes.iter().filter(|node| !node.is_moved() && there(node)).collect();
        left.sort_by_key(|node| !node.is_ready());
        match left.first() {
            None => OnNode::Settled,
            Some(node) if new(node).is_none() => OnNode::Waits(Wait::Node(node.object.name().to_owned(), "a new node plugin")),
            Some(node) => OnNode::Untouched(node),
        }
    }
}
