// SPDX-License-Identifier: Apache-2.0
//! The way back: what was adopted stays as it runs, without a mark of ours, and any tool may manage it again.

use super::{Tool, kubectl, reference, running};
use crate::common::{Bed, NS, PATIENCE, condition, name};
use crate::fixture::OPERATOR;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use vdo_testbed::{Probe, until};

/// What the administrator brings stays for other tests.
fn is_of_drivers(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    !matches!(kind, "Namespace" | "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding")
}

async fn live(bed: &Bed, object: &Value) -> Result<Value> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    bed.get(
        text("/apiVersion"),
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    )
    .await
}

/// Removes VDO from drivers that were there before it, and then the drivers.
pub async fn hand_back(bed: &Bed, manifests: &[Value]) -> Result<()> {
    let of_drivers: Vec<Value> = manifests.iter().filter(|object| is_of_drivers(object)).cloned().collect();
    let before = running(bed).await?;
    bed.uninstall().await?;
    let after = running(bed).await?;
    ensure!(before == after, "workloads or pods changed:\n{before:#?}\n{after:#?}");
    let owned = bed.owned().await?;
    ensure!(owned.is_empty(), "still ours: {:?}", owned.iter().map(name).collect::<Vec<_>>());
    for object in &of_drivers {
        let found = live(bed, object).await?;
        ensure!(found != Value::Null, "{} is gone", name(object));
        let marks = ["vdo.vmware.com/adopted-from", "vdo.vmware.com/applied"];
        ensure!(
            marks.iter().all(|mark| found["metadata"]["annotations"][mark].is_null()),
            "{}: {}",
            name(object),
            found["metadata"]["annotations"]
        );
        let managers = found["metadata"]["managedFields"].as_array().into_iter().flatten();
        let applied = managers
            .clone()
            .any(|entry| entry["manager"] == "vdo" && entry["operation"] == "Apply");
        ensure!(!applied, "{} is still applied by the operator", name(object));
    }
    // The tool that comes next meets no conflict.
    kubectl(bed, &["apply", "--server-side", "-f", "-"], &of_drivers)?;
    delete(bed, manifests)
}

/// Deletes the drivers that another tool installed.
pub fn delete(bed: &Bed, manifests: &[Value]) -> Result<()> {
    let of_drivers: Vec<Value> = manifests.iter().filter(|object| is_of_drivers(object)).cloned().collect();
    kubectl(bed, &["delete", "--ignore-not-found", "-f", "-"], &of_drivers)
}

/// A ConfigMap that only has the name of one of the driver's, and a workload of others that reads it, are there afterwards.
#[test]
#[ignore = "long"]
fn adoption_of_one_object_leaves_this_object() -> Result<()> {
    OPERATOR.run(async |bed| {
        let reference = reference(bed).await?;
        let is_shared = |object: &&Value| object["kind"] == "ServiceAccount" && object["metadata"]["namespace"] == "kube-system";
        let shared: Vec<Value> = reference.manifests.iter().filter(is_shared).cloned().collect();
        ensure!(!shared.is_empty(), "the cloud provider has no account");
        kubectl(bed, &["apply", "-f", "-"], &shared)?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        bed.uninstall().await?;
        for object in &shared {
            let found = live(bed, object).await?;
            ensure!(found != Value::Null, "{} is gone", name(object));
        }
        let workload = bed
            .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await?;
        ensure!(
            workload.is_null(),
            "the cloud provider was made by VDO, and stays: {}",
            workload["metadata"]
        );
        kubectl(bed, &["delete", "-f", "-"], &shared)
    })
}

/// The drivers as another tool would have installed them in an older version that fits.
async fn older(bed: &Bed) -> Result<Vec<Value>> {
    super::reference(bed).await?;
    let older = json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.0"}});
    bed.apply(&bed.config(older)).await?;
    bed.until_ready().await?;
    let (code, rendered, err) = bed.vdoctl(&["render", "--show-secrets"])?;
    ensure!(code == 0, "{err}");
    let manifests: Vec<Value> = vdo_api::yaml::load_all(&rendered)?.into_iter().map(super::bare).collect();
    bed.uninstall().await?;
    Tool::Kubectl.install(bed, &manifests).await?;
    Ok(manifests)
}

