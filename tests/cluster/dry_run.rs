// SPDX-License-Identifier: Apache-2.0
//! The dry run of the whole plan before its first write: whatever the API server refuses is a condition, and nothing is half-done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod life;
mod pods;

use crate::common::{Bed, NODES, NS, OPERATOR as ACCOUNT, PATIENCE, condition};
use crate::fixture::{INSTALLED, OPERATOR, policy, without_policy, written};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vdo_testbed::{Mark, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI_NS: &str = "vmware-system-csi";

/// Applies the Secret and the connection, and waits until the vCenter has answered.
pub async fn connect(bed: &Bed) -> Result<()> {
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
    Ok(())
}

/// Deletes a VDOConfig of which nothing was written, and ends the operator, which remembers the refusal.
async fn discard(bed: &mut Bed) -> Result<()> {
    bed.kill_operator();
    bed.delete(VDO, "VDOConfig", NS, "vdo").await
}

/// Waits for a reason whose message holds these words, and holds that nothing was written since the mark.
async fn refused(bed: &Bed, mark: Mark, reason: &str, words: &[&str]) -> Result<()> {
    let found = until(
        &format!("VDOConfig vdo not to be ready for {reason} with the words {words:?}"),
        PATIENCE,
        async || {
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            let ready = condition(&config, "Ready");
            let message = ready["message"].as_str().unwrap_or_default();
            let found = ready["reason"] == reason && words.iter().all(|word| message.contains(word));
            Ok(if found { Probe::Ready(ready) } else { Probe::not_yet(ready) })
        },
    )
    .await?;
    println!("{reason:18} {}", found["message"].as_str().unwrap_or_default());
    let written = written(bed, mark).await?;
    ensure!(written.is_empty(), "{reason}: the operator wrote:\n{written}");
    Ok(())
}

/// Not even the inventory is written.
async fn nothing_is_there(bed: &Bed) -> Result<()> {
    ensure!(bed.owned().await?.is_empty(), "something was installed");
    ensure!(bed.state().await? == Value::Null, "an inventory was written");
    Ok(())
}

/// A DaemonSet, perhaps with the label of a driver.
fn agent(labels: Value) -> Value {
    let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "probe", "namespace": NS, "labels": labels},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}})
}

#[test]
#[ignore = "long"]
fn dry_run_policy_denies_object_writes_nothing() -> Result<()> {
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        policy(bed, &agent(json!({})), "agents are not welcome here").await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({}))).await?;
        let words = [
            "DaemonSet kube-system/vsphere-cloud-controller-manager",
            "agents are not welcome here",
        ];
        refused(bed, mark, "AdmissionDenied", &words).await?;
        nothing_is_there(bed).await?;
        let plan = bed.status().await?["plan"].clone();
        ensure!(plan["hash"].as_str().is_some_and(|hash| hash.len() == 16), "{plan}");
        let (code, text, _) = bed.vdoctl(&["plan"])?;
        println!("{text}");
        assert_eq!(code, 1);
        for word in [
            "WAVE 2",
            "+ Deployment vmware-system-csi/vsphere-csi-controller",
            "! refused:",
            "agents are not welcome here",
        ] {
            assert!(text.contains(word), "{word} is not in:\n{text}");
        }
        discard(bed).await
    })
}

/// Each further attempt writes the status once.
#[test]
#[ignore = "long"]
fn dry_run_missing_right_writes_nothing() -> Result<()> {
    OPERATOR.run(async |bed| {
        // What the server accepted for another test is remembered by the process.
        bed.kill_operator();
        bed.start_operator().await?;
        connect(bed).await?;
        let (rbac, kind) = ("rbac.authorization.k8s.io/v1", "Role");
        let role = bed.get(rbac, kind, CSI_NS, "vdo-operator").await?;
        let mut rules = role["rules"].as_array().context("rules")?.clone();
        for rule in &mut rules {
            if rule["resources"].to_string().contains("deployments") && rule["verbs"].to_string().contains("create") {
                rule["verbs"] = json!(["delete", "patch"]);
            }
        }
        bed.merge(rbac, kind, CSI_NS, "vdo-operator", json!({"rules": rules})).await?;
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {"name": ""}, "spec": {
            "user": ACCOUNT,
            "resourceAttributes": {"verb": "create", "group": "apps", "resource": "deployments", "namespace": CSI_NS}}});
        let (reviews, review) = (
            bed.api("authorization.k8s.io/v1", "SubjectAccessReview", ""),
            serde_json::from_value(review)?,
        );
        until("the right to be taken away", PATIENCE, async || {
            let answer = reviews.create(&kube::api::PostParams::default(), &review).await?;
            Ok(Probe::when(answer.data["status"]["allowed"] == false, &answer.data["status"]))
        })
        .await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({"storageProvider": {}}))).await?;
        let words = [
            "may not create Deployment vmware-system-csi/vsphere-csi-controller",
            "verbs: [create]",
        ];
        refused(bed, mark, "Forbidden", &words).await?;
        nothing_is_there(bed).await?;
        let mut promised = BTreeSet::new();
        until("three attempts", PATIENCE, async || {
            promised.insert(bed.status().await?["nextAttempt"].to_string());
            Ok(Probe::when(promised.len() > 3, format!("{promised:?}")))
        })
        .await?;
        let statuses = bed
            .operator_requests(mark)
            .await?
            .only(|e| e.resource == "vdoconfigs" && e.subresource == "status");
        ensure!(statuses.len() <= 10, "the status was written {} times:\n{statuses}", statuses.len());
        discard(bed).await?;
        bed.merge(rbac, kind, CSI_NS, "vdo-operator", json!({"rules": role["rules"]})).await
    })
}

