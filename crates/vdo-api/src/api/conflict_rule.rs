// SPDX-License-Identifier: Apache-2.0
//! Who keeps a field that several managers set.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who keeps a field. A rule is for one field, or everything below one, of all objects or of those of a kind and a name. Of several
/// rules for a field the last one counts.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConflictRule {
    /// The kind of the objects, for example Deployment; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name of the objects; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The field, as vdoctl diff shows it, with everything below it, for example spec.replicas, metadata.labels[team] or
    /// spec.template.spec.containers[*].resources.
    #[schemars(length(min = 1))]
    pub path: String,
    /// Own: it is taken back. Yield: it is left to the manager that sets it. Fail: it is left alone, and the condition says who set it when.
    pub policy: ConflictPolicy,
}

/// What becomes of a field that another manager has changed too.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// It is taken back, at once and each time; who keeps setting it is named, and after three times left alone for a while (DriftFight).
    Own,
    /// It is left to the manager that sets it: the operator gives it up and says nothing more of it. When no one sets it any more, it is not set.
    Yield,
    /// It is left as it is, and Ready has the reason Conflict until it is in sync, or another rule says what to do.
    Fail,
}