/// The version that runs fits, and the policy wants the newest: adopting it changes no pod, and the upgrade is a revision of its own.
#[test]
#[ignore = "long"]
fn adoption_keeps_the_version_and_upgrades_in_a_second_step() -> Result<()> {
    OPERATOR.run(async |bed| {
        let manifests = older(bed).await?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.until_ready().await?;
        // The adoption is a state of its own; the upgrade follows.
        let versions = until("the adoption and the upgrade to be two revisions", PATIENCE, async || {
            let versions = versions_of_csi(bed)?;
            Ok(match versions.len() {
                0 | 1 => Probe::not_yet(format!("{versions:?}")),
                _ => Probe::Ready(versions),
            })
        })
        .await?;
        ensure!(versions.len() == 2 && versions.contains(&"3.7.0".to_owned()), "{versions:?}");
        bed.until_ready().await?;
        hand_back(bed, &manifests).await
    })
}

/// Adopted means installed: the older version stays, with its pods, until a person changes the policy; the upgrade is then a line of the plan, a
/// revision and an event of its own.
#[test]
#[ignore = "long"]
fn adoption_keeps_a_fitting_version_under_compatible_and_disabled() -> Result<()> {
    OPERATOR.run(async |bed| {
        let manifests = older(bed).await?;
        let before = running(bed).await?;
        for policy in ["Compatible", "Disabled"] {
            bed.apply(&bed.config(json!({"updatePolicy": policy}))).await?;
            bed.until_ready().await?;
            ensure!(running(bed).await? == before, "{policy}: workloads or pods changed");
            let versions = versions_of_csi(bed)?;
            ensure!(versions == ["3.7.0"], "{policy}: {versions:?}");
        }
        bed.apply(&bed.config(json!({"updatePolicy": "Latest", "approval": "Manual"})))
            .await?;
        bed.until_reason("Ready", "ApprovalRequired").await?;
        let (code, out, err) = bed.vdoctl(&["plan"])?;
        let is_upgrade = |line: &str| line.contains("CSI") && line.contains("3.7.0") && line.contains("3.8.0");
        ensure!(code == 1 && out.lines().any(is_upgrade), "{code} {out} {err}");
        ensure!(running(bed).await? == before, "it was not approved yet");
        let hash = bed.status().await?["plan"]["hash"].as_str().context("a hash")?.to_owned();
        let (code, _, err) = bed.vdoctl(&["approve", &hash])?;
        ensure!(code == 0, "{err}");
        bed.until_ready().await?;
        let versions = versions_of_csi(bed)?;
        ensure!(versions.len() == 2 && versions.contains(&"3.8.0".to_owned()), "{versions:?}");
        let (_, events, err) = bed.vdoctl(&["events"])?;
        ensure!(events.lines().any(|line| line.contains("3.8.0")), "{events} {err}");
        hand_back(bed, &manifests).await
    })
}

/// The versions of the CSI driver that were applied, of each revision.
fn versions_of_csi(bed: &Bed) -> Result<Vec<String>> {
    let (_, out, err) = bed.vdoctl(&["history", "CSI", "-o", "json"])?;
    let history: Value = serde_json::from_str(&out).with_context(|| err)?;
    let revisions = history.pointer("/drivers/0/revisions").and_then(Value::as_array);
    let versions = revisions.into_iter().flatten().filter_map(|revision| revision["version"].as_str());
    Ok(versions.map(str::to_owned).collect())
}

/// Configuration that VDO made and that a workload of others has begun to use is there after the removal, and that workload can start again.
#[test]
#[ignore = "long"]
fn uninstall_leaves_configuration_that_a_workload_of_others_uses() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.apply_samples().await?;
        bed.until_ready().await?;
        let place = "vmware-system-csi";
        let (secret, settings) = ("vsphere-config-secret", "internal-feature-states.csi.vsphere.vmware.com");
        let mut user = crate::foreign_driver::workload("Deployment", place, "shop");
        let pod = &mut user["spec"]["template"]["spec"];
        pod["serviceAccountName"] = "vsphere-csi-node".into();
        pod["volumes"] = json!([{"name": "v", "secret": {"secretName": secret}}]);
        pod["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": settings}}]);
        bed.apply(&user).await?;
        let used = [("Secret", secret), ("ConfigMap", settings), ("ServiceAccount", "vsphere-csi-node")];
        let mut before = Vec::new();
        for (kind, name) in used {
            before.push(bed.get("v1", kind, place, name).await?);
        }
        bed.uninstall().await?;
        for before in &before {
            let mut named = before.clone();
            named["apiVersion"] = "v1".into();
            let after = live(bed, &named).await?;
            ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "{} is gone", name(before));
            ensure!(after["data"] == before["data"], "{} was changed", name(before));
        }
        let gone = bed.get("v1", "ServiceAccount", place, "vsphere-csi-controller").await?;
        ensure!(gone.is_null(), "no one uses it, and it stays: {gone:#}");
        ensure!(bed.owned().await?.is_empty(), "still ours");
        user["metadata"] = json!({"name": "shop", "namespace": place});
        kubectl(bed, &["delete", "-f", "-"], &[user])?;
        for (kind, name) in used {
            bed.delete("v1", kind, place, name).await?;
        }
        Ok(())
    })
}

