//! Somebody else's driver or operator in the cluster: seen before the first write, named, and never fought.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Result, ensure};
use bed::{Bed, NS, PATIENCE, condition};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

#[tokio::test(flavor = "multi_thread")]
async fn foreign_drivers_are_seen_before_the_first_write() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    the_namespace_of_the_operator_is_restricted(&bed).await?;
    let csi_driver = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "csi.vsphere.vmware.com", "annotations": {"csi.openshift.io/managed": "true"}}, "spec": {"attachRequired": true}});
    bed.apply(&csi_driver).await?;
    bed.start_operator().await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply_samples().await?;
    told(&bed, &["CSIDriver csi.vsphere.vmware.com", "OpenShift's CSI operator"]).await?;

    // One after the other is taken away, and the next one is named.
    bed.apply(&workload("Deployment", "vmware-system-vdo", "vdo-controller-manager"))
        .await?;
    bed.delete("storage.k8s.io/v1", "CSIDriver", "", "csi.vsphere.vmware.com").await?;
    told(&bed, &["vmware-system-vdo/vdo-controller-manager", "original VDO operator"]).await?;
    bed.apply(&workload("Deployment", "kube-system", "vsphere-csi-controller")).await?;
    let zero = json!({"spec": {"replicas": 0}});
    bed.merge("apps/v1", "Deployment", NS, "vdo-controller-manager", zero.clone())
        .await?;
    told(&bed, &["kube-system/vsphere-csi-controller", "in another place"]).await?;
    let written = bed
        .operator_requests(mark)
        .await?
        .writes()
        .only(|e| e.subresource != "status" && e.resource != "events");
    ensure!(written.is_empty(), "in the face of somebody else's driver it wrote:\n{written}");

    bed.merge("apps/v1", "Deployment", "kube-system", "vsphere-csi-controller", zero)
        .await?;
    let config = bed.until_ready().await?;
    let clear = condition(&config, "NoForeignDriver");
    assert_eq!(clear["status"], "True", "{clear}");
    one_that_comes_later_changes_nothing_that_runs(&bed).await
}

/// Waits until both conditions name what is in the way.
async fn told(bed: &Bed, words: &[&str]) -> Result<()> {
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

fn workload(kind: &str, namespace: &str, name: &str) -> Value {
    let container = json!({"name": "c", "image": "example.com/c:1", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}});
    let pod = json!({"metadata": {"labels": {"app": name}}, "spec": {
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}}, "containers": [container]}});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": pod}})
}

/// What runs goes on, and is kept as wanted.
async fn one_that_comes_later_changes_nothing_that_runs(bed: &Bed) -> Result<()> {
    bed.apply(&workload("Deployment", "default", "vsphere-csi-controller")).await?;
    let found = bed.until_reason("NoForeignDriver", "NotOurs").await?;
    assert_eq!(found["status"], "False");
    bed.delete("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
    until("a deleted object to be back", PATIENCE, async || {
        let service = bed.get("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
        Ok(Probe::when(service != Value::Null, "not there"))
    })
    .await?;
    bed.delete("apps/v1", "Deployment", "default", "vsphere-csi-controller").await?;
    until("the condition to be true again", PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let found = condition(&config, "NoForeignDriver");
        Ok(Probe::when(found["status"] == "True", found))
    })
    .await
}

/// The operator's own pod is admitted there (the test of the installation runs it); one that asks for more is not.
async fn the_namespace_of_the_operator_is_restricted(bed: &Bed) -> Result<()> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "privileged", "namespace": NS},
        "spec": {"containers": [{"name": "c", "image": "example.com/c:1", "securityContext": {"privileged": true}}]}});
    let refused = bed.apply(&pod).await.expect_err("a privileged pod was admitted");
    ensure!(format!("{refused:#}").contains("PodSecurity"), "{refused:#}");
    Ok(())
}
