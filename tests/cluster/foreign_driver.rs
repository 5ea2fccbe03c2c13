// SPDX-License-Identifier: Apache-2.0
//! A foreign driver or operator in the cluster: seen before the first write, named, and left as it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{INSTALLED, OPERATOR, written};
use crate::page::open;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Mark, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// Waits until both conditions name what is in the way.
async fn until_named(bed: &Bed, words: &[&str]) -> Result<()> {
    until(&format!("the conditions to say {words:?}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let says = |kind: &str| {
            let found = condition(&config, kind);
            let message = found["message"].to_string();
            found["status"] == "False" && found["reason"] == "NotOurs" && words.iter().all(|word| message.contains(word))
        };
        Ok(Probe::when(
            says("NoForeignDriver") && says("Ready"),
            &config["status"]["conditions"],
        ))
    })
    .await
}

/// Waits until nothing is in the way any more.
async fn until_clear(bed: &Bed) -> Result<()> {
    until("condition NoForeignDriver to be true", PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let found = condition(&config, "NoForeignDriver");
        Ok(Probe::when(found["status"] == "True", found))
    })
    .await
}

async fn ensure_nothing_was_written(bed: &Bed, since: Mark) -> Result<()> {
    let written = written(bed, since).await?;
    ensure!(written.is_empty(), "in the face of a foreign driver it wrote:\n{written}");
    Ok(())
}

/// Starts the operator and the installation in a cluster with a foreign object, which is named before anything is written.
async fn until_installation_is_refused(bed: &mut Bed, words: &[&str]) -> Result<()> {
    bed.kill_operator();
    bed.start_operator().await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply_samples().await?;
    until_named(bed, words).await?;
    ensure_nothing_was_written(bed, mark).await
}

/// Keeps the operator from installing, so that a test can take away what is in the way without an installation.
async fn pause(bed: &Bed) -> Result<()> {
    bed.apply(&bed.config(json!({"managementState": "Paused"}))).await
}

pub fn workload(kind: &str, namespace: &str, name: &str) -> Value {
    let container = json!({"name": "c", "image": "example.com/c:1", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}});
    let pod = json!({"metadata": {"labels": {"app": name}}, "spec": {
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}}, "containers": [container]}});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": pod}})
}

/// A workload that runs the CSI driver.
pub fn csi_workload(kind: &str, namespace: &str, name: &str) -> Value {
    let mut value = workload(kind, namespace, name);
    value["spec"]["template"]["spec"]["containers"][0]["image"] = "mirror.example.com/csi-vsphere/driver:v3.6.3".into();
    value
}

/// A cloud provider that the kubelet of a node runs from a file, as it is seen in the cluster.
pub async fn static_pod(bed: &Bed) -> Result<Value> {
    let node = bed.list("v1", "Node", "").await?[0]["metadata"]["name"].clone();
    let mut pod = workload("DaemonSet", "kube-system", "ccm")["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"] = json!({"name": "vsphere-ccm-cp", "namespace": "kube-system",
        "annotations": {"kubernetes.io/config.mirror": "hash", "kubernetes.io/config.source": "file"}});
    pod["spec"]["nodeName"] = node;
    pod["spec"]["containers"][0]["args"] = json!(["--cloud-provider=vsphere"]);
    Ok(pod)
}

async fn scale_to_zero(bed: &Bed, namespace: &str, name: &str) -> Result<()> {
    let zero = json!({"spec": {"replicas": 0}});
    bed.merge("apps/v1", "Deployment", namespace, name, zero).await
}

#[test]
#[ignore = "long"]
fn foreign_csi_driver_of_openshift_is_named_before_the_first_write() -> Result<()> {
    OPERATOR.run(async |bed| {
        let csi_driver = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": "csi.vsphere.vmware.com", "annotations": {"csi.openshift.io/managed": "true"}}, "spec": {"attachRequired": true}});
        bed.apply(&csi_driver).await?;
        until_installation_is_refused(bed, &["CSIDriver csi.vsphere.vmware.com", "OpenShift's CSI operator"]).await?;
        pause(bed).await?;
        bed.delete("storage.k8s.io/v1", "CSIDriver", "", "csi.vsphere.vmware.com").await?;
        until_clear(bed).await?;
        bed.uninstall().await
    })
}

#[test]
fn foreign_original_operator_is_named_before_the_first_write() -> Result<()> {
    OPERATOR.run(async |bed| {
        let name = "vdo-controller-manager";
        bed.apply(&workload("Deployment", NS, name)).await?;
        until_installation_is_refused(bed, &["vmware-system-vdo/vdo-controller-manager", "original VDO operator"]).await?;
        pause(bed).await?;
        open(bed, "taking-over.md")?.run("kubectl --namespace vmware-system-vdo scale")?;
        until_clear(bed).await?;
        bed.uninstall().await
    })
}

