// SPDX-License-Identifier: Apache-2.0
//! Checks the preconditions of an upgrade that the edges of a matrix name (node ids, machines, volume limit) against the cluster.

use crate::cluster::Reader;
use crate::reconcile::driver_run::DriverRuns;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::ClusterState;
use crate::reconcile::observe::cluster::csi_nodes_watch;
use kube::ResourceExt;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::api::{MachinesStatus, VsphereCloudConfig};
use vdo_core::drivers::{CSI_DRIVER, STORAGE};
use vdo_core::manifest::Object;
use vdo_core::matrix::Index;

/// The precondition that [`crate::reconcile::preconditions::shared_volumes`] looks at when an upgrade is due.
pub(in crate::reconcile) const SHARED_DETACHED: &str = "NoRwxAttachments";

/// What the preconditions of an upgrade are checked against.
struct UpgradeFacts<'a> {
    /// Node and the name that the CSI driver gave it, of every node on which it is registered.
    registered: &'a [(String, String)],
    /// By connection, which nodes are which machines; `None` where the vCenter was not asked yet.
    machines: &'a [(String, Option<MachinesStatus>)],
    /// The value of `MAX_VOLUMES_PER_NODE` in the node plugin that runs, if it has one.
    limit: Option<&'a str>,
    /// Whether nodes of up to 255 volumes are asked for.
    many_volumes: bool,
}

/// Why a precondition is not known to hold, and what to do about it; `Ok` when it is.
type Checked = Result<(), String>;

/// Reads what the checks need and adds to the request what is not known to hold. Without an installed driver nothing is upgraded,
/// and nothing is checked.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn hold_upgrades(
    reader: &Reader,
    state: &ClusterState,
    connections: &[VsphereCloudConfig],
    index: &Index,
    runs: &mut DriverRuns,
) -> Result<(), ReconcileError> {
    let asked = runs.get_mut(STORAGE.name).and_then(|run| run.asked.as_mut());
    let Some(asked) = asked.filter(|_| state.versions().contains_key(STORAGE.name)) else {
        return Ok(());
    };
    let watch = csi_nodes_watch();
    let registered: Vec<_> = reader
        .load([watch.clone()])
        .await?
        .list(&watch)
        .iter()
        .filter_map(registration)
        .collect();
    let of_others = state.of_others.iter().map(|found| &found.object);
    let machines: Vec<_> = connections
        .iter()
        .filter(|object| asked.connections.contains(&object.name_any()))
        .map(|object| (object.name_any(), object.status.as_ref().and_then(|status| status.machines.clone())))
        .collect();
    let known = UpgradeFacts {
        registered: &registered,
        machines: &machines,
        limit: state.live.values().chain(of_others).find_map(limit),
        many_volumes: asked.question.features.contains_key("manyVolumesPerNode"),
    };
    asked.question.unmet = Some(unmet(index, &known));
    Ok(())
}

/// Every precondition of the index that is not known to hold.
fn unmet(index: &Index, known: &UpgradeFacts<'_>) -> BTreeMap<String, String> {
    let names = index.preconditions.keys();
    names.filter_map(|name| Some((name.clone(), check(name, known).err()?))).collect()
}

fn check(name: &str, known: &UpgradeFacts<'_>) -> Checked {
    match name {
        "CsiNodeIds" => node_ids(known),
        "NodeVmsFound" => machines_found(known),
        "VolumeLimitBySwitch" => volume_limit_is_the_default(known),
        // Looked at when it matters.
        SHARED_DETACHED => Ok(()),
        _ => Err(
            "this version of the operator cannot check this precondition; check it yourself, then pin the version with allowIncompatible"
                .into(),
        ),
    }
}

/// The node and what the driver calls it.
fn registration(csi_node: &Object) -> Option<(String, String)> {
    let drivers = csi_node.value().pointer("/spec/drivers")?.as_array()?;
    let own = drivers.iter().find(|driver| driver["name"] == CSI_DRIVER)?;
    Some((csi_node.name().to_owned(), own["nodeID"].as_str().unwrap_or_default().to_owned()))
}

fn limit(object: &Object) -> Option<&str> {
    let containers = object
        .pod_spec()
        .filter(|_| object.kind() == "DaemonSet")?
        .get("containers")?
        .as_array()?;
    let variables = containers.iter().filter_map(|container| container.get("env")?.as_array()).flatten();
    let mut limits = variables.filter(|variable| variable["name"] == "MAX_VOLUMES_PER_NODE");
    limits.find_map(|variable| variable.get("value").and_then(Value::as_str))
}

