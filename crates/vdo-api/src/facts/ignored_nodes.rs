// SPDX-License-Identifier: Apache-2.0
//! Decides for which nodes the operator does not wait: cordoned, not ready, unreachable, or of another cloud provider.

use super::Node;
use std::fmt;

/// Why a node takes no new pods for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Away {
    /// Its kubelet reports that it is not ready.
    NotReady,
    /// Its kubelet reports nothing any more.
    Unreachable,
    /// A person or a tool has cordoned it.
    Cordoned,
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "is not ready",
            Self::Unreachable => "is unreachable",
            Self::Cordoned => "is cordoned",
        })
    }
}

/// The scheme of the provider IDs that the cloud provider for vSphere writes.
const OURS: &str = "vsphere";

impl Node {
    /// The scheme of its provider ID, where another cloud provider has written it.
    #[must_use]
    pub fn other_provider(&self) -> Option<&str> {
        let (scheme, _) = self.provider_id.split_once("://")?;
        (scheme != OURS).then_some(scheme)
    }

    /// Whether the cloud provider for vSphere is done with it.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.other_provider().is_none() && self.lacks().is_none()
    }

    /// Why nothing waits for it, as the rest of a sentence that begins with its name; `None` where something may.
    #[must_use]
    pub fn apart(&self) -> Option<String> {
        let other = self
            .other_provider()
            .map(|scheme| format!("belongs to another provider ({scheme}://)"));
        other.or_else(|| self.away.map(|away| away.to_string()))
    }
}

/// The nodes that are waited for: those that are not apart. Where all are, all of them: something has to be judged.
pub fn due<'a>(nodes: impl Iterator<Item = &'a Node> + Clone) -> impl Iterator<Item = &'a Node> {
    let all_apart = nodes.clone().all(|node| node.apart().is_some());
    nodes.filter(move |node| all_apart || node.apart().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, provider_id: &str, away: Option<Away>) -> Node {
        Node {
            name: name.into(),
            provider_id: provider_id.into(),
            away,
            ..Node::default()
        }
    }

    #[test]
    fn node_apart_says_why_nothing_waits_for_it() {
        for (provider_id, away, apart, initialized) in [
            ("vsphere://4229", None, None, true),
            ("", None, None, false),
            // Before the scheme was written, the ID was the UUID alone.
            ("4229", None, None, true),
            ("vsphere://4229", Some(Away::NotReady), Some("is not ready"), true),
            ("", Some(Away::Unreachable), Some("is unreachable"), false),
            ("vsphere://4229", Some(Away::Cordoned), Some("is cordoned"), true),
            ("k3s://w-1", None, Some("belongs to another provider (k3s://)"), false),
            (
                "metal3://ns/bmh/id",
                Some(Away::NotReady),
                Some("belongs to another provider (metal3://)"),
                false,
            ),
        ] {
            let node = node("n", provider_id, away);
            assert_eq!(node.apart().as_deref(), apart, "{provider_id} {away:?}");
            assert_eq!(node.is_initialized(), initialized, "{provider_id}");
        }
    }

    #[test]
    fn due_nodes_are_all_where_none_is_alive() {
        let names = |nodes: &[Node]| due(nodes.iter()).map(|node| node.name.clone()).collect::<Vec<_>>();
        let (alive, dead) = (node("a", "vsphere://a", None), node("b", "", Some(Away::NotReady)));
        let other = node("c", "openstack:///c", None);
        assert_eq!(names(&[alive.clone(), dead.clone(), other.clone()]), ["a"]);
        assert_eq!(names(&[dead, other]), ["b", "c"]);
        assert_eq!(names(&[]), [""; 0]);
    }
}
