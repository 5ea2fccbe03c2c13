/// The part that a driver plays, which decides the order among drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Initialises nodes; before everything that runs on them.
    CloudProvider,
    /// Provides volumes.
    Storage,
    /// Anything else; last.
    Other,
}

impl Role {
    /// The role that a chart or the matrix names.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "cloud-provider" => Self::CloudProvider,
            "storage" => Self::Storage,
            _ => Self::Other,
        }
    }
}

/// The first wave with pods.
const WORKLOADS: u8 = 3;

/// When an object of this kind is applied: objects of a lower wave come first, and go last.
#[must_use]
pub fn wave(kind: &str, role: Role) -> u8 {
    match kind {
        // Other objects may be instances of it.
        "CustomResourceDefinition" => 0,
        // Other objects live in it.
        "Namespace" => 1,
        // Pods: they need their rights and their configuration, and a storage driver needs initialised nodes.
        "Deployment" | "DaemonSet" | "StatefulSet" | "Job" | "CronJob" | "Pod" => match role {
            Role::CloudProvider => WORKLOADS,
            Role::Storage => WORKLOADS + 1,
            Role::Other => WORKLOADS + 2,
        },
        // Rights and configuration.
        _ => 2,
    }
}