fn node_ids(known: &UpgradeFacts<'_>) -> Checked {
    let is_uuid = |text: &str| {
        let groups: Vec<&str> = text.split('-').collect();
        groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.concat().chars().all(|c| c.is_ascii_hexdigit())
    };
    match known.registered.iter().find(|(_, id)| !is_uuid(id)) {
        None => Ok(()),
        Some((node, id)) => Err(format!(
            "CSINode {node} has the node ID {id:?}, which is not a UUID; set the feature state use-csinode-id to true and let the node \
             plugins restart"
        )),
    }
}

fn machines_found(known: &UpgradeFacts<'_>) -> Checked {
    let asked: Vec<&MachinesStatus> = known.machines.iter().filter_map(|(_, machines)| machines.as_ref()).collect();
    let waiting = known.machines.iter().find(|(_, machines)| machines.is_none()).map(|(name, _)| name);
    let complete = |machines: &&MachinesStatus| i32::try_from(machines.list.len()).is_ok_and(|listed| listed >= machines.nodes);
    let mut unknown = None;
    for (node, _) in known.registered {
        let entries: Vec<_> = asked
            .iter()
            .map(|machines| machines.list.iter().find(|entry| entry.node == *node))
            .collect();
        if entries.iter().flatten().any(|entry| !entry.machine.is_empty()) {
            continue;
        }
        // A list names nodes with a problem first, so a node beyond its end is a machine of that vCenter.
        let beyond = asked
            .iter()
            .zip(&entries)
            .any(|(machines, entry)| entry.is_none() && !complete(machines));
        if beyond {
            continue;
        }
        if waiting.is_none() && !entries.is_empty() && entries.iter().all(Option::is_some) {
            let names: Vec<&str> = known.machines.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!(
                "node {node} has no virtual machine in the vCenter of connection {}, so the CSI controller of the new version would exit; \
                 see vdoctl doctor nodes, or delete the node if its machine was deleted",
                names.join(" or ")
            ));
        }
        unknown.get_or_insert(node);
    }
    match (unknown, waiting) {
        (None, _) => Ok(()),
        (Some(node), Some(connection)) => Err(format!(
            "it is not known whether node {node} is a virtual machine: the operator has not queried the vCenter of connection {connection} yet"
        )),
        (Some(node), None) => Err(format!(
            "it is not known yet whether node {node} is a virtual machine; the operator checks the node again"
        )),
    }
}

