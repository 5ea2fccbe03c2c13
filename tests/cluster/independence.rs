// SPDX-License-Identifier: Apache-2.0
//! Drivers fail one by one: what is wrong with one of them stops neither the repair of what is installed nor the upgrade of the other;
//! and a driver that is no longer named is not removed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{INSTALLED, policy, without_policy};
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use crate::matrix_source::embedded_index;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const CSI_NS: &str = "vmware-system-csi";
const VDO: &str = "vdo.vmware.com/v1alpha1";

/// What is deleted, and what is changed by hand, of each driver.
const DELETED: [(&str, &str, &str, &str); 5] = [
    ("v1", "Secret", "kube-system", "vsphere-cloud-secret"),
    ("v1", "ConfigMap", "kube-system", "vsphere-cloud-config"),
    ("v1", "Secret", CSI_NS, "vsphere-config-secret"),
    ("storage.k8s.io/v1", "CSIDriver", "", "csi.vsphere.vmware.com"),
    ("v1", "ServiceAccount", CSI_NS, "vsphere-csi-node"),
];
const CHANGED: [(&str, &str, &str, &str); 2] = [
    ("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager"),
    ("apps/v1", "DaemonSet", CSI_NS, "vsphere-csi-node"),
];

/// What matters of an object: not what the API server adds to it.
fn content(object: &Value) -> Value {
    let of = |key: &str| object[key].clone();
    let labels = object["metadata"]["labels"].clone();
    json!([
        of("data"),
        of("spec"),
        labels,
        object["metadata"]["annotations"]["vdo.vmware.com/applied"]
    ])
}

/// Damages both drivers, and waits until everything is as it was. The operator is another process, which remembers no earlier damage: of
/// the third within minutes it would make a pause.
async fn both_are_repaired(bed: &mut Bed, what: &str) -> Result<()> {
    bed.kill_operator();
    bed.start_operator().await?;
    let mut before = Vec::new();
    for (api_version, kind, namespace, name) in DELETED.iter().chain(&CHANGED) {
        before.push(content(&bed.get(api_version, kind, namespace, name).await?));
    }
    for (api_version, kind, namespace, name) in DELETED {
        bed.delete(api_version, kind, namespace, name).await?;
    }
    for (api_version, kind, namespace, name) in CHANGED {
        let change = json!({"spec": {"template": {"spec": {"serviceAccountName": "another", "serviceAccount": "another"}}}});
        bed.merge(api_version, kind, namespace, name, change).await?;
    }
    for ((api_version, kind, namespace, name), before) in DELETED.iter().chain(&CHANGED).zip(&before) {
        until(&format!("{what}: {kind} {name} to be repaired"), PATIENCE, async || {
            let now = content(&bed.get(api_version, kind, namespace, name).await?);
            Ok(Probe::when(
                now == *before,
                condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready"),
            ))
        })
        .await?;
    }
    Ok(())
}

async fn until_version(bed: &Bed, driver: usize, version: &str) -> Result<()> {
    until(&format!("driver {driver} to run version {version}"), PATIENCE, async || {
        let drivers = bed.status().await?["drivers"].clone();
        Ok(Probe::when(drivers[driver]["running"] == version, drivers))
    })
    .await
}

/// Waits until Ready has this reason for the newest generation.
async fn until_current_reason(bed: &Bed, reason: &str) -> Result<()> {
    until(&format!("Ready to have the reason {reason}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "Ready");
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        Ok(Probe::when(current && ready["reason"] == reason, ready))
    })
    .await
}

/// Has both drivers upgraded to what the sample asks for.
async fn back_to_the_newest(bed: &Bed) -> Result<()> {
    for spec in [json!({"updatePolicy": "Latest"}), json!({})] {
        bed.apply(&bed.config(spec)).await?;
        bed.until_ready().await?;
    }
    Ok(())
}

