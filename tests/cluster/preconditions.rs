// SPDX-License-Identifier: Apache-2.0
//! What the choice of versions depends on in a cluster: definitions and controller of snapshots, features that the vCenter lacks,
//! preconditions of upgrades.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NODES, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::page::run;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const CSI: &str = "csi.vsphere.vmware.com";
const OLD: &str = "3.6.3";
const NEW: &str = "3.8.0";

/// Pins CSI to a version and waits until it runs.
async fn pinned(bed: &Bed, version: &str) -> Result<Value> {
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": version}})))
        .await?;
    until(&format!("CSI {version} to run"), PATIENCE, async || {
        let config = bed.until_ready().await?;
        let driver = &config["status"]["drivers"][1];
        Ok(if driver["running"] == version {
            Probe::Ready(config)
        } else {
            Probe::not_yet(driver)
        })
    })
    .await
}

/// A specification that follows the newest versions.
fn latest(bed: &Bed, storage: Value) -> Value {
    bed.config(json!({"updatePolicy": "Latest", "cloudProvider": {}, "storageProvider": storage}))
}

/// What the status says of CSI.
async fn csi(bed: &Bed) -> Result<Value> {
    Ok(bed.status().await?["drivers"][1].clone())
}

async fn until_upgraded(bed: &Bed) -> Result<()> {
    until("CSI to be upgraded", PATIENCE, async || {
        let driver = csi(bed).await?;
        Ok(Probe::when(driver["version"] == NEW && driver["running"] == NEW, &driver))
    })
    .await?;
    bed.until_ready().await?;
    Ok(())
}

/// Upgraded, Kubernetes would have a version that the pinned one does not support.
#[test]
#[ignore = "long"]
fn upgradeable_with_older_csi_pinned_is_false() -> Result<()> {
    INSTALLED.run(async |bed| {
        let config = pinned(bed, OLD).await?;
        let driver = &config["status"]["drivers"][1];
        assert_eq!(
            (&driver["version"], &driver["running"]),
            (&json!(OLD), &json!(OLD)),
            "wanted and running"
        );
        let (_, out, _) = bed.vdoctl(&["status", "-o", "json"])?;
        let shown = &serde_json::from_str::<Value>(&out)?["drivers"][1];
        assert_eq!((&shown["version"], &shown["running"]), (&json!(OLD), &json!(OLD)), "{out}");
        let found = bed.until_reason("Upgradeable", "IncompatiblePin").await?;
        let message = found["message"].as_str().unwrap_or_default();
        assert_eq!(found["status"], "False", "{found}");
        assert!(
            message.contains("Kubernetes 1.35 does not fit: CSI is pinned to 3.6.3"),
            "{message}"
        );
        pinned(bed, NEW).await?;
        Ok(())
    })
}

/// What an upgrade of the platform would do, before it is begun.
#[test]
fn upgradeable_with_newest_drivers_names_what_fits() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&latest(bed, json!({}))).await?;
        let found = bed.until_reason("Upgradeable", "Healthy").await?;
        let message = found["message"].as_str().unwrap_or_default();
        assert_eq!(found["status"], "True", "{found}");
        assert!(
            message.starts_with("Kubernetes 1.35 fits with CPI 1.35.") && message.contains("CSI 3.8.0"),
            "{message}"
        );
        Ok(())
    })
}

