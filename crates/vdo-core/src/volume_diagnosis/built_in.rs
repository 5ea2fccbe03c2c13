// SPDX-License-Identifier: Apache-2.0
//! Finds out whether the CSI driver serves a volume of the in-tree driver `kubernetes.io/vsphere-volume` (CSI migration).

use super::index::{BUILT_IN, Index};
use super::objects::{CsiNode, MIGRATED_PLUGINS, Volume};
use super::{Cause, Finding, Observed};
use crate::drivers::{CSI_DRIVER, MIGRATION};
use vdo_api::types::{name_list, verb};

/// Whether a volume is served, and what it lacks otherwise. Nothing is said where that was not read.
pub(super) fn finding(observed: &Observed, index: &Index<'_>, volume: &Volume, found: &dyn Fn(Cause, &str) -> Finding) -> Option<Finding> {
    let path = volume.spec.vsphere_volume.as_ref()?.volume_path.as_str();
    if observed.drivers.is_some() && !index.drivers.contains(CSI_DRIVER) {
        return Some(found(Cause::DriverNotInstalled, path));
    }
    if observed.is_off(MIGRATION) {
        return Some(found(Cause::BuiltInNotServed, &format!("{path}: {}", Observed::off(MIGRATION))));
    }
    observed.drivers.as_ref()?;
    observed.csi_nodes.as_ref()?;
    if index.registered.is_empty() {
        return Some(found(Cause::NoNodeRegistered, path));
    }
    let (migrated, others): (Vec<_>, Vec<_>) = index.registered.iter().partition(|(_, node)| migrates(node));
    let names: Vec<&str> = others.iter().map(|(name, _)| **name).collect();
    let lacks = format!("has {BUILT_IN} in the annotation {MIGRATED_PLUGINS}");
    Some(match (migrated.is_empty(), names.is_empty()) {
        (true, _) => found(Cause::BuiltInNotServed, &format!("{path}: no CSINode {lacks}")),
        (false, true) => found(Cause::BuiltInVolume, path),
        (false, false) => found(
            Cause::BuiltInVolume,
            &format!(
                "{path}; but CSI migration is not active on {}, because no CSINode of {} {lacks}",
                name_list(&names),
                verb(names.len(), "this node", "these nodes")
            ),
        ),
    })
}

/// Whether the kubelet of a node hands volumes of the built-in driver to CSI, as it notes in its CSINode.
fn migrates(node: &CsiNode) -> bool {
    let plugins = node.metadata.annotation(MIGRATED_PLUGINS).unwrap_or_default();
    plugins.split(',').any(|plugin| plugin == BUILT_IN)
}
