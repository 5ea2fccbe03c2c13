// SPDX-License-Identifier: Apache-2.0
//! Computes the wave of an object in a plan by its kind and the role of its driver; `dependencies.rs` computes what a step waits for.

use vdo_api::types::DriverRole;

/// The first wave with pods.
pub(super) const WORKLOADS: u8 = 4;

/// The place of an object of this kind in a plan: what it may need is of a lower wave, and goes after it. What really waits for what
/// is said by [`super::dependencies`].
#[must_use]
pub fn wave(kind: &str, role: DriverRole) -> u8 {
    match kind {
        // Other objects may be instances of it.
        "CustomResourceDefinition" => 0,
        // Other objects live in it. Like a binding it is in manifests, and in no plan.
        "Namespace" => 1,
        "ClusterRoleBinding" | "RoleBinding" => 3,
        // Pods: they need their rights and their configuration, and a storage driver needs initialised nodes.
        "Deployment" | "DaemonSet" | "StatefulSet" | "Job" | "CronJob" | "Pod" => match role {
            DriverRole::CloudProvider => WORKLOADS,
            DriverRole::Storage => WORKLOADS + 1,
            DriverRole::Network | DriverRole::Other => WORKLOADS + 2,
        },
        // The API server asks the pods of a webhook or an aggregated API from then on, so they come first and go last.
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" | "APIService" => WORKLOADS + 3,
        // Rights and configuration.
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wave_each_kind_follows_what_it_may_need() {
        use DriverRole::{CloudProvider, Network, Other, Storage};
        let roles = [CloudProvider, Storage, Network, Other];
        for (kinds, expected) in [
            (&["CustomResourceDefinition"][..], [0; 4]),
            (&["Namespace"], [1; 4]),
            (
                &["ConfigMap", "Secret", "ServiceAccount", "ClusterRole", "CSIDriver", "Service"],
                [2; 4],
            ),
            (&["ClusterRoleBinding", "RoleBinding"], [3; 4]),
            (&["Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob", "Pod"], [4, 5, 6, 6]),
            (
                &["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService"],
                [7; 4],
            ),
        ] {
            for kind in kinds {
                assert_eq!(roles.map(|role| wave(kind, role)), expected, "{kind}");
            }
        }
    }
}