/// A definition as the release of external-snapshotter has it, as far as the operator looks at it.
pub fn definition(kind: &str, namespaced: bool) -> Value {
    let plural = match kind {
        "VolumeSnapshotClass" => "volumesnapshotclasses".to_owned(),
        _ => format!("{}s", kind.to_lowercase()),
    };
    let approved = json!({"api-approved.kubernetes.io": "https://github.com/kubernetes-csi/external-snapshotter/pull/814"});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.snapshot.storage.k8s.io"), "annotations": approved},
        "spec": {"group": "snapshot.storage.k8s.io", "names": {"kind": kind, "plural": plural},
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{"name": "v1", "served": true, "storage": true, 
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

/// The snapshotter runs as the driver ships it. As long as the specification does not ask for snapshots, what is missing is no fault.
#[test]
#[ignore = "long"]
fn snapshots_requested_condition_names_what_is_missing() -> Result<()> {
    INSTALLED.run(async |bed| {
        let found = bed.until_reason("SnapshotsSupported", "NotRequested").await?;
        assert_eq!(found["status"], "Unknown");
        assert!(
            found["message"]
                .as_str()
                .unwrap_or_default()
                .contains("the API server does not serve their definitions"),
            "{found}"
        );
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"snapshots": {"maxPerVolume": 4}}})))
            .await?;
        let found = bed.until_reason("SnapshotsSupported", "SnapshotDefinitionsMissing").await?;
        assert_eq!(found["status"], "False");
        let message = found["message"].as_str().unwrap_or_default();
        for name in [
            "volumesnapshots.",
            "volumesnapshotcontents.",
            "volumesnapshotclasses.",
            "vdoctl rights --missing --driver snapshot-controller",
            "kubectl patch vdoconfig vdo",
        ] {
            assert!(message.contains(name), "{name} is not in {message}");
        }
        for kind in ["VolumeSnapshot", "VolumeSnapshotContent", "VolumeSnapshotClass"] {
            bed.apply(&definition(kind, kind == "VolumeSnapshot")).await?;
        }
        let found = bed.until_reason("SnapshotsSupported", "SnapshotControllerMissing").await?;
        assert_eq!(found["status"], "False", "{found}");

        let labels = json!({"app.kubernetes.io/name": "snapshot-controller"});
        bed.apply(
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "snapshot-controller", "namespace": "kube-system"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{"name": "snapshot-controller", "image": "registry.k8s.io/sig-storage/snapshot-controller:v8.2.0"}]}}}}),
        )
        .await?;
        let found = bed.until_reason("SnapshotsSupported", "Healthy").await?;
        assert_eq!(found["status"], "True");
        assert!(
            found["message"]
                .as_str()
                .unwrap_or_default()
                .contains("kube-system/snapshot-controller-"),
            "{found}"
        );

        // As after an upgrade from a release that converted: the webhook is named, and the remedy ends it.
        let (definitions, converted) = ("apiextensions.k8s.io/v1", "volumesnapshots.snapshot.storage.k8s.io");
        let service = json!({"namespace": "kube-system", "name": "converter"});
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}});
        let change = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}});
        bed.merge(definitions, "CustomResourceDefinition", "", converted, change).await?;
        let found = bed.until_reason("SnapshotsSupported", "SnapshotConversionWebhook").await?;
        assert_eq!(found["status"], "Unknown", "{found}");
        let message = found["message"].as_str().unwrap_or_default();
        assert!(message.contains("kube-system/converter") && message.contains(converted), "{found}");
        let patch = message
            .split("--patch '")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap_or_default();
        let remedy = serde_json::from_str(patch)?;
        bed.merge(definitions, "CustomResourceDefinition", "", converted, remedy).await?;
        bed.until_reason("SnapshotsSupported", "Healthy").await?;

        bed.delete(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "",
            "volumesnapshots.snapshot.storage.k8s.io",
        )
        .await?;
        let found = bed.until_reason("SnapshotsSupported", "SnapshotDefinitionsMissing").await?;
        assert!(!found["message"].as_str().unwrap_or_default().contains("contents"), "{found}");
        // It informs: what runs is still ready.
        bed.until_ready().await?;

        let without = json!({"cloudProvider": {}, "storageProvider": {"values": {"snapshots": {"enabled": false}}}});
        bed.apply(&bed.config(without)).await?;
        let found = bed.until_reason("SnapshotsSupported", "NotRequested").await?;
        assert_eq!(found["status"], "Unknown", "{found}");
        Ok(())
    })
}

