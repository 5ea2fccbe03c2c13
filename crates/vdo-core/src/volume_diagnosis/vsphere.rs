// SPDX-License-Identifier: Apache-2.0
//! The data of the vCenters for the diagnosis: registered volumes, machines of nodes, and datastores with their hosts.

use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::VsphereCloudConfig;

/// A volume as a vCenter has it registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Listed {
    /// Its name there.
    pub name: String,
    /// Its size in MiB; `None` where the vCenter does not report it.
    pub mebibytes: Option<u64>,
    /// The PersistentVolumes that it is registered for, by name.
    pub persistent_volumes: Vec<String>,
}

/// The virtual machine of a node, as the operator noted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct NodeMachine {
    /// Its inventory path.
    pub path: String,
    /// The name of the ESXi host that it runs on.
    pub host: String,
    /// Its power state, such as `poweredOn`.
    pub power: String,
}

impl NodeMachine {
    /// `machine /DC0/vm/w-1 (poweredOn) on host esx-1`.
    pub(super) fn text(&self) -> String {
        let mut text = format!("machine {}", self.path);
        if !self.power.is_empty() {
            text.push_str(&format!(" ({})", self.power));
        }
        if !self.host.is_empty() {
            text.push_str(&format!(" on host {}", self.host));
        }
        text
    }
}

/// The machines of nodes that the operator noted in the status of the connections, by the name of the node. A status has a hundred.
#[must_use]
pub fn machines(connections: &[VsphereCloudConfig]) -> BTreeMap<String, NodeMachine> {
    let statuses = connections.iter().filter_map(|connection| connection.status.as_ref());
    let all = statuses
        .filter_map(|status| status.machines.as_ref())
        .flat_map(|machines| &machines.list);
    all.filter(|machine| !machine.machine.is_empty())
        .map(|machine| {
            let found = NodeMachine {
                path: machine.machine.clone(),
                host: machine.host.clone(),
                power: machine.power.clone(),
            };
            (machine.node.clone(), found)
        })
        .collect()
}

/// A datastore that can be used, and the names of the hosts that reach it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
pub struct Reached {
    /// The name of the datastore.
    pub datastore: String,
    /// The hosts.
    pub hosts: BTreeSet<String>,
}