/// A pin that does not exist, a value that the schema refuses, a connection that does not exist: of one driver each, with an upgrade of
/// the other in the same change.
#[test]
#[ignore = "long"]
fn driver_with_invalid_request_is_kept_repaired_and_the_other_is_upgraded() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        for (cpi, reason) in [
            (json!({"version": "9.9.9"}), "UnknownVersion"),
            (json!({"values": {"namespace": 7}}), "InvalidValues"),
            (json!({"vsphereCloudConfigs": ["absent"]}), "ConnectionNotFound"),
        ] {
            until_at_rest(bed).await?;
            bed.apply(&bed.config(json!({"cloudProvider": cpi, "storageProvider": {"version": "3.6.3"}})))
                .await?;
            until_current_reason(bed, reason).await?;
            until_version(bed, 1, "3.6.3").await?;
            both_are_repaired(bed, reason).await?;
            back_to_the_newest(bed).await?;
        }
        for (csi, reason) in [
            (json!({"version": "3.0.0"}), "IncompatiblePin"),
            (json!({"values": {"controller": {"replicas": "many"}}}), "InvalidValues"),
            (json!({"clusterId": "another"}), "InvalidSpec"),
        ] {
            until_at_rest(bed).await?;
            let cpi = json!({"version": "1.33.0", "allowIncompatible": true});
            bed.apply(&bed.config(json!({"cloudProvider": cpi, "storageProvider": csi})))
                .await?;
            until_current_reason(bed, reason).await?;
            until_version(bed, 0, "1.33.0").await?;
            both_are_repaired(bed, reason).await?;
            back_to_the_newest(bed).await?;
        }
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// A chart that cannot be had, of the version that one driver is asked to become.
#[test]
#[ignore = "long"]
fn driver_with_unavailable_chart_is_kept_repaired_and_the_other_is_changed() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let folder = tempfile::tempdir()?;
        let mut index = embedded_index()?;
        let versions = index["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
        let entry = versions.iter_mut().find(|entry| entry["version"] == "3.6.3").context("an entry")?;
        entry["chart"]["sha256"] = "0".repeat(64).into();
        index["version"] = 9000.into();
        std::fs::write(folder.path().join("index.yaml"), index.to_string())?;
        bed.kill_operator();
        bed.flags
            .push(("matrix", Box::leak(folder.path().display().to_string().into_boxed_str())));
        bed.start_operator().await?;
        bed.until_ready().await?;
        let cpi = json!({"version": "1.33.0", "allowIncompatible": true});
        bed.apply(&bed.config(json!({"cloudProvider": cpi, "storageProvider": {"version": "3.6.3"}})))
            .await?;
        until_current_reason(bed, "DigestMismatch").await?;
        until_version(bed, 0, "1.33.0").await?;
        both_are_repaired(bed, "a chart that cannot be had").await?;
        ensure!(bed.status().await?["drivers"][1]["running"] == "3.8.0", "CSI was changed");
        back_to_the_newest(bed).await
    })
}

/// One planner makes the whole plan, and everything else reads it.
#[test]
#[ignore = "long"]
fn plan_is_made_once_in_every_run_that_learns_nothing_new() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.kill_operator();
        bed.flags.push(("log-level", "info,vdo::reconcile=debug"));
        bed.start_operator().await?;
        until_at_rest(bed).await?;
        let log = bed.operator_log();
        let planned = || -> Result<u64> {
            let lines = std::fs::read_to_string(&log)?;
            Ok(u64::try_from(
                lines.lines().filter(|line| line.contains(r#""message":"planned""#)).count(),
            )?)
        };
        // Both are written down a moment after they happen.
        let once = async || {
            until("every run to have made one plan", PATIENCE, async || {
                let (plans, runs) = (planned()?, bed.reconciles().await?);
                Ok(match plans == runs {
                    true => Probe::Ready(runs),
                    false => Probe::not_yet(format!("{plans} plans in {runs} runs")),
                })
            })
            .await
        };
        let before = once().await?;
        bed.apply(&bed.config(json!({"cloudProvider": {"values": {"logLevel": 4}}, "storageProvider": {}})))
            .await?;
        bed.until_ready().await?;
        until_at_rest(bed).await?;
        ensure!(once().await? > before, "there was no run");
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A connection with a wrong address, which both drivers would use, and then only one of them.
#[test]
#[ignore = "long"]
fn stray_connection_stops_no_repair_and_only_drivers_that_use_it() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut stray = bed.connection("stray");
        stray["spec"]["vcIp"] = "203.0.113.1".into();
        bed.apply(&stray).await?;
        until_current_reason(bed, "ConnectionNotReady").await?;
        both_are_repaired(bed, "a stray connection").await?;
        let csi = json!({"version": "3.6.3", "vsphereCloudConfigs": ["vc1"]});
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": csi}))).await?;
        until_version(bed, 1, "3.6.3").await?;
        both_are_repaired(bed, "a stray connection of one driver").await?;
        bed.delete(VDO, "VsphereCloudConfig", NS, "stray").await?;
        back_to_the_newest(bed).await
    })
}