/// The line of the condition, pasted into a shell where it is shown, is all that snapshots need.
#[test]
#[ignore = "long"]
fn snapshots_command_of_the_condition_installs_definitions_and_controller() -> Result<()> {
    const CONTROLLER: (&str, &str, &str, &str) = ("apps/v1", "Deployment", "kube-system", "snapshot-controller");
    INSTALLED.run(async |bed| {
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"snapshots": {"maxPerVolume": 4}}})))
            .await?;
        let found = bed.until_reason("SnapshotsSupported", "SnapshotDefinitionsMissing").await?;
        let message = found["message"].as_str().unwrap_or_default();
        let command = message
            .split("to install the definitions and the controller: ")
            .nth(1)
            .and_then(|rest| rest.split_once("'; "));
        let (command, _) = command.with_context(|| format!("no command in {message}"))?;
        // Learning the content of all charts takes a debug build half of the usual limit, beside other tests more.
        run(bed, &format!("export VDO_TIMEOUT=3m\n{command}'"))?;
        let found = bed.until_reason("SnapshotsSupported", "Healthy").await?;
        ensure!(found["message"].to_string().contains("kube-system/snapshot-controller-"), "{found}");
        bed.until_ready().await?;
        let (code, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        ensure!(code == 0 && out.contains("\"VolumeSnapshotClass\""), "{code}\n{out}{err}");

        let drivers = |all: Value| json!({"spec": {"drivers": all}});
        let removed = drivers(json!([{"name": CONTROLLER.3, "managementState": "Removed"}]));
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", removed).await?;
        until("the snapshot controller to be removed", PATIENCE, async || {
            let found = bed.get(CONTROLLER.0, CONTROLLER.1, CONTROLLER.2, CONTROLLER.3).await?;
            Ok(Probe::when(found.is_null(), found))
        })
        .await?;
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", drivers(Value::Null))
            .await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// The vCenter is 8.0.3; transactions need 9.1. What runs goes on.
#[test]
fn feature_that_vcenter_lacks_is_named_and_changes_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        let before = bed.owned().await?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"features": {"csi-transaction-support": true}}})))
            .await?;
        let found = bed.until_reason("Ready", "NoCompatibleVersion").await?;
        let message = found["message"].as_str().unwrap_or_default();
        for part in [
            "transactions",
            "spec.storageProvider.features[csi-transaction-support]",
            "vCenter 9.1 and newer",
            "not with version 8.0.3 of vc1",
            "without spec",
        ] {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
        assert_eq!(bed.owned().await?, before, "nothing is changed while there is no choice");
        // What the next test finds is what this one found.
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {}}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// The node of a CSINode is called by its name and not by the UUID of its machine, as with use-csinode-id switched off.
#[test]
#[ignore = "long"]
fn upgrade_waits_for_csi_node_ids_also_with_pin() -> Result<()> {
    INSTALLED.run(async |bed| {
        pinned(bed, OLD).await?;
        rename(bed, "w-3").await?;
        bed.apply(&latest(bed, json!({}))).await?;
        let because = until("the upgrade to wait", PATIENCE, async || {
            let driver = csi(bed).await?;
            let because = driver["because"].as_str().unwrap_or_default().to_owned();
            Ok(if because.contains("cannot be installed yet") {
                Probe::Ready(because)
            } else {
                Probe::not_yet(driver)
            })
        })
        .await?;
        assert!(
            because.contains("3.8.0 cannot be installed yet because of precondition CsiNodeIds: CSINode w-3 has the node ID \"w-3\""),
            "{because}"
        );
        assert_eq!(csi(bed).await?["version"], OLD);
        // A pin does not go round it either.
        bed.apply(&latest(bed, json!({"version": NEW}))).await?;
        let found = bed.until_reason("Ready", "IncompatiblePin").await?;
        assert!(found["message"].as_str().unwrap_or_default().contains("CsiNodeIds"), "{found}");
        bed.apply(&latest(bed, json!({}))).await?;
        register_again(bed, "w-3").await?;
        until_upgraded(bed).await
    })
}

/// A volume that pods on several nodes use, another one, and one whose definition is gone.
#[test]
#[ignore = "long"]
fn upgrade_waits_until_shared_volumes_are_detached() -> Result<()> {
    INSTALLED.run(async |bed| {
        pinned(bed, OLD).await?;
        for (volume, mode) in [("shared", "ReadWriteMany"), ("own", "ReadWriteOnce")] {
            let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": [mode], "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": CSI, "volumeHandle": volume}});
            bed.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": spec}))
                .await?;
            let spec = json!({"attacher": CSI, "nodeName": "w-1", "source": {"persistentVolumeName": volume}});
            bed.apply(&json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": volume}, "spec": spec}))
                .await?;
        }
        bed.apply(&latest(bed, json!({}))).await?;
        let found = bed.until_reason("NoRwxAttachments", "SharedVolumesAttached").await?;
        assert_eq!(found["status"], "False", "{found}");
        let message = found["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("shared on node w-1") && !message.contains("own on node"),
            "{message}"
        );
        let waits = async |why: &str| {
            let driver = csi(bed).await?;
            let because = driver["because"].as_str().unwrap_or_default();
            ensure!(driver["version"] == OLD && driver["running"] == OLD, "{driver}");
            ensure!(because.contains("NoRwxAttachments") && because.contains(why), "{because}");
            anyhow::Ok(())
        };
        waits("shared on node w-1").await?;
        // What is not known does not let an upgrade go on either, and takes nothing away.
        bed.delete("v1", "PersistentVolume", "", "shared").await?;
        let found = bed.until_reason("NoRwxAttachments", "NotChecked").await?;
        assert_eq!(found["status"], "Unknown", "{found}");
        waits("the volume of VolumeAttachment shared is shared by nodes").await?;
        bed.delete("storage.k8s.io/v1", "VolumeAttachment", "", "shared").await?;
        until_upgraded(bed).await?;
        let found = bed.until_reason("NoRwxAttachments", "NotRequested").await?;
        assert_eq!(found["status"], "Unknown", "no upgrade is due any more: {found}");
        Ok(())
    })
}

/// The name of the node's machine in its CSINode; null where the driver is not registered.
async fn machine(bed: &Bed, node: &str) -> Result<Value> {
    let found = bed.get("storage.k8s.io/v1", "CSINode", "", node).await?;
    Ok(found["spec"]["drivers"][0]["nodeID"].clone())
}

/// Registers the driver on a node under the name of the node. Kubernetes does not let it be changed in place.
async fn rename(bed: &Bed, node: &str) -> Result<()> {
    until(&format!("CSINode {node} to call its machine {node}"), PATIENCE, async || {
        let now = machine(bed, node).await?;
        if now == node {
            return Ok(Probe::Ready(()));
        }
        bed.delete("storage.k8s.io/v1", "CSINode", "", node).await?;
        let new = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
            "spec": {"drivers": [{"name": CSI, "nodeID": node}]}});
        let made = bed.apply(&new).await.context("created by the node agent in between");
        Ok(Probe::not_yet(format!("{now}; {made:?}")))
    })
    .await
}

