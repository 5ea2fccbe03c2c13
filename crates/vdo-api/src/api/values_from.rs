// SPDX-License-Identifier: Apache-2.0
//! The field `valuesFrom` of a driver: the ConfigMaps and Secrets with chart values.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A key with values as YAML, in a ConfigMap or a Secret in the namespace of the VDOConfig.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ValuesFrom {
    /// The kind of the object.
    pub kind: ValuesKind,
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in the data of the object; default: values.yaml.
    #[serde(default = "values_yaml", skip_serializing_if = "is_values_yaml")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A kind with data.
#[derive(Serialize, Deserialize, schemars::JsonSchema, Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::Display)]
pub enum ValuesKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

fn values_yaml() -> String {
    "values.yaml".to_owned()
}

fn is_values_yaml(key: &String) -> bool {
    *key == values_yaml()
}
