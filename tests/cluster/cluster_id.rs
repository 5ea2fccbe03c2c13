// SPDX-License-Identifier: Apache-2.0
//! Volumes of another cluster under the cluster id: nothing of the CSI driver is written until the id is another one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition, name};
use crate::fixture::{INSTALLED, OPERATOR};
use crate::install::ensure_nothing_was_forbidden;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use serde_json::{Value, json};
use vdo_testbed::soap::{SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI_NS: &str = "vmware-system-csi";
const TAKE_OVER: &str = "vdo.vmware.com/take-over-cluster-id";

/// Waits until the CSI driver is stopped because of its cluster id; gives the VDOConfig.
async fn until_stopped(bed: &Bed, words: &[&str]) -> Result<Value> {
    let ready = bed.until_reason("Ready", "ClusterIdInUse").await?;
    let message = ready["message"].as_str().unwrap_or_default();
    for word in words {
        ensure!(message.contains(word), "{word:?} is not in {message}");
    }
    let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
    ensure!(condition(&config, "Stalled")["status"] == "True", "{config:#}");
    Ok(config)
}

/// Nothing of the CSI driver was written, and no cluster id is fixed.
async fn nothing_of_csi(bed: &Bed) -> Result<()> {
    let csi: Vec<String> = bed
        .owned()
        .await?
        .iter()
        .filter(|object| object["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-csi")
        .map(name)
        .collect();
    ensure!(csi.is_empty(), "written: {csi:?}");
    let inventory = bed.state().await?;
    ensure!(inventory["data"]["clusterId"].is_null(), "{inventory:#}");
    ensure!(bed.status().await?["clusterId"].is_null());
    Ok(())
}

/// Waits until the CSI driver's controller is there; gives the configuration that it reads.
async fn until_csi(bed: &Bed) -> Result<String> {
    until("the CSI driver's controller", PATIENCE, async || {
        let found = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        Ok(Probe::when(found != Value::Null, condition(&config, "Ready")))
    })
    .await?;
    let secret = bed.get("v1", "Secret", CSI_NS, "vsphere-config-secret").await?;
    let file = secret["data"]["csi-vsphere.conf"].as_str().context("no configuration")?;
    Ok(String::from_utf8(base64::engine::general_purpose::STANDARD.decode(file)?)?)
}

/// Two clusters with a copied specification. The id can be changed as long as it is not used, and not any more afterwards. All of it
/// costs one login.
#[test]
#[ignore = "long"]
fn cluster_id_of_another_cluster_stops_csi_until_it_is_changed() -> Result<()> {
    OPERATOR.run(async |bed| {
        // What the last test let the operator ask for is no matter of this one.
        bed.kill_operator();
        let mark = bed.cluster.audit().mark().await?;
        bed.start_operator().await?;
        let proxy = SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?;
        let volumes = [
            bed.vcenter.register_volume("copied", "pvc-foreign-1").await?,
            bed.vcenter.register_volume("copied", "pvc-foreign-2").await?,
        ];
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        let mut connection = bed.connection("vc1");
        connection["spec"]["port"] = proxy.port().into();
        connection["spec"]["thumbprint"] = proxy.thumbprint_sha256().into();
        bed.apply(&connection).await?;
        bed.apply(&bed.config(json!({"storageProvider": {"clusterId": "copied"}}))).await?;

        let words = [
            "2 volumes",
            bed.vcenter.host(),
            "pvc-foreign-1, pvc-foreign-2",
            "spec.storageProvider.clusterId",
            "take-over-cluster-id=copied",
        ];
        until_stopped(bed, &words).await?;
        nothing_of_csi(bed).await?;
        let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
        ensure!(
            condition(&connection, "ClusterIdAvailable")["status"] == "False" && condition(&connection, "Ready")["status"] == "True",
            "{connection:#}"
        );
        for command in ["doctor", "diff"] {
            let (code, out, talk) = bed.vdoctl(&[command])?;
            ensure!(
                code == 1 && format!("{out}{talk}").contains("pvc-foreign-1"),
                "{command} {code}: {out}{talk}"
            );
        }
        // After a restart there is the same answer, and another annotation than for this id changes nothing.
        bed.kill_operator();
        bed.start_operator().await?;
        let annotate = json!({"metadata": {"annotations": {TAKE_OVER: "another"}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", annotate).await?;
        until_stopped(bed, &words).await?;
        nothing_of_csi(bed).await?;

        bed.apply(&bed.config(json!({"storageProvider": {"clusterId": "own"}}))).await?;
        let file = until_csi(bed).await?;
        ensure!(file.contains("cluster-id = \"own\""), "{file}");
        until("the cluster id to be fixed", PATIENCE, async || {
            let status = bed.status().await?;
            Ok(Probe::when(status["clusterId"] == "own", status))
        })
        .await?;
        let refused = bed.apply(&bed.config(json!({"storageProvider": {"clusterId": "copied"}}))).await;
        let said = format!("{:#}", refused.err().context("it was accepted")?);
        ensure!(said.contains("clusterId cannot be changed"), "{said}");

        // One for each of the two operators, and one for vdoctl doctor.
        let logins = proxy.logins().get(bed.vcenter.user()).copied().unwrap_or_default();
        ensure!(logins == Logins { succeeded: 3, failed: 0 }, "{logins:?}");
        for volume in volumes {
            bed.vcenter.delete_volume(&volume).await?;
        }
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// Removes the drivers and leaves the volumes, so that the next installation is the first one to use its cluster id.
async fn uninstall_despite_volumes(bed: &Bed) -> Result<()> {
    let annotate = json!({"metadata": {"annotations": {"vdo.vmware.com/remove-despite-volumes": "true"}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", annotate).await?;
    bed.uninstall().await?;
    until("the answer about the cluster id to be dropped", PATIENCE, async || {
        let volumes = volumes(bed).await?;
        Ok(Probe::when(volumes.is_null(), volumes))
    })
    .await
}

/// What the connection says of the volumes under the cluster id.
async fn volumes(bed: &Bed) -> Result<Value> {
    let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
    Ok(connection["status"]["volumes"].clone())
}

/// A volume with a PersistentVolume is the cluster's own. When that is deleted it looks like one of another cluster, and stops the
/// installation until an administrator says whose it is.
#[test]
#[ignore = "long"]
fn reinstallation_goes_on_with_own_volumes_and_stops_without_their_persistent_volumes() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let id = bed.status().await?["clusterId"].as_str().context("no cluster id")?.to_owned();
        let handle = bed.vcenter.register_volume(&id, "pvc-own").await?;
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pvc-own"}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": handle}}});
        bed.apply(&volume).await?;
        uninstall_despite_volumes(bed).await?;
        bed.apply(&bed.config(json!({}))).await?;
        let seen = until("an answer about the cluster id", PATIENCE, async || {
            let volumes = volumes(bed).await?;
            Ok(if volumes.is_null() {
                Probe::not_yet("there is none")
            } else {
                Probe::Ready(volumes)
            })
        })
        .await?;
        ensure!((&seen["volumes"], &seen["foreign"]) == (&json!(1), &json!(0)), "{seen}");
        ensure!(seen["clusterId"] == *id, "{seen}");
        bed.until_ready().await?;

        uninstall_despite_volumes(bed).await?;
        bed.delete("v1", "PersistentVolume", "", "pvc-own").await?;
        bed.apply(&bed.config(json!({}))).await?;
        until_stopped(bed, &["1 volume", "pvc-own", &id]).await?;
        nothing_of_csi(bed).await?;
        // What has no part in it goes on.
        until("the cloud provider", PATIENCE, async || {
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            let ready = condition(&config, "CloudProviderReady");
            Ok(Probe::when(ready["status"] == "True", ready))
        })
        .await?;
        let annotate = json!({"metadata": {"annotations": {TAKE_OVER: id}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", annotate).await?;
        bed.until_ready().await?;
        bed.vcenter.delete_volume(&handle).await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

fn volume_of_driver(name: &str, handle: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": handle}}})
}

/// The driver that made the volumes is gone with its configuration; the vCenter knows under which id they are registered.
#[test]
#[ignore = "long"]
fn cluster_id_of_former_installation_is_found_by_its_volumes() -> Result<()> {
    OPERATOR.run(async |bed| {
        let handle = bed.vcenter.register_volume("prod-7", "pvc-kept").await?;
        bed.apply(&volume_of_driver("pvc-kept", &handle)).await?;
        bed.apply_samples().await?;
        let file = until_csi(bed).await?;
        ensure!(file.contains("cluster-id = \"prod-7\""), "{file}");
        let seen = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?["status"]["volumes"].clone();
        ensure!(seen.is_null() || seen["registeredUnder"] == json!(["prod-7"]), "{seen}");
        bed.until_ready().await?;
        uninstall_despite_volumes(bed).await?;
        bed.delete("v1", "PersistentVolume", "", "pvc-kept").await?;
        bed.vcenter.delete_volume(&handle).await
    })
}

/// A cluster with volumes is never given an id that they do not have.
#[test]
#[ignore = "long"]
fn cluster_id_that_no_place_has_is_asked_for() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.apply(&volume_of_driver("pvc-restored", "6e2ee0d4-0000-4000-8000-000000000001"))
            .await?;
        bed.apply_samples().await?;
        let ready = bed.until_reason("Ready", "ClusterIdUnknown").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        for word in ["1 PersistentVolume", "govc volume.ls", "\"clusterId\":\"ID\""] {
            ensure!(message.contains(word), "{word:?} is not in {message}");
        }
        nothing_of_csi(bed).await?;
        let given = json!({"spec": {"storageProvider": {"clusterId": "restored"}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", given).await?;
        let file = until_csi(bed).await?;
        ensure!(file.contains("cluster-id = \"restored\""), "{file}");
        bed.until_ready().await?;
        uninstall_despite_volumes(bed).await?;
        bed.delete("v1", "PersistentVolume", "", "pvc-restored").await
    })
}

/// Charts of distributions keep the configuration in kube-system. Two installations with different ids are a question to a person.
#[test]
#[ignore = "long"]
fn cluster_id_in_kube_system_counts_and_two_of_them_stop_csi() -> Result<()> {
    OPERATOR.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let configuration = |namespace: &str, id: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vsphere-config-secret", "namespace": namespace},
                "stringData": {"csi-vsphere.conf": format!("[Global]\ncluster-id = \"{id}\"\n")}})
        };
        bed.apply(&configuration("kube-system", "prod-1")).await?;
        bed.apply(&configuration(CSI_NS, "prod-2")).await?;
        bed.apply_samples().await?;
        let ready = bed.until_reason("Ready", "ClusterIdAmbiguous").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        for word in [
            "prod-1 (Secret kube-system/vsphere-config-secret)",
            "prod-2 (Secret vmware-system-csi/vsphere-config-secret)",
        ] {
            ensure!(message.contains(word), "{word:?} is not in {message}");
        }
        nothing_of_csi(bed).await?;
        bed.delete("v1", "Secret", CSI_NS, "vsphere-config-secret").await?;
        let now = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", now).await?;
        let file = until_csi(bed).await?;
        ensure!(file.contains("cluster-id = \"prod-1\""), "{file}");
        bed.until_ready().await?;
        bed.uninstall().await?;
        bed.delete("v1", "Secret", "kube-system", "vsphere-config-secret").await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}
