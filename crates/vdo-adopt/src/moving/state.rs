// SPDX-License-Identifier: Apache-2.0
//! The state of a cluster during a move, as data: VDOConfig, old and new workloads, pods, nodes, and the copies of configuration.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use vdo_core::drivers::Driver;
use vdo_core::installed::MOVED;
use vdo_core::manifest::{CONTENT, Object};

/// What a move depends on.
#[derive(Clone)]
pub struct State {
    /// What the operator is asked for.
    pub config: Config,
    /// What the operator says it waits for.
    pub condition: String,
    /// What keeps the operator from installing a driver, by its name, beside the old one.
    pub obstacles: BTreeMap<&'static str, String>,
    /// The workloads of other tools that run a driver in another place than the operator.
    pub old: Vec<Old>,
    /// The workloads of the operator.
    pub new: Vec<New>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What the old workloads read where the operator keeps objects of the same names.
    pub shared: Vec<Shared>,
}

/// What the operator is asked for.
#[derive(Clone)]
pub enum Config {
    /// Nothing: there is no VDOConfig.
    Missing,
    /// To write nothing.
    Paused {
        /// Whether it has seen that.
        is_observed: bool,
    },
    /// To keep these drivers.
    Managed {
        /// The VDOConfig.
        object: Object,
        /// The names of the drivers.
        drivers: BTreeSet<String>,
        /// Whether the operator has seen it as it is.
        is_observed: bool,
    },
}

impl Config {
    pub(super) fn asks_for(&self, driver: &Driver) -> bool {
        matches!(self, Self::Managed { drivers, .. } if drivers.contains(driver.name))
    }
}

/// A pod of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// The node that has it, or for which a new one waits; empty where none has it.
    pub node: String,
    /// Whether it is ready.
    pub ready: bool,
}

/// A workload of another tool that runs a driver.
#[derive(Clone)]
pub struct Old {
    /// The driver.
    pub driver: &'static Driver,
    /// The workload.
    pub object: Object,
    /// The manager that keeps it as it is, where there is one.
    pub owner: Option<String>,
    /// Who else wrote the fields that are changed for the move.
    pub writers: Vec<String>,
    /// Its pods, those that end too.
    pub pods: Vec<Pod>,
}

impl Old {
    pub(super) fn is_marked(&self) -> bool {
        self.object.annotation(MOVED).is_some()
    }
}

/// A workload of the operator.
#[derive(Clone)]
pub struct New {
    /// The driver.
    pub driver: &'static Driver,
    /// The workload.
    pub object: Object,
    /// What it waits for; `None` of one that is healthy.
    pub waits: Option<String>,
    /// Its pods, those that end too.
    pub pods: Vec<Pod>,
}

/// A node.
#[derive(Clone)]
pub struct Node {
    /// The node.
    pub object: Object,
    /// Whether its CSINode has the driver.
    pub is_registered: bool,
}

impl Node {
    /// Whether it belongs to the new node plugin.
    pub(super) fn is_moved(&self) -> bool {
        self.object.label(MOVED).is_some()
    }

    pub(super) fn is_ready(&self) -> bool {
        let conditions = self.object.value().pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    }
}

/// A ConfigMap or Secret that an old workload reads.
#[derive(Clone)]
pub struct Shared {
    /// As it is.
    pub live: Option<Object>,
    /// Whether the operator has written it.
    pub is_ours: bool,
    /// The copy from before the move.
    pub saved: Option<Object>,
}

impl Shared {
    /// Whether it is not as it was before the move.
    pub(super) fn differs(&self) -> bool {
        let live = self.live.as_ref().map_or([None; CONTENT.len()], Object::content);
        self.saved.as_ref().is_some_and(|saved| saved.content() != live)
    }
}
