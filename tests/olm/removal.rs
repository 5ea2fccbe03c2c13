// SPDX-License-Identifier: Apache-2.0
//! The operator removed: too early, and in the right order.

use crate::common::{Bed, NS, PATIENCE};
use crate::olm_bed::{GROUPS, OLM, SUBSCRIPTION, prerequisites, run};
use crate::transcript::{Transcript, VERSIONS, WORKLOADS};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use vdo_testbed::{Probe, until};

/// What a person types.
const DELETE: &str = "delete csv --selector operators.coreos.com/vdo.vmware-system-vdo --namespace vmware-system-vdo";

/// The kinds of which an installation has objects.
const KINDS: [(&str, &str); 19] = [
    ("v1", "Namespace"),
    ("v1", "ServiceAccount"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
];

/// What Kubernetes itself adds to each namespace, some time after the namespace was created.
const OF_A_NAMESPACE: [&str; 2] = ["ConfigMap/kube-root-ca.crt", "ServiceAccount/default"];

/// What there is, as `kubectl get -A` lists it, without what Kubernetes itself adds.
async fn listed(bed: &Bed) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for (api_version, kind) in KINDS {
        for object in bed.list(api_version, kind, "").await? {
            let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
            if OF_A_NAMESPACE.contains(&format!("{kind}/{}", text("/metadata/name")).as_str()) {
                continue;
            }
            all.insert(format!("{kind} {}/{}", text("/metadata/namespace"), text("/metadata/name")));
        }
    }
    Ok(all)
}

#[test]
fn olm_removal_before_the_drivers_is_refused_and_in_order_leaves_what_olm_keeps() -> Result<()> {
    run(async |world| {
        let before = listed(&world.bed).await?;
        world.install("0.1.0", &[NS]).await?;
        world.bed.apply_samples().await?;
        world.bed.until_ready().await?;

        world.bed.delete(OLM, "Subscription", NS, SUBSCRIPTION).await?;
        let refusal = world.refusal("0.1.0").await?.context("it would be deleted")?;
        let mut seen = Transcript::default();
        seen.say("The wrong order: the operator first. The Subscription is deleted already.");
        let (code, _) = seen.kubectl(&world.bed, DELETE).await?;
        ensure!(code != 0, "it was deleted");
        seen.kubectl(&world.bed, VERSIONS).await?;
        ensure!(
            refusal.contains("VDOConfig vmware-system-vdo/vdo")
                && refusal.contains("kubectl delete vdoconfig vdo --namespace vmware-system-vdo"),
            "{refusal}"
        );
        ensure!(
            world.csv("0.1.0").await?["metadata"]["deletionTimestamp"].is_null(),
            "it is being deleted"
        );

        seen.say("The right order: the drivers first.");
        seen.kubectl(&world.bed, "delete vdoconfig --all --namespace vmware-system-vdo --timeout=10m")
            .await?;
        seen.kubectl(&world.bed, WORKLOADS).await?;
        let (code, said) = seen.kubectl(&world.bed, DELETE).await?;
        ensure!(code == 0, "{said}");
        until("the operator's pod to be gone", PATIENCE, async || {
            Ok(Probe::when(world.bed.operator_pod().await?.is_null(), "it is there"))
        })
        .await?;
        world.bed.delete(GROUPS, "OperatorGroup", NS, "vdo").await?;

        // docs/openshift.md lists what OLM leaves, and how to remove it.
        for (kind, name) in [("RoleBinding", "vdo-operator"), ("Role", "vdo-operator")] {
            let left = world.bed.get("rbac.authorization.k8s.io/v1", kind, NS, name).await?;
            assert_eq!(left["metadata"]["labels"]["olm.managed"], "true", "{kind} {name}");
        }
        for object in prerequisites()?.iter().rev().chain(&definitions(&world.bed).await?) {
            let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
            let (api_version, kind) = (text("/apiVersion"), text("/kind"));
            world
                .bed
                .delete(api_version, kind, text("/metadata/namespace"), text("/metadata/name"))
                .await?;
        }
        until("everything that came with the installation to be gone", PATIENCE, async || {
            let now = listed(&world.bed).await?;
            let left: Vec<&String> = now.difference(&before).collect();
            Ok(Probe::when(left.is_empty(), format!("{left:#?}")))
        })
        .await?;
        let now = listed(&world.bed).await?;
        let lost: Vec<&String> = before.difference(&now).collect();
        ensure!(lost.is_empty(), "{lost:#?}");
        seen.say("The OperatorGroup, the remaining OLM objects, the prerequisites and the definitions are deleted. The cluster has the same objects as before the installation.");
        seen.hold("removal");
        Ok(())
    })
}

/// The definitions, which OLM keeps so that no object is lost.
async fn definitions(bed: &Bed) -> Result<Vec<Value>> {
    let all = bed.list("apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await?;
    let ours = all.into_iter().filter(|definition| definition["spec"]["group"] == "vdo.vmware.com");
    Ok(ours
        .map(|mut definition| {
            definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
            definition["kind"] = "CustomResourceDefinition".into();
            definition
        })
        .collect())
}
