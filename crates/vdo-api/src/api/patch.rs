// SPDX-License-Identifier: Apache-2.0
//! Changes of what charts render, for what no value reaches.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A change of the objects that the chart of a driver renders. A patch that does not apply leaves its driver as it was applied last.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.jsonPatch) != has(self.strategicMerge)").message("write either jsonPatch or strategicMerge"))]
pub struct Patch {
    /// The objects that are changed.
    pub target: PatchTarget,
    /// Operations as RFC 6902 defines them, made one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub json_patch: Option<Vec<JsonOperation>>,
    /// A part of the object, merged as kubectl patch --type=strategic merges it: maps key by key, null removes a key, containers, env,
    /// volumes and other lists with a merge key item by item, all other lists as a whole; $patch: delete removes an item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_object")]
    pub strategic_merge: Option<Map<String, Value>>,
}

/// Which objects a patch changes: at least one has to be there.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct PatchTarget {
    /// The driver, by its name in the matrix, for example vsphere-csi.
    #[schemars(length(min = 1, max = 63))]
    pub driver: String,
    /// The kind of the objects, for example Deployment.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The name of the objects, in which * is any text, for example vsphere-csi-node*; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
}

/// One operation of a JSON patch.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[x_kube(validation = Rule::new("(self.op in ['move', 'copy']) == has(self.from)").message("move and copy need from, and the others have none"))]
pub struct JsonOperation {
    /// What is done.
    pub op: JsonOperationKind,
    /// The field, as a JSON pointer, for example /spec/template/spec/nodeSelector/disk.
    #[schemars(regex(pattern = "^/"), length(max = 1024))]
    pub path: String,
    /// The field that move and copy take the value from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), length(max = 1024))]
    pub from: Option<String>,
    /// The value for add, replace and test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub value: Option<Value>,
}

/// The operations of RFC 6902.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum JsonOperationKind {
    /// Sets a field, or puts an item into a list; `-` is the end of a list.
    Add,
    /// Removes what is there.
    Remove,
    /// Sets a field that is there.
    Replace,
    /// Moves a value.
    Move,
    /// Copies a value.
    Copy,
    /// Does not apply where another value is there.
    Test,
}

fn free_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
