use serde::{Deserialize, Serialize};
use std::fmt;

/// What a driver does for the cluster. The operator treats drivers by their role, never by their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

impl fmt::Display for DriverRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CloudProvider => "cloud-provider",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Other => "other",
        })
    }
}
