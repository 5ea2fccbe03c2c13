// SPDX-License-Identifier: Apache-2.0
//! The specification of CompatibilityConfig, the custom resource of the original operator with the URL of a matrix.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The source of the compatibility matrix. The field has the same name as in the original VDO operator.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "vdo.vmware.com",
    version = "v1alpha1",
    kind = "CompatibilityConfig",
    plural = "compatibilityconfigs",
    namespaced,
    category = "vsphere",
    doc = "Names a source from which the operator reads the compatibility matrix.",
    derive = "PartialEq",
    printcolumn(name = "Matrix", type_ = "string", json_path = ".spec.matrixURL"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {}))]
pub struct CompatibilityConfigSpec {
    /// The URL of the index of a compatibility matrix.
    #[serde(rename = "matrixURL", default, skip_serializing_if = "Option::is_none")]
    pub matrix_url: Option<String>,
}
