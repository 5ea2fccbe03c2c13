// SPDX-License-Identifier: Apache-2.0
//! The status of the custom resource VDOConfig.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The one word.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Everything asked for runs.
    Healthy,
    /// Work is under way.
    Progressing,
    /// Management is paused; what is installed works.
    Paused,
    /// Something that ran does not run as it should.
    Degraded,
    /// Nothing will change until a person acts.
    Blocked,
    /// It is unknown.
    Unknown,
}

/// What runs, what is wrong, what comes next.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VDOConfigStatus {
    /// The generation of the specification that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// When the operator last confirmed this status: with every change, and every ten minutes without one. A status that is much older
    /// describes the past, because no operator runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_confirmed: Option<Time>,
    /// The value of the annotation `vdo.vmware.com/reconcile-at` that the operator acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Ready, Reconciling and Stalled as kstatus knows them, and one for each driver and precondition.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The cluster that drivers were chosen for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesStatus>,
    /// The vCenters that drivers were chosen for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcenters: Vec<VcenterStatus>,
    /// The compatibility matrix in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixStatus>,
    /// The drivers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<DriverStatus>,
    /// The nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodesStatus>,
    /// What is about to be changed; nothing at rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// Where the list of owned objects is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<InventoryStatus>,
    /// The identity under which volumes are registered in vCenter, since it is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// What another manager changed or deleted and was brought back, the newest last; the last ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<DriftStatus>,
    /// Since when nothing has moved on, while something is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,
    /// When the next attempt is made after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<NextAttempt>,
}

/// The cluster that drivers were chosen for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct KubernetesStatus {
    /// Its version as the API server says it.
    pub version: String,
}

/// A vCenter that drivers were chosen for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct VcenterStatus {
    /// The vSphere connection.
    pub connection: String,
    /// The version of the vCenter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Whether the connection is ready: True, False or Unknown.
    pub ready: String,
}

/// The compatibility matrix in use.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct MatrixStatus {
    /// Where it came from.
    pub source: String,
    /// Its version.
    pub version: i64,
    /// Its digest.
    pub digest: String,
    /// The fingerprint of the key that has signed it; absent where no keys are trusted, and for the one in the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The fingerprints of the keys that are trusted; absent where none are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// When its publisher made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Time>,
    /// Until when it is good by its publisher's word: past it no upgrade comes from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// The newest Kubernetes that it knows, with the day of its release where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knows: Option<String>,
}

/// A driver.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct DriverStatus {
    /// Its name in the matrix.
    pub name: String,
    /// The version that is wanted: installed, or being installed.
    pub version: String,
    /// The version that works, all its pods ready, or did last: while another one rolls out, the one that it replaces. Absent as long
    /// as none has worked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub running: String,
    /// The number of the state that was applied last, see vdoctl history; absent as long as nothing was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The newest version that would fit.
    pub available: String,
    /// The digest of its chart.
    pub chart: String,
    /// How many objects it consists of.
    pub objects: i64,
    /// Pods that are ready, of pods that should be.
    pub pods: String,
    /// Pods at the newest revision, of pods that should be; absent once all are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub updated: String,
    /// Whether it works: True, False or Unknown.
    pub ready: String,
    /// The nodes on which it has done its work, of those that count for it: a node counts where the driver may run and while it is alive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nodes: String,
    /// Why this version was chosen.
    pub because: String,
    /// How it is, as a reason, where no condition says it: for the drivers of spec.drivers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The nodes, as the drivers see them.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodesStatus {
    /// All nodes.
    pub total: i64,
    /// Nodes with a provider ID and without the uninitialized taint.
    pub initialized: i64,
    /// Nodes on which the CSI driver is registered.
    pub csi_registered: i64,
    /// Nodes whose provider ID another cloud provider has written. Nothing waits for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub of_other_providers: i64,
    /// The first twenty nodes that lack something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingNode>,
    /// The first twenty nodes that are counted apart, because they are not alive or of another provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<ApartNode>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A node that nothing waits for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct ApartNode {
    /// The node.
    pub name: String,
    /// Why, as the rest of a sentence that begins with its name.
    pub because: String,
}

/// A node that lacks something.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct WaitingNode {
    /// The node.
    pub name: String,
    /// What it lacks.
    #[serde(rename = "for")]
    pub waits_for: String,
}

/// What is about to be changed. `vdoctl plan` shows it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct PlanStatus {
    /// The hash by which it is approved.
    pub hash: String,
    /// How many objects it touches.
    pub steps: i64,
    /// Whether it may be carried out.
    pub approved: bool,
}

/// Where the list of owned objects is kept.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct InventoryStatus {
    /// The ConfigMap in the namespace of the VDOConfig.
    pub name: String,
    /// How many objects are in it.
    pub objects: i64,
}

/// A change by another manager that was brought back.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct DriftStatus {
    /// The object.
    pub object: String,
    /// The field; absent when the object was deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What is wanted there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wanted: String,
    /// What was found there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub found: String,
    /// The field manager that changed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// When it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Time>,
    /// When it was brought back.
    pub repaired: Time,
}

/// When the next attempt is made.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct NextAttempt {
    /// The time.
    pub at: Time,
    /// The reason.
    pub because: String,
}
