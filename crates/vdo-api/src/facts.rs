// SPDX-License-Identifier: Apache-2.0
//! The observed cluster as data without Kubernetes objects: versions, nodes, vSphere connections with credentials, snapshot support.

mod distribution;
mod ignored_nodes;
mod nodes_without_cloud_provider;

pub use distribution::Distribution;
pub use ignored_nodes::{Away, due};
pub use nodes_without_cloud_provider::left_alone;

use crate::types::{KubernetesVersion, Secret, Thumbprint, Trust, VcenterVersion};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A vSphere connection as it is known now.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The name of the object.
    pub name: String,
    /// The address of the vCenter.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// Datacenters to look in; empty means all.
    pub datacenters: Vec<String>,
    /// How the certificate is trusted.
    pub trust: Trust,
    /// The SHA-1 thumbprint of the certificate that `trust` names by SHA-256, once it has been seen.
    pub sha1: Option<Thumbprint>,
    /// The version that the vCenter said last; `None` when it never answered.
    pub version: Option<VcenterVersion>,
    /// Its build.
    pub build: Option<String>,
    /// Whether the connection is ready; `None` when that is not known, for example in an outage.
    pub ready: Option<bool>,
    /// Why, from the connection's own Ready condition.
    pub message: String,
    /// The user name and password.
    pub credentials: Credentials,
    /// Why these settings must not reach a driver yet: the credentials have not been seen to work, or a datacenter is missing.
    pub blocked: Option<String>,
    /// The drivers that use it.
    pub drivers: Vec<String>,
    /// Drivers that cannot do their work because the account lacks privileges, and which.
    pub lacking_privileges: Vec<String>,
    /// Which nodes have a machine here and by another connection, too.
    pub machines_twice: Option<String>,
    /// Whether the vCenter has each of the tag categories that it was asked for; `None` where tags could not be read.
    pub tag_categories: Option<BTreeMap<String, bool>>,
}

/// A user name and a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// Credentials with the Secret that they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCredentials {
    /// User name and password.
    pub credentials: Credentials,
    /// The Secret as namespace/name.
    pub secret: String,
    /// The resource version of the Secret.
    pub version: String,
}

/// A node as the drivers see it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it bears a control-plane label of any of the usual names.
    pub control_plane: bool,
    /// Its provider ID; empty until a cloud provider has set it.
    pub provider_id: String,
    /// Whether it bears the taint that a cloud provider takes away.
    pub uninitialized: bool,
    /// Whether it runs Linux.
    pub linux: bool,
    /// Whether the CSI driver is registered on it.
    pub csi_registered: bool,
    /// With which topology keys the CSI driver is registered on it.
    pub topology_keys: BTreeSet<String>,
    /// `status.nodeInfo.systemUUID`, as the firmware says it.
    pub system_uuid: String,
    /// `status.nodeInfo.kubeletVersion`.
    pub kubelet: Option<String>,
    /// Its addresses of the types InternalIP and ExternalIP.
    pub addresses: Vec<String>,
    /// Why its pod network is not ready, in the words of the node; `None` when it says no such thing.
    pub network: Option<String>,
    /// Why it takes no new pods for now; `None` while it is alive.
    pub away: Option<Away>,
    /// What decides which pods may run on it.
    pub place: Place,
}

/// What a node offers to pods and asks of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// All its labels.
    pub labels: BTreeMap<String, String>,
    /// Taints that keep pods away, by key, value and effect (NoSchedule or NoExecute).
    pub taints: Vec<(String, String, String)>,
}

impl Place {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

impl Node {
    /// What this node still lacks from the cloud provider, if anything. A node of another provider gets nothing from it.
    #[must_use]
    pub fn lacks(&self) -> Option<&'static str> {
        if self.other_provider().is_some() {
            None
        } else if self.provider_id.is_empty() {
            Some("providerID")
        } else if self.uninitialized {
            Some("removal of the uninitialized taint")
        } else {
            None
        }
    }
}

/// The cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The version of the API server.
    pub version: KubernetesVersion,
    /// The UID of the kube-system namespace, which is the identity of the cluster.
    pub uid: String,
    /// The nodes, by name. All readers share them: there may be thousands.
    pub nodes: Vec<Arc<Node>>,
}

impl Cluster {
    /// How many control-plane nodes there are.
    #[must_use]
    pub fn control_plane_count(&self) -> usize {
        self.nodes.iter().filter(|node| node.control_plane).count()
    }
}

/// What volume snapshots need of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotSupport {
    /// The definitions that are not served, by name.
    pub missing: Vec<String>,
    /// The pods of snapshot controllers, as namespace/name, and whether each is ready.
    pub controllers: Vec<(String, bool)>,
    /// The definitions that convert objects through a webhook, by name, and the Service or address of it.
    pub converting: Vec<(String, String)>,
}