/// What is refused keeps the whole of its driver from being installed, and nothing of the other one.
#[test]
#[ignore = "long"]
fn dry_run_refused_driver_waits_while_other_is_installed() -> Result<()> {
    const REFUSED: &str = "csi.vsphere.vmware.com";
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        let labels = json!({"vdo.vmware.com/driver": "vsphere-csi"});
        let driver =
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "probe", "labels": labels}, "spec": {}});
        policy(bed, &driver, "no storage driver here").await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_reason("Ready", "AdmissionDenied").await?;
        bed.until_reason("CloudProviderReady", "Healthy").await?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        for kind in ["Ready", "StorageReady"] {
            let found = condition(&config, kind);
            let message = found["message"].as_str().unwrap_or_default();
            ensure!(found["status"] == "False" && found["reason"] == "AdmissionDenied", "{found}");
            ensure!(message.contains(REFUSED) && message.contains("no storage driver here"), "{found}");
        }
        nothing_of_the_storage_driver(bed).await?;
        initialised(bed).await?;
        // Whatever wakes the operator is no reason to ask again: what is refused has its own pauses.
        let attempts = async || anyhow::Ok(bed.operator_requests(mark).await?.only(|e| e.tries() && e.name == REFUSED).len());
        let zone = |zone: Value| json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
        let (first, before) = (attempts().await?, bed.reconciles().await?);
        for round in 0..15 {
            let seen = bed.reconciles().await?;
            bed.merge("v1", "Node", "", "cp-1", zone(format!("zone-{round}").into())).await?;
            until("the operator to look at a node", PATIENCE, async || {
                let now = bed.reconciles().await?;
                Ok(Probe::when(now > seen, now))
            })
            .await?;
        }
        let (again, after) = (attempts().await?, bed.reconciles().await?);
        println!(
            "in {} reconciles what is refused was tried {} times more",
            after - before,
            again - first
        );
        ensure!(again - first <= 4, "what is refused was tried {first} and then {again} times");
        until("another attempt by itself", PATIENCE, async || {
            let now = attempts().await?;
            Ok(Probe::when(now > again, now))
        })
        .await?;
        nothing_of_the_storage_driver(bed).await?;
        // The annotation asks for an attempt at once.
        without_policy(bed).await?;
        let now = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", now).await?;
        bed.until_ready().await?;
        bed.merge("v1", "Node", "", "cp-1", zone(Value::Null)).await
    })
}

/// When both drivers are changed, nothing of the refused one is written, and the other one is changed.
#[test]
#[ignore = "long"]
fn dry_run_change_refused_for_one_driver_reaches_the_other() -> Result<()> {
    INSTALLED.run(async |bed| {
        let labels = json!({"vdo.vmware.com/driver": "vsphere-cpi"});
        policy(bed, &agent(labels), "no agents of the cloud provider").await?;
        let live = async || {
            bed.get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
                .await
        };
        let before = live().await?["metadata"]["generation"].clone();
        let mark = bed.cluster.audit().mark().await?;
        let both = json!({"cloudProvider": {"values": {"logLevel": 5}}, "storageProvider": {"features": {"trigger-csi-fullsync": true}}});
        bed.apply(&bed.config(both)).await?;
        let map = "internal-feature-states.csi.vsphere.vmware.com";
        until("the setting of the storage driver", PATIENCE, async || {
            let data = bed.get("v1", "ConfigMap", CSI_NS, map).await?["data"].clone();
            Ok(Probe::when(data["trigger-csi-fullsync"] == "true", &data))
        })
        .await?;
        let ready = bed.until_reason("Ready", "AdmissionDenied").await?;
        ensure!(ready["message"].to_string().contains("no agents of the cloud provider"), "{ready}");
        bed.until_reason("CloudProviderReady", "Healthy").await?;
        let foreign = |e: &vdo_testbed::Entry| e.subresource.is_empty() && e.resource != "events" && e.resource != "vdoconfigs";
        let written = bed.operator_requests(mark).await?.writes().only(foreign);
        println!("while the cloud provider was refused:\n{written}");
        let of_the_cloud_provider =
            |e: &vdo_testbed::Entry| e.namespace == "kube-system" && e.resource != "leases" || e.name.contains("cloud");
        ensure!(
            written.only(of_the_cloud_provider).is_empty(),
            "something of the cloud provider was written"
        );
        ensure!(live().await?["metadata"]["generation"] == before);
        without_policy(bed).await?;
        bed.until_ready().await?;
        ensure!(
            live().await?["metadata"]["generation"] != before,
            "the setting of the cloud provider was lost"
        );
        Ok(())
    })
}

