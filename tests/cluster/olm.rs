// SPDX-License-Identifier: Apache-2.0
//! What OLM changes for the operator: the rights that it cannot bring, its OperatorCondition, and its objects, which no one else keeps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{OPERATOR, alone};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const OLM: &str = "operators.coreos.com";
const CONDITION: &str = "vdo.v0.1.0";

/// The rights in other namespaces are not there, as after an installation by OLM: the status has the command that brings them, and with that all
/// goes on by itself.
#[test]
#[ignore = "long"]
fn operator_without_rights_on_its_lease_names_the_command_and_goes_on_with_it() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.kill_operator();
        bed.delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
        bed.delete(RBAC, "RoleBinding", "kube-system", "vdo-operator").await?;
        bed.start_operator().await?;
        // It is ready: what it has to say is in the status, and OLM waits for no one.
        until("the operator to be ready", PATIENCE, async || {
            let answer = bed.fetch("/readyz").await?;
            Ok(Probe::when(answer.starts_with("HTTP/1.1 200"), answer))
        })
        .await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.apply(&bed.config(json!({}))).await?;
        let ready = bed.until_reason("Ready", "RightsMissing").await?;
        let message = ready["message"].as_str().unwrap_or_default().to_owned();
        let command = "vdoctl rights --missing -n vmware-system-vdo | kubectl apply --server-side --force-conflicts -f -";
        ensure!(
            message.contains("Lease kube-system/vdo-operator") && message.contains(command),
            "{message}"
        );
        let (_, screen, _) = bed.vdoctl(&["status"])?;
        ensure!(screen.contains("RightsMissing"), "{screen}");
        let mark = bed.cluster.audit().mark().await?;
        bed.merge(
            VDO,
            "VDOConfig",
            NS,
            "vdo",
            json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "1"}}}),
        )
        .await?;
        let (code, lacking, _) = bed.vdoctl(&["rights", "--missing", "-n", NS])?;
        ensure!(code == 0 && lacking.contains("kind: RoleBinding"), "{lacking}");
        let written = bed.operator_requests(mark).await?.writes();
        ensure!(written.is_empty(), "the same was written again:\n{written}");
        bed.cluster.apply_yaml(&lacking).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// As OLM makes it: the object, and rights on this one object for the operator's account.
async fn with_operator_condition(bed: &Bed) -> Result<()> {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    bed.apply(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("operatorconditions.{OLM}")},
        "spec": {"group": OLM, "scope": "Namespaced", "names": {"kind": "OperatorCondition", "plural": "operatorconditions"},
            "versions": [{"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}]}}))
        .await?;
    let api_version = format!("{OLM}/v2");
    until("OperatorCondition to be served", PATIENCE, async || {
        let made = bed
            .apply(&json!({"apiVersion": api_version, "kind": "OperatorCondition", "metadata": {"name": CONDITION, "namespace": NS}}))
            .await;
        Ok(match made {
            Ok(()) => Probe::Ready(()),
            Err(error) => Probe::not_yet(format!("{error:#}")),
        })
    })
    .await?;
    let metadata = json!({"name": CONDITION, "namespace": NS});
    let rules = json!([{"apiGroups": [OLM], "resources": ["operatorconditions"], "resourceNames": [CONDITION], "verbs": ["get", "update", "patch"]}]);
    bed.apply(&json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules}))
        .await?;
    bed.apply(&json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": CONDITION},
        "subjects": [{"kind": "ServiceAccount", "name": "vdo-operator", "namespace": NS}]}))
        .await
}

async fn until_condition(bed: &Bed, status: &str) -> Result<Value> {
    let api_version = format!("{OLM}/v2");
    until(&format!("OperatorCondition Upgradeable to be {status}"), PATIENCE, async || {
        let live = bed.get(&api_version, "OperatorCondition", NS, CONDITION).await?;
        let found = live["spec"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|c| c["type"] == "Upgradeable");
        Ok(match found {
            Some(found) if found["status"] == status => Probe::Ready(found.clone()),
            _ => Probe::not_yet(live["spec"].to_string()),
        })
    })
    .await
}

/// The condition is False while drivers change or a pin keeps them from the next minor of Kubernetes, and is written on change only. Without
/// rights on the object the drivers are still looked after.
#[test]
#[ignore = "long"]
fn operator_condition_of_olm_follows_the_drivers() -> Result<()> {
    alone(async || {
        let mut bed = Bed::start().await?;
        with_operator_condition(&bed).await?;
        bed.environment.push(("OPERATOR_CONDITION_NAME", CONDITION.to_owned()));
        bed.start_operator().await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.apply(&bed.config(json!({"storageProvider": {"version": "3.6.3"}, "cloudProvider": {}})))
            .await?;
        let changing = until_condition(&bed, "False").await?;
        ensure!(
            changing["message"].as_str().is_some_and(|m| m.contains("being changed")),
            "{changing}"
        );
        bed.until_ready().await?;
        until("the drivers not to change any more", PATIENCE, async || {
            let found = until_condition(&bed, "False").await?;
            Ok(Probe::when(found["reason"] == "IncompatiblePin", &found))
        })
        .await?;
        let pinned = until_condition(&bed, "False").await?;
        ensure!(
            pinned["reason"] == "IncompatiblePin" && pinned["message"].as_str().is_some_and(|m| m.contains("pinned")),
            "{pinned}"
        );
        bed.apply(&bed.config(json!({"storageProvider": {}, "cloudProvider": {}}))).await?;
        until_condition(&bed, "True").await?;
        bed.until_ready().await?;
        // Nothing new, nothing written; and without rights nothing else stops.
        bed.delete(RBAC, "RoleBinding", NS, CONDITION).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.kill_operator();
        bed.start_operator().await?;
        bed.merge(
            "v1",
            "ConfigMap",
            "kube-system",
            "vsphere-cloud-config",
            json!({"data": {"vsphere.conf": "changed"}}),
        )
        .await?;
        until("the drift to be repaired", PATIENCE, async || {
            let live = bed.get("v1", "ConfigMap", "kube-system", "vsphere-cloud-config").await?;
            Ok(Probe::when(live["data"]["vsphere.conf"] != "changed", "not yet"))
        })
        .await?;
        let asked = bed.operator_requests(mark).await?.only(|e| e.resource == "operatorconditions");
        ensure!(asked.len() <= 3, "a refusal is asked for repeatedly:\n{asked}");
        Ok(())
    })
}
