// SPDX-License-Identifier: Apache-2.0
//! The field `spec.patches`: JSON patches and strategic merge patches of the objects that a chart renders.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A change of the objects that the chart of a driver renders. If a patch cannot be applied, the operator keeps the objects
/// that it applied last.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.jsonPatch) != has(self.strategicMerge)").message("write either jsonPatch or strategicMerge"))]
pub struct Patch {
    /// The objects that the patch changes.
    pub target: PatchTarget,
    /// JSON patch operations (RFC 6902), applied in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub json_patch: Option<Vec<JsonOperation>>,
    /// A part of the object, merged as by kubectl patch --type=strategic. Maps are merged key by key, and null removes a key. Lists with a
    /// merge key, such as containers, env and volumes, are merged item by item, and $patch: delete removes an item. All other lists are
    /// replaced as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_object")]
    pub strategic_merge: Option<Map<String, Value>>,
}

/// Selects the objects that a patch changes. At least one object must match.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct PatchTarget {
    /// The name of the driver in the matrix, for example vsphere-csi.
    #[schemars(length(min = 1, max = 63))]
    pub driver: String,
    /// The kind of the objects, for example Deployment.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The name of the objects; default: all names. In the name, * matches any text, for example vsphere-csi-node*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
}

/// One operation of a JSON patch.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[x_kube(validation = Rule::new("(self.op in ['move', 'copy']) == has(self.from)")
    .message("from is required for move and copy, and is not allowed for other operations"))]
pub struct JsonOperation {
    /// The operation.
    pub op: JsonOperationKind,
    /// The field, as a JSON pointer, for example /spec/template/spec/nodeSelector/disk.
    #[schemars(regex(pattern = "^/"), length(max = 1024))]
    pub path: String,
    /// For the operations move and copy: the field from which the value is taken, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"), length(max = 1024))]
    pub from: Option<String>,
    /// The value for the operations add, replace and test.
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
    /// Removes a field or an item.
    Remove,
    /// Sets an existing field.
    Replace,
    /// Moves a value.
    Move,
    /// Copies a value.
    Copy,
    /// Fails if the field has another value.
    Test,
}

fn free_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
