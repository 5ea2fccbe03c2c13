// SPDX-License-Identifier: Apache-2.0
//! The table of APIs that Kubernetes no longer serves, each with the first minor version without the API.

/// APIs that Kubernetes has stopped to serve: group and version, the kinds (all of them where none is named), and the first minor of
/// Kubernetes 1 without them. From <https://kubernetes.io/docs/reference/using-api/deprecation-guide/>.
const REMOVED: [(&str, &[&str], u64); 22] = [
    (
        "extensions/v1beta1",
        &["Deployment", "DaemonSet", "ReplicaSet", "NetworkPolicy", "PodSecurityPolicy"],
        16,
    ),
    ("apps/v1beta1", &[], 16),
    ("apps/v1beta2", &[], 16),
    ("extensions/v1beta1", &[], 22),
    (
        "admissionregistration.k8s.io/v1beta1",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
        22,
    ),
    ("apiextensions.k8s.io/v1beta1", &[], 22),
    ("apiregistration.k8s.io/v1beta1", &[], 22),
    ("certificates.k8s.io/v1beta1", &["CertificateSigningRequest"], 22),
    ("coordination.k8s.io/v1beta1", &["Lease"], 22),
    ("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"], 22),
    ("rbac.authorization.k8s.io/v1beta1", &[], 22),
    ("scheduling.k8s.io/v1beta1", &[], 22),
    (
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
        22,
    ),
    ("batch/v1beta1", &[], 25),
    ("autoscaling/v2beta1", &[], 25),
    ("policy/v1beta1", &[], 25),
    ("node.k8s.io/v1beta1", &[], 25),
    ("autoscaling/v2beta2", &[], 26),
    ("flowcontrol.apiserver.k8s.io/v1beta1", &[], 26),
    ("storage.k8s.io/v1beta1", &["CSIStorageCapacity"], 27),
    ("flowcontrol.apiserver.k8s.io/v1beta2", &[], 29),
    ("flowcontrol.apiserver.k8s.io/v1beta3", &[], 32),
];

/// The first minor of Kubernetes 1 that does not serve this kind in this version any more.
pub(super) fn removed_in(api_version: &str, kind: &str) -> Option<u64> {
    let about = REMOVED
        .iter()
        .filter(|(api, kinds, _)| *api == api_version && (kinds.is_empty() || kinds.contains(&kind)));
    about.map(|(_, _, minor)| *minor).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publish_removed_api_is_known_by_group_version_and_kind() {
        for (api, kind, minor) in [
            ("policy/v1beta1", "PodDisruptionBudget", Some(25)),
            ("policy/v1", "PodDisruptionBudget", None),
            ("extensions/v1beta1", "Deployment", Some(16)),
            ("extensions/v1beta1", "Ingress", Some(22)),
            ("storage.k8s.io/v1beta1", "CSIDriver", Some(22)),
            ("storage.k8s.io/v1beta1", "CSIStorageCapacity", Some(27)),
            ("storage.k8s.io/v1beta1", "VolumeAttributesClass", None),
            ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", Some(32)),
            ("v1", "Pod", None),
        ] {
            assert_eq!(removed_in(api, kind), minor, "{api} {kind}");
        }
    }
}