/// Waits until the cloud provider has initialised all nodes.
async fn initialised(bed: &Bed) -> Result<()> {
    for (name, _) in NODES {
        until(&format!("node {name} to be initialised"), PATIENCE, async || {
            let taints = bed.get("v1", "Node", "", name).await?["spec"]["taints"].to_string();
            Ok(Probe::when(!taints.contains("uninitialized"), taints))
        })
        .await?;
    }
    Ok(())
}

/// Not even in the inventory.
async fn nothing_of_the_storage_driver(bed: &Bed) -> Result<()> {
    let of_the_driver = |object: &&Value| object["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-csi";
    let owned = bed.owned().await?;
    let started: Vec<String> = owned.iter().filter(of_the_driver).map(crate::common::name).collect();
    ensure!(
        started.is_empty() && owned.len() > 3,
        "of the storage driver there is {started:?}, of {}",
        owned.len()
    );
    let inventory = bed.state().await?["data"]["objects"].to_string();
    ensure!(
        inventory.contains("vsphere-cpi") && !inventory.contains("vsphere-csi"),
        "{inventory}"
    );
    Ok(())
}

/// A namespace that admits no such pods does not refuse the workload; its pods would just never come. Without the label the installation
/// goes on by itself.
#[test]
#[ignore = "long"]
fn dry_run_pod_security_violation_is_refused_until_label_goes() -> Result<()> {
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        let level = |level: Value| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
        bed.merge("v1", "Namespace", "", "kube-system", level("restricted".into())).await?;
        // The API server judges by a watch of its own.
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {"hostNetwork": true,
            "containers": [{"name": "c", "image": "c"}]}});
        let (pods, pod) = (bed.api("v1", "Pod", "kube-system"), serde_json::from_value(pod)?);
        let params = kube::api::PostParams {
            dry_run: true,
            ..Default::default()
        };
        until("the level to count", PATIENCE, async || {
            let answer = pods.create(&params, &pod).await;
            Ok(Probe::when(
                answer.is_err_and(|error| error.to_string().contains("PodSecurity")),
                "the pod is admitted",
            ))
        })
        .await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({}))).await?;
        let words = [
            "DaemonSet kube-system/vsphere-cloud-controller-manager",
            "violates PodSecurity",
            "kubectl label namespace kube-system pod-security.kubernetes.io/enforce=privileged --overwrite",
            "restricted",
        ];
        refused(bed, mark, "AdmissionDenied", &words).await?;
        nothing_is_there(bed).await?;
        bed.merge("v1", "Namespace", "", "kube-system", level(Value::Null)).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// The parameters of a StorageClass: nothing of the plan is carried out, and the StorageClass stays.
#[test]
#[ignore = "long"]
fn dry_run_immutable_field_is_refused_and_drift_still_repaired() -> Result<()> {
    INSTALLED.run(async |bed| {
        let class = |policy: &str, windows: bool| {
            let classes = json!([{"name": "fast", "storagePolicy": policy}]);
            json!({"cloudProvider": {}, "storageProvider": {"windows": windows, "storageClasses": classes}})
        };
        bed.apply(&bed.config(class("VM Encryption Policy", true))).await?;
        bed.until_ready().await?;
        let before = bed.get("storage.k8s.io/v1", "StorageClass", "", "fast").await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(class("vSAN Default Storage Policy", false))).await?;
        refused(
            bed,
            mark,
            "ImmutableField",
            &["StorageClass fast", "Give the StorageClass another name"],
        )
        .await?;
        assert_eq!(
            bed.get("storage.k8s.io/v1", "StorageClass", "", "fast").await?["metadata"]["uid"],
            before["metadata"]["uid"]
        );
        // What was reached before is kept meanwhile. Other tests delete other objects: three deletions of one are a conflict.
        let service = "vsphere-csi-controller";
        bed.delete("v1", "Service", CSI_NS, service).await?;
        until("a deleted object to be back", PATIENCE, async || {
            let found = bed.get("v1", "Service", CSI_NS, service).await?;
            Ok(Probe::when(found != Value::Null, "not there"))
        })
        .await?;
        bed.apply(&bed.config(class("VM Encryption Policy", true))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}
