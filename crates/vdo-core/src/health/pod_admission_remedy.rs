// SPDX-License-Identifier: Apache-2.0
//! The remedy for a pod that the API server refuses (PodSecurity, ResourceQuota, LimitRange, policy), chosen by the server's message.

use crate::drivers;
use vdo_api::types::ObjectId;

/// What to do about a refusal of pods of this workload, or of the workload itself: a phrase with the command.
#[must_use]
pub fn admission_remedy(workload: &ObjectId, message: &str) -> String {
    let namespace = &workload.namespace;
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["violates PodSecurity", "violate PodSecurity"]) {
        return format!(
            "allow privileged pods in the namespace: kubectl label namespace {namespace} pod-security.kubernetes.io/enforce=privileged --overwrite"
        );
    }
    if says(&["exceeded quota"]) {
        return format!("raise the quota that the message names: kubectl --namespace {namespace} get resourcequotas");
    }
    if says(&[
        "limits",
        "requests",
        "per Container",
        "per Pod",
        "limit is",
        "request is",
        "limit of",
    ]) {
        return format!(
            "set container requests and limits that the namespace accepts, for example: vdoctl configure drivers --set {}.limits.memory=512Mi",
            drivers::resources(&workload.name)
        );
    }
    "change the policy that the message names, or change the settings of the driver to meet this policy".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admission_remedy_has_the_command_for_each_kind_of_refusal() {
        let cpi = ObjectId::new("apps", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager");
        let controller = ObjectId::new("apps", "Deployment", "csi", "vsphere-csi-controller");
        let node = ObjectId::new("apps", "DaemonSet", "csi", "vsphere-csi-node");
        for (workload, message, expected) in [
            (
                &node,
                "pods \"vdo-dry-run\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces, must not set limits",
                "kubectl label namespace csi pod-security.kubernetes.io/enforce=privileged --overwrite",
            ),
            (
                &cpi,
                "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1",
                "kubectl --namespace kube-system get resourcequotas",
            ),
            (
                &cpi,
                "failed quota: few: must specify limits.memory for: m",
                "--set cloudProvider.values.resources.limits.memory=512Mi",
            ),
            (
                &controller,
                "maximum cpu usage per Container is 100m, but limit is 200m",
                "--set storageProvider.values.controller.resources.driver.limits.memory=512Mi",
            ),
            (
                &node,
                "spec.containers[0].resources.requests: Invalid value: \"200m\": must be less than or equal to cpu limit of 100m",
                "--set storageProvider.values.node.resources.driver.limits.memory=512Mi",
            ),
            (
                &node,
                "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: Privileged mode is disallowed.",
                "change the policy that the message names",
            ),
        ] {
            let remedy = admission_remedy(workload, message);
            assert!(remedy.contains(expected), "{message}: {remedy}");
        }
    }
}