/// The checks before an installation.
pub fn preflight(bed: &Bed) -> Result<(i32, Value)> {
    let file = bed.cluster.dir().join("preflight-password");
    std::fs::write(&file, bed.vcenter.password())?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    let address = bed.vcenter.address();
    let file = file.display().to_string();
    let args = [
        "doctor",
        "--pre",
        "--vcenter",
        &address,
        "--user",
        bed.vcenter.user(),
        "--password-file",
        &file,
        "--insecure",
        "-o",
        "json",
    ];
    let (code, out, err) = bed.vdoctl(&args)?;
    Ok((code, serde_json::from_str(&out).with_context(|| err)?))
}

/// The configuration that others keep for a workload of the same driver in another place is not touched.
#[test]
#[ignore = "long"]
fn adoption_of_nothing_where_a_cloud_provider_of_another_name_runs() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        let release = json!({"meta.helm.sh/release-name": "vsphere-cpi", "meta.helm.sh/release-namespace": "kube-system"});
        let metadata = |name: &str| {
            json!({"name": name, "namespace": "kube-system", "labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": release})
        };
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("vsphere-cloud-config"), "data": {"vsphere.yaml": "global: {}"}});
        let labels = json!({"app": "vsphere-cpi"});
        let container = json!({"name": "c", "image": "mirror.example.com/any:1", "args": ["--cloud-provider=vsphere"]});
        let workload = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata("vsphere-cpi"), "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
        for object in [&config, &workload] {
            bed.apply(object).await?;
        }
        let before = live(bed, &config).await?;
        bed.apply(&bed.config(json!({}))).await?;
        let found = bed.until_reason("NoForeignDriver", "NotOurs").await?;
        let message = found["message"].as_str().unwrap_or_default();
        for word in [
            "DaemonSet kube-system/vsphere-cpi",
            "argument --cloud-provider=vsphere",
            "Helm release kube-system/vsphere-cpi",
            "helm uninstall vsphere-cpi --namespace kube-system",
        ] {
            ensure!(message.contains(word), "{word:?} is not in {message}");
        }
        let after = live(bed, &config).await?;
        ensure!(before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"], "{after:#}");
        ensure!(bed.owned().await?.is_empty(), "something was installed beside it");
        let (code, said) = preflight(bed)?;
        let checks = said["subjects"].as_array().into_iter().flatten().flat_map(|subject| subject["checks"].as_array().into_iter().flatten());
        let mut foreign = checks.filter(|check| check["check"] == "NoForeignDriver");
        ensure!(
            code == 1 && foreign.any(|check| check["status"] == "False" && check["message"].to_string().contains("kube-system/vsphere-cpi")),
            "{code}: {said:#}"
        );
        // The CSI driver alone works beside a cloud provider of another manager.
        let alone = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo", "namespace": NS},
            "spec": {"storageProvider": {}}});
        bed.apply(&alone).await?;
        until("the CSI driver to be installed alone", PATIENCE, async || {
            let controller = bed.get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller").await?;
            let found = condition(&bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?, "NoForeignDriver");
            Ok(Probe::when(controller != Value::Null && found["status"] == "True", found))
        })
        .await?;
        bed.uninstall().await?;
        for object in [&config, &workload] {
            ensure!(live(bed, object).await? != Value::Null, "{} is gone", name(object));
        }
        kubectl(bed, &["delete", "-f", "-"], &[config, workload])
    })
}