#[test]
fn foreign_driver_in_another_namespace_blocks_until_it_has_no_replicas() -> Result<()> {
    OPERATOR.run(async |bed| {
        let (namespace, name) = ("kube-system", "vsphere-csi-controller");
        bed.apply(&csi_workload("Deployment", namespace, name)).await?;
        until_installation_is_refused(bed, &["kube-system/vsphere-csi-controller", "that VDO does not use"]).await?;
        scale_to_zero(bed, namespace, name).await?;
        let config = bed.until_ready().await?;
        let clear = condition(&config, "NoForeignDriver");
        assert_eq!(clear["status"], "True", "{clear}");
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn foreign_static_pod_is_named_before_the_first_write() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.apply(&static_pod(bed).await?).await?;
        until_installation_is_refused(bed, &["Pod kube-system/vsphere-ccm-cp", "argument --cloud-provider=vsphere"]).await?;
        bed.delete("v1", "Pod", "kube-system", "vsphere-ccm-cp").await?;
        // No watch tells of the pod: what is in the way is looked at again within a minute.
        until_clear(bed).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A tenant may give a workload any name, and label it as anyone's.
#[test]
#[ignore = "long"]
fn foreign_name_alone_is_mentioned_and_blocks_nothing() -> Result<()> {
    OPERATOR.run(async |bed| {
        let names = ["vsphere-csi-controller", "vdo-controller-manager"];
        for name in names {
            let mut forged = csi_workload("Deployment", "default", name);
            forged["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
            forged["spec"]["template"]["spec"]["serviceAccountName"] = "driver".into();
            bed.apply(&forged).await?;
        }
        bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "driver", "namespace": "default"}}))
            .await?;
        bed.kill_operator();
        bed.start_operator().await?;
        bed.apply_samples().await?;
        let config = bed.until_ready().await?;
        let found = condition(&config, "NoForeignDriver");
        let message = found["message"].to_string();
        ensure!(
            found["status"] == "True" && message.contains("Deployment default/") && message.contains("only looks like a driver"),
            "{found}"
        );

        // What only an administrator can give makes it one.
        let rule = json!({"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["*"]});
        let rbac = "rbac.authorization.k8s.io/v1";
        bed.apply(&json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "other-driver"}, "rules": [rule]}))
            .await?;
        bed.apply(
            &json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "other-driver"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "other-driver"},
            "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": "default"}]}),
        )
        .await?;
        bed.merge(
            VDO,
            "VDOConfig",
            NS,
            "vdo",
            json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}}),
        )
        .await?;
        let found = bed.until_reason("NoForeignDriver", "NotOurs").await?;
        ensure!(found["message"].to_string().contains("default/vsphere-csi-controller"), "{found}");
        for (kind, name) in [("ClusterRoleBinding", "other-driver"), ("ClusterRole", "other-driver")] {
            bed.delete(rbac, kind, "", name).await?;
        }
        for name in names {
            bed.delete("apps/v1", "Deployment", "default", name).await?;
        }
        until_clear(bed).await?;
        bed.uninstall().await
    })
}

/// What is installed goes on, and is kept in sync.
#[test]
fn foreign_driver_beside_installed_one_is_reported_and_changes_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&csi_workload("Deployment", "kube-system", "vsphere-csi-controller"))
            .await?;
        let found = bed.until_reason("NoForeignDriver", "NotOurs").await?;
        assert_eq!(found["status"], "False");
        bed.delete("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
        until("a deleted object to be back", PATIENCE, async || {
            let service = bed.get("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
            Ok(Probe::when(service != Value::Null, "not there"))
        })
        .await?;
        bed.delete("apps/v1", "Deployment", "kube-system", "vsphere-csi-controller").await?;
        until_clear(bed).await
    })
}

/// The operator's own pod is admitted there (a test of the installation runs it); one that asks for more is not.
#[test]
fn privileged_pod_in_namespace_of_operator_is_refused() -> Result<()> {
    INSTALLED.run(async |bed| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "privileged", "namespace": NS},
            "spec": {"containers": [{"name": "c", "image": "example.com/c:1", "securityContext": {"privileged": true}}]}});
        let refused = bed.apply(&pod).await.expect_err("a privileged pod was admitted");
        ensure!(format!("{refused:#}").contains("PodSecurity"), "{refused:#}");
        Ok(())
    })
}
