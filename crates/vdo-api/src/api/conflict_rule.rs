// SPDX-License-Identifier: Apache-2.0
//! The field `spec.conflicts` of VDOConfig: which manager keeps a field that several field managers set.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Decides which manager keeps a field. A rule covers one field and all fields below it, in all objects or in the objects of a kind and a
/// name. If several rules cover a field, the last rule applies.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConflictRule {
    /// The kind of the objects, for example Deployment; default: all kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name of the objects; default: all names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path of the field, as vdoctl diff shows it, for example spec.replicas, metadata.labels[team] or
    /// spec.template.spec.containers[*].resources. The rule also covers all fields below this field.
    #[schemars(length(min = 1))]
    pub path: String,
    /// What the operator does with the field. Own: overwrite the value of the other manager. Yield: leave the field to the other manager.
    /// Fail: do not change the field, and report in the condition Ready which manager set the field and when.
    pub policy: ConflictPolicy,
}

/// What the operator does with a field that another manager also sets.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// The operator overwrites the field each time. If another manager changes it three times, the operator reports that manager and pauses
    /// for a while (DriftFight).
    Own,
    /// The operator no longer sets the field and does not report it. If the other manager removes the field, the field is not set.
    Yield,
    /// The operator does not change the field. Ready has the reason Conflict until the field is in sync or another rule applies.
    Fail,
}
