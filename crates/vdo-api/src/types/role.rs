// SPDX-License-Identifier: Apache-2.0
//! The role of a driver: cloud provider, storage, network or other.

use serde::{Deserialize, Serialize};

/// What a driver does for the cluster. The operator treats drivers by their role, never by their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DriverRole {
    /// Initialises nodes and tells Kubernetes where they are.
    CloudProvider,
    /// Provides volumes.
    Storage,
    /// Provides the pod network.
    Network,
    /// Anything else.
    Other,
}