/// Deletes the CSINode and waits until the node agent has registered the driver again.
async fn register_again(bed: &Bed, node: &str) -> Result<()> {
    bed.delete("storage.k8s.io/v1", "CSINode", "", node).await?;
    until(&format!("the driver to be registered on {node}"), PATIENCE, async || {
        let now = machine(bed, node).await?;
        Ok(Probe::when(now.is_string() && now != node, now))
    })
    .await
}

/// What is accepted and has no effect is named as long as it is so, and nothing waits for it. The fields of the cloud provider have one.
#[test]
#[ignore = "long"]
fn options_without_effect_are_named_and_those_of_the_cloud_provider_arrive() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (at, (node, address)) in NODES.into_iter().enumerate() {
            let both = format!("{address},fd00::{at}");
            bed.vcenter.set("VirtualMachine", node, &[("address", &both)]).await?;
        }
        let cpi = json!({"ipFamilies": ["IPv4", "IPv6"], "nodeNetworks": {"internal": {"subnets": ["10.0.0.0/8", "fd00::/64"]}}});
        // No vCenter has this datastore: a version that reads it would wait for it.
        let files = json!({"vsanDataStoreUrl": ["ds:///vmfs/volumes/vsan:nowhere/"]});
        let csi = json!({"values": {"featureStates": {"csi-transaction-support": true}}, "fileVolumes": files});
        bed.apply(&bed.config(json!({"cloudProvider": cpi, "storageProvider": csi})))
            .await?;
        let found = bed.until_reason("OptionsSupported", "OptionNotSupported").await?;
        ensure!(found["status"] == "False", "{found}");
        let message = found["message"].as_str().unwrap_or_default();
        for option in ["fileVolumes.vsanDataStoreUrl", "values.featureStates[csi-transaction-support]"] {
            let words = format!("spec.storageProvider.{option} has no effect with CSI 3.");
            ensure!(message.contains(&words), "{words:?} is not in {message}");
        }
        bed.until_ready().await?;
        let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
        ensure!(condition(&connection, "Ready")["status"] == "True", "{}", connection["status"]);
        for (node, address) in NODES {
            bed.vcenter.set("VirtualMachine", node, &[("address", address)]).await?;
        }

        let config = bed.get("v1", "ConfigMap", "kube-system", "vsphere-cloud-config").await?;
        let conf = config["data"]["vsphere.conf"].as_str().unwrap_or_default();
        for line in [
            "  ipFamily: [\"ipv4\", \"ipv6\"]\n",
            "nodes:\n  internalNetworkSubnetCidr: \"10.0.0.0/8,fd00::/64\"\n",
        ] {
            ensure!(conf.contains(line), "{line:?} is not in {conf}");
        }
        let manager = bed
            .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await?;
        let env = &manager["spec"]["template"]["spec"]["containers"][0]["env"];
        ensure!(env == &json!([{"name": "ENABLE_ALPHA_DUAL_STACK", "value": "true"}]), "{env}");
        for (wrong, expected) in [
            (json!({"ipFamilies": ["IPv4", "IPv4"]}), "name each family once"),
            (json!({"ipFamilies": ["IPv5"]}), "Unsupported value"),
        ] {
            let refused = bed.apply(&bed.config(json!({"cloudProvider": wrong, "storageProvider": {}}))).await;
            let said = format!("{:#}", refused.err().context("the API server takes it")?);
            ensure!(said.contains(expected), "{said}");
        }

        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {}}))).await?;
        until("the condition to go", PATIENCE, async || {
            let status = bed.status().await?;
            let there = status["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "OptionsSupported");
            Ok(Probe::when(!there, "it is still there"))
        })
        .await?;
        bed.until_ready().await.map(drop)
    })
}