fn volume_limit_is_the_default(known: &UpgradeFacts<'_>) -> Checked {
    /// What the driver does without the variable, and with its feature state.
    const DEFAULT: u32 = 59;
    const MANY: u32 = 255;
    let Some(text) = known.limit else { return Ok(()) };
    match text.parse::<u32>() {
        Ok(DEFAULT) => Ok(()),
        Ok(limit) if known.many_volumes && limit <= MANY => Ok(()),
        _ => Err(format!(
            "MAX_VOLUMES_PER_NODE is {text}, but the new version ignores this value and uses the limit {DEFAULT}; remove the variable from \
             spec.storageProvider.values.node, or set spec.storageProvider.features[high-pv-node-density] to true for the limit {MANY}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::api::MachineStatus;

    const UUID: &str = "4201f8cd-1b9d-0f4c-8a3e-52f6a2c1d9aa";

    fn machines(nodes: i32, list: &[(&str, &str)]) -> Option<MachinesStatus> {
        let entry = |(node, machine): &(&str, &str)| MachineStatus {
            node: (*node).into(),
            machine: (*machine).into(),
            ..MachineStatus::default()
        };
        Some(MachinesStatus {
            nodes,
            found: nodes,
            with_problems: 0,
            list: list.iter().map(entry).collect(),
        })
    }

    fn say(registered: &[(&str, &str)], seen: &[Option<MachinesStatus>], limit: Option<&str>, many_volumes: bool) -> Vec<String> {
        let registered: Vec<_> = registered.iter().map(|(node, id)| ((*node).to_owned(), (*id).to_owned())).collect();
        let machines: Vec<_> = seen
            .iter()
            .enumerate()
            .map(|(i, seen)| (format!("vc{}", i + 1), seen.clone()))
            .collect();
        let known = UpgradeFacts {
            registered: &registered,
            machines: &machines,
            limit,
            many_volumes,
        };
        let index = Index::parse(vdo_source::fetch::embedded::index()).expect("an index");
        let cut = |(name, what): (String, String)| format!("{name}: {}", what.split([';', ',']).next().unwrap_or_default());
        unmet(&index, &known).into_iter().map(cut).collect()
    }

    #[test]
    fn upgrade_preconditions_every_matrix_name_is_known() {
        let index = Index::parse(vdo_source::fetch::embedded::index()).expect("an index");
        let nothing = UpgradeFacts {
            registered: &[],
            machines: &[],
            limit: None,
            many_volumes: false,
        };
        for name in index.preconditions.keys() {
            assert_eq!(
                check(name, &nothing),
                Ok(()),
                "{name} is not known, or does not hold in an empty cluster"
            );
        }
        assert!(
            check("Backup", &nothing).is_err(),
            "what cannot be checked is not taken for granted"
        );
    }

    #[test]
    fn upgrade_unmet_or_unknown_precondition_waits() {
        let two = [("a", UUID), ("b", UUID)];
        let both = || machines(2, &[("a", "/DC/vm/a"), ("b", "/DC/vm/b")]);
        let one = || machines(2, &[("b", ""), ("a", "/DC/vm/a")]);
        for (registered, seen, limit, many, expected) in [
            (&two[..], vec![both()], None, false, vec![]),
            (&two, vec![both()], Some("59"), false, vec![]),
            (
                &[("a", UUID), ("b", "b")],
                vec![both()],
                None,
                false,
                vec!["CsiNodeIds: CSINode b has the node ID \"b\""],
            ),
            (
                &two,
                vec![one()],
                None,
                false,
                vec!["NodeVmsFound: node b has no virtual machine in the vCenter of connection vc1"],
            ),
            // the other vCenter has it, or may have it
            (&two, vec![one(), machines(2, &[("a", ""), ("b", "/DC/vm/b")])], None, false, vec![]),
            (
                &two,
                vec![one(), None],
                None,
                false,
                vec![
                    "NodeVmsFound: it is not known whether node b is a virtual machine: the operator has not queried the vCenter of connection vc2 yet",
                ],
            ),
            (
                &two,
                vec![None],
                None,
                false,
                vec![
                    "NodeVmsFound: it is not known whether node a is a virtual machine: the operator has not queried the vCenter of connection vc1 yet",
                ],
            ),
            // a node that joined after the vCenter was asked
            (
                &two,
                vec![machines(1, &[("a", "/DC/vm/a")])],
                None,
                false,
                vec!["NodeVmsFound: it is not known yet whether node b is a virtual machine"],
            ),
            // beyond the end of the list are nodes without a problem
            (&two, vec![machines(200, &[("c", "/DC/vm/c")])], None, false, vec![]),
            (
                &two,
                vec![both()],
                Some("120"),
                false,
                vec!["VolumeLimitBySwitch: MAX_VOLUMES_PER_NODE is 120"],
            ),
            (&two, vec![both()], Some("120"), true, vec![]),
            (
                &two,
                vec![both()],
                Some("300"),
                true,
                vec!["VolumeLimitBySwitch: MAX_VOLUMES_PER_NODE is 300"],
            ),
        ] {
            assert_eq!(say(registered, &seen, limit, many), expected, "{registered:?} {seen:?} {limit:?}");
        }
    }

    #[test]
    fn upgrade_facts_are_read_from_csinode_and_daemonset() {
        let object = |value| Object::new(value).expect("an object");
        let node = object(
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "a"}, "spec": {"drivers": [
            {"name": "other", "nodeID": "x"}, {"name": CSI_DRIVER, "nodeID": UUID}]}}),
        );
        assert_eq!(registration(&node), Some(("a".into(), UUID.into())));
        let daemon_set = object(
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "n", "namespace": "n"}, "spec": {"template":
            {"spec": {"containers": [{"name": "r"}, {"name": "d", "env": [{"name": "X", "value": "1"}, {"name": "MAX_VOLUMES_PER_NODE", "value": "59"}]}]}}}}),
        );
        assert_eq!(limit(&daemon_set), Some("59"));
        assert_eq!(limit(&node), None);
    }
}
