// SPDX-License-Identifier: Apache-2.0
//! The status of the custom resource VDOConfig: health, driver versions, matrix, nodes, plan, inventory and repaired drift.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The overall health in one word.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Every requested driver runs.
    Healthy,
    /// Work is in progress.
    Progressing,
    /// Management is paused, and the installed drivers work.
    Paused,
    /// Something that worked before has a problem.
    Degraded,
    /// The operator cannot continue until a user acts.
    Blocked,
    /// The health is unknown.
    Unknown,
}

/// The state of the drivers, the problems, and the next steps.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VDOConfigStatus {
    /// The generation of the specification that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The overall health in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// When the operator last confirmed this status. The operator confirms the status with every change, and every ten minutes if nothing
    /// changes. If the last confirmation is much older, no operator runs and the status is outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_confirmed: Option<Time>,
    /// The value of the annotation `vdo.vmware.com/reconcile-at` that the operator handled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The kstatus conditions Ready, Reconciling and Stalled, and one condition for each driver and each precondition.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The Kubernetes cluster for which the operator chose the driver versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesStatus>,
    /// The vCenters for which the operator chose the driver versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcenters: Vec<VcenterStatus>,
    /// The compatibility matrix in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixStatus>,
    /// The drivers that are requested or installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<DriverStatus>,
    /// The nodes of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodesStatus>,
    /// The pending changes. Absent if nothing has to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// The inventory, which lists the objects that the operator owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<InventoryStatus>,
    /// The cluster id under which vCenter registers the volumes. Absent until the id is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The last ten changes or deletions that other field managers made and the operator repaired. The newest entry is last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<DriftStatus>,
    /// The time since which the operator has waited without progress. Absent while the operator does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,
    /// The next attempt after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<NextAttempt>,
}

/// The Kubernetes cluster for which the operator chose the driver versions.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct KubernetesStatus {
    /// The version that the API server reports.
    pub version: String,
}

/// A vCenter for which the operator chose the driver versions.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct VcenterStatus {
    /// The name of the vSphere connection.
    pub connection: String,
    /// The version of the vCenter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The build number of the vCenter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Whether the connection is ready: True, False or Unknown.
    pub ready: String,
}

/// The compatibility matrix in use.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct MatrixStatus {
    /// The source of the matrix.
    pub source: String,
    /// The version of the matrix.
    pub version: i64,
    /// The digest of the matrix.
    pub digest: String,
    /// The fingerprint of the key that signed the matrix. Absent if no keys are trusted, and for the matrix that is built into the
    /// operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The fingerprints of the trusted signing keys. Absent if no keys are trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// When the publisher generated the matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Time>,
    /// When the matrix expires, as set by its publisher. The operator does not upgrade drivers with an expired matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// The newest Kubernetes version that the matrix covers, with its release date if the date is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knows: Option<String>,
}

/// A driver.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct DriverStatus {
    /// The name of the driver in the matrix.
    pub name: String,
    /// The desired version, which is installed or is being installed.
    pub version: String,
    /// The last version that worked with all its pods ready. During a rollout, this is the version that the rollout replaces. Absent until
    /// a version has worked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub running: String,
    /// The number of the revision that was applied last, as listed by vdoctl history. Absent until a revision has been applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The newest compatible version.
    pub available: String,
    /// The digest of the driver's chart.
    pub chart: String,
    /// The number of the driver's objects.
    pub objects: i64,
    /// The number of ready pods and the number of desired pods, for example 2/3.
    pub pods: String,
    /// The number of pods at the newest revision and the number of desired pods, for example 2/3. Absent once all pods are at the newest
    /// revision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub updated: String,
    /// Whether the driver works: True, False or Unknown.
    pub ready: String,
    /// The number of nodes that the driver has set up, and the number of nodes that it should set up, for example 3/4. The second number
    /// counts the nodes that are alive and on which the driver may run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nodes: String,
    /// Why the operator chose this version.
    pub because: String,
    /// The state of the driver, as a reason in CamelCase. Set only for drivers of spec.drivers, because these drivers have no condition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The state of the driver as a sentence, in addition to the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The nodes, and how far the drivers have set up the nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodesStatus {
    /// The number of all nodes.
    pub total: i64,
    /// The number of nodes with a provider ID and without the uninitialized taint.
    pub initialized: i64,
    /// The number of nodes on which the CSI driver is registered.
    pub csi_registered: i64,
    /// The number of nodes with a provider ID of another cloud provider. The operator does not wait for these nodes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub of_other_providers: i64,
    /// The first twenty nodes that a driver has not set up yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingNode>,
    /// The first twenty nodes that the operator does not wait for. These nodes are cordoned, unreachable or not ready, or belong to another
    /// cloud provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<ApartNode>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A node that the operator does not wait for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ApartNode {
    /// The name of the node.
    pub name: String,
    /// Why the operator does not wait for the node, as the rest of a sentence that begins with the name of the node.
    pub because: String,
}

/// A node that a driver has not set up yet.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct WaitingNode {
    /// The name of the node.
    pub name: String,
    /// The missing item, for example the provider ID.
    #[serde(rename = "for")]
    pub waits_for: String,
}

/// The pending changes. `vdoctl plan` shows them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct PlanStatus {
    /// The hash of the plan. A user approves the plan with this hash.
    pub hash: String,
    /// The number of objects that the plan changes.
    pub steps: i64,
    /// Whether the operator may carry out the plan.
    pub approved: bool,
}

/// The inventory, which lists the objects that the operator owns.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct InventoryStatus {
    /// The name of the Secret with the inventory, in the namespace of the VDOConfig.
    pub name: String,
    /// The number of objects in the inventory.
    pub objects: i64,
}

/// A change by another manager that the operator repaired.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct DriftStatus {
    /// The object that was changed or deleted.
    pub object: String,
    /// The path of the changed field. Absent if the object was deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The desired value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wanted: String,
    /// The value that the operator found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub found: String,
    /// The field manager that made the change.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// When the field manager made the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Time>,
    /// When the operator repaired the object.
    pub repaired: Time,
}

/// The next attempt after a failure.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct NextAttempt {
    /// The time of the next attempt.
    pub at: Time,
    /// The reason of the failure.
    pub because: String,
}