/// A policy against the next version of one driver.
#[test]
#[ignore = "long"]
fn driver_refused_by_policy_is_kept_repaired() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let labels = json!({"vdo.vmware.com/driver": "vsphere-csi", "app.kubernetes.io/version": "3.6.3"});
        let probe = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "probe", "namespace": CSI_NS, "labels": labels},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        policy(bed, &probe, "no new controllers").await?;
        let cpi = json!({"version": "1.33.0", "allowIncompatible": true});
        bed.apply(&bed.config(json!({"cloudProvider": cpi, "storageProvider": {"version": "3.6.3"}})))
            .await?;
        until_current_reason(bed, "AdmissionDenied").await?;
        until_version(bed, 0, "1.33.0").await?;
        both_are_repaired(bed, "a refused upgrade").await?;
        ensure!(bed.status().await?["drivers"][1]["running"] == "3.8.0", "the refused driver was changed");
        without_policy(bed).await?;
        back_to_the_newest(bed).await
    })
}

/// Naming one driver is no way to remove the other: it stays, is repaired, and both ways out are said.
#[test]
#[ignore = "long"]
fn driver_no_longer_named_stays_and_is_removed_by_its_management_state() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.merge(
            VDO,
            "VDOConfig",
            NS,
            "vdo",
            json!({"spec": {"storageProvider": {"version": "3.6.3"}}}),
        )
        .await?;
        until_version(bed, 1, "3.6.3").await?;
        let kept = bed.until_reason("CloudProviderReady", "NotRequested").await?;
        let message = kept["message"].as_str().context("a message")?;
        println!("{message}");
        for words in [
            "spec.cloudProvider to manage the driver",
            "spec.cloudProvider.managementState to Removed",
        ] {
            ensure!(message.contains(words), "{words:?} is not in {message}");
        }
        bed.until_ready().await?;
        both_are_repaired(bed, "a driver that is not named").await?;
        let (code, text, _) = bed.vdoctl(&["status"])?;
        println!("{text}");
        ensure!(
            text.contains("not requested"),
            "vdoctl status says nothing of it (exit {code}):\n{text}"
        );
        let gone = bed.deleted(mark).await?;
        let gone = gone.only(|e| e.namespace == "kube-system" && e.resource != "pods");
        ensure!(gone.is_empty(), "something of the cloud provider was deleted:\n{gone}");

        let removed = json!({"spec": {"cloudProvider": {"managementState": "Removed"}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", removed).await?;
        bed.until_reason("CloudProviderReady", "Removed").await?;
        let left = bed.owned().await?;
        let left: Vec<String> = left
            .iter()
            .filter(|object| object["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-cpi")
            .map(crate::common::name)
            .collect();
        ensure!(left.is_empty(), "left of the cloud provider: {left:?}");
        bed.until_ready().await?;
        let events = bed.list("v1", "Event", "").await?;
        for reason in ["NotRequested", "Removed"] {
            let reported = |event: &Value| event["reason"] == reason;
            ensure!(events.iter().any(reported), "no event says {reason}");
        }
        back_to_the_newest(bed).await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// Nothing of a paused driver is written, and the other one is repaired.
#[test]
#[ignore = "long"]
fn driver_that_is_paused_is_left_alone_and_the_other_is_repaired() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {"managementState": "Paused"}, "storageProvider": {}})))
            .await?;
        bed.until_ready().await?;
        let (cpi, csi) = (DELETED[1], DELETED[4]);
        for (api_version, kind, namespace, name) in [cpi, csi] {
            bed.delete(api_version, kind, namespace, name).await?;
        }
        until("the other driver to be repaired", PATIENCE, async || {
            let found = bed.get(csi.0, csi.1, csi.2, csi.3).await?;
            Ok(Probe::when(found != Value::Null, "it is not there"))
        })
        .await?;
        ensure!(
            bed.get(cpi.0, cpi.1, cpi.2, cpi.3).await? == Value::Null,
            "the paused driver was repaired"
        );
        bed.apply(&bed.config(json!({}))).await?;
        until("the driver to be repaired when it is managed again", PATIENCE, async || {
            let found = bed.get(cpi.0, cpi.1, cpi.2, cpi.3).await?;
            Ok(Probe::when(found != Value::Null, "it is not there"))
        })
        .await?;
        bed.until_ready().await?;
        Ok(())
    })
}
