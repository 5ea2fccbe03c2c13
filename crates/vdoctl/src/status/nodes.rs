// SPDX-License-Identifier: Apache-2.0
//! Counts nodes for `status`: the nodes on which a driver has done its work, and the nodes for which the operator does not wait.

use vdo_api::api::{DriverStatus, NodesStatus, VDOConfigStatus};
use vdo_api::types::{count, name_list};
use vdo_core::drivers;

/// The nodes on which a driver has done its work, of those that count for it. An earlier operator counts all nodes.
pub(crate) fn nodes_of(driver: &DriverStatus, status: &VDOConfigStatus) -> Option<(i64, i64)> {
    let counted = || {
        let (done, all) = driver.nodes.split_once('/')?;
        Some((done.parse().ok()?, all.parse().ok()?))
    };
    let all = || {
        let nodes = status.nodes.as_ref()?;
        Some(((drivers::known(&driver.name)?.on_nodes.count)(nodes), nodes.total))
    };
    counted().or_else(all)
}

/// The nodes that are counted apart, in a line.
pub(super) fn apart(nodes: &NodesStatus) -> Option<String> {
    let all: Vec<String> = nodes.apart.iter().map(|node| format!("{} {}", node.name, node.because)).collect();
    let (verb, them) = if all.len() == 1 { ("is", "it") } else { ("are", "them") };
    let nodes = count(all.len(), "node");
    (!all.is_empty()).then(|| {
        format!(
            "{nodes} {verb} counted separately, and the operator does not wait for {them}: {}",
            name_list(&all)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::api::ApartNode;

    #[test]
    fn nodes_of_a_driver_are_those_that_count_for_it() {
        let status = VDOConfigStatus {
            nodes: Some(NodesStatus {
                total: 5,
                csi_registered: 3,
                ..NodesStatus::default()
            }),
            ..VDOConfigStatus::default()
        };
        for (name, nodes, expected) in [
            (drivers::CSI, "2/2", Some((2, 2))),
            (drivers::CSI, "", Some((3, 5))),
            ("antrea", "", None),
        ] {
            let driver = DriverStatus {
                name: name.into(),
                nodes: nodes.into(),
                ..DriverStatus::default()
            };
            assert_eq!(nodes_of(&driver, &status), expected, "{name} {nodes}");
        }
    }

    #[test]
    fn apart_nodes_are_named_in_a_line() {
        let apart_of = |names: &[&str]| {
            let nodes = names.iter().map(|name| ApartNode {
                name: (*name).into(),
                because: "is not ready".into(),
            });
            apart(&NodesStatus {
                apart: nodes.collect(),
                ..NodesStatus::default()
            })
        };
        assert_eq!(apart_of(&[]), None);
        assert_eq!(
            apart_of(&["w-1"]).as_deref(),
            Some("1 node is counted separately, and the operator does not wait for it: w-1 is not ready")
        );
        assert_eq!(
            apart_of(&["w-1", "w-2"]).as_deref(),
            Some("2 nodes are counted separately, and the operator does not wait for them: w-1 is not ready, w-2 is not ready")
        );
    }
}
