// SPDX-License-Identifier: Apache-2.0
//! A cluster that behaves oddly: something refuses or swallows every write, definitions come and go, the clock jumps. The operator lives
//! on, the drivers stay as they are, and when it is over all goes on by itself.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, OPERATOR as ACCOUNT, PATIENCE, condition, logged, now};
use crate::fixture::{BARE, EMPTY, INSTALLED};
use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::path::Path;
use vdo_testbed::{Clock, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const CSI_NS: &str = "vmware-system-csi";
const DAY: i64 = 24 * 60 * 60;

/// A webhook for every write of the operator. No one answers at the port, or someone takes the connection and says nothing.
fn webhook(port: u16) -> Value {
    json!({"apiVersion": ADMISSION, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "against-all"}, "webhooks": [{
        "name": "against.all.example.com",
        "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "*"}],
        "matchConditions": [{"name": "operator", "expression": format!("request.userInfo.username == '{ACCOUNT}'")}],
        "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
    }]})
}

/// Waits until the webhook stands against writes of the operator: the API server sees it a moment after it is applied.
async fn until_against(bed: &Bed) -> Result<()> {
    let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
    let api = kube::Api::<k8s_openapi::api::core::v1::Secret>::namespaced(client, NS);
    until("the webhook to refuse writes", PATIENCE, async || {
        let probe = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vdo-state"}, "type": "vdo.vmware.com/state"});
        let dry = kube::api::PatchParams::apply("probe").dry_run();
        Ok(match api.patch("vdo-state", &dry, &kube::api::Patch::Apply(&probe)).await {
            Err(kube::Error::Api(status)) if status.message.contains("against.all") => Probe::Ready(()),
            other => Probe::not_yet(format!("{:?}", other.err())),
        })
    })
    .await
}

/// Waits until the operator's log names the webhook.
async fn until_named(bed: &Bed) -> Result<()> {
    let log = bed.operator_log();
    until("the log to name the webhook", PATIENCE, async || {
        let text = std::fs::read_to_string(&log)?;
        Ok(Probe::when(
            text.contains("against.all.example.com"),
            text.lines().last().unwrap_or_default(),
        ))
    })
    .await
}

async fn lives(bed: &mut Bed) -> Result<()> {
    ensure!(bed.operator_runs(), "the operator has ended");
    let answer = bed.fetch("/healthz").await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

/// Not even its Lease can be written. The log names the webhook, and the installation begins when it is gone.
#[test]
#[ignore = "long"]
fn webhook_refusing_every_write_is_named_and_install_follows_when_it_is_gone() -> Result<()> {
    EMPTY.run(async |bed| {
        let closed = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        bed.apply(&webhook(closed)).await?;
        until_against(bed).await?;
        bed.start_operator().await?;
        bed.apply_samples().await?;
        until_named(bed).await?;
        lives(bed).await?;
        ensure!(bed.owned().await?.is_empty(), "something was installed");
        bed.delete(ADMISSION, "ValidatingWebhookConfiguration", "", "against-all").await?;
        bed.until_ready().await?;
        lives(bed).await
    })
}

/// It takes every connection and says nothing, while drivers run: their repair waits, and they stay as they are.
#[test]
#[ignore = "long"]
fn webhook_hanging_on_every_write_stops_no_driver_and_repair_follows() -> Result<()> {
    INSTALLED.run(async |bed| {
        let hangs = std::net::TcpListener::bind("127.0.0.1:0")?;
        bed.apply(&webhook(hangs.local_addr()?.port())).await?;
        until_against(bed).await?;
        let before = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
        bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        until_named(bed).await?;
        lives(bed).await?;
        let after = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
        ensure!(before["spec"] == after["spec"] && before["metadata"]["uid"] == after["metadata"]["uid"]);
        bed.delete(ADMISSION, "ValidatingWebhookConfiguration", "", "against-all").await?;
        until("the Service to be back", PATIENCE, async || {
            let service = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
            Ok(Probe::when(!service.is_null(), "it is not"))
        })
        .await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// The definition of connections goes and comes again, and so does that of VDOConfigs, with which the drivers are uninstalled. The
/// operator is not restarted.
#[test]
#[ignore = "long"]
fn definitions_deleted_and_recreated_are_watched_again() -> Result<()> {
    const CRD: &str = "apiextensions.k8s.io/v1";
    BARE.run(async |bed| {
        bed.apply_deploy().await?;
        bed.start_operator().await?;
        bed.apply_samples().await?;
        bed.until_ready().await?;
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/crds");
        let gone = async |name: &str| {
            bed.delete(CRD, "CustomResourceDefinition", "", name).await?;
            until(&format!("definition {name} to be gone"), PATIENCE, async || {
                let found = bed.get(CRD, "CustomResourceDefinition", "", name).await?;
                Ok(Probe::when(found.is_null(), &found["status"]["conditions"]))
            })
            .await
        };
        let again = async |name: &str| -> Result<()> {
            bed.cluster.apply_file(crds.join(format!("vdo.vmware.com_{name}.yaml"))).await?;
            until(&format!("{name} to be served"), PATIENCE, async || {
                let found = bed
                    .get(CRD, "CustomResourceDefinition", "", &format!("{name}.vdo.vmware.com"))
                    .await?;
                let served = condition(&found, "Established")["status"] == "True";
                Ok(Probe::when(served, &found["status"]["conditions"]))
            })
            .await
        };
        let uid = async |bed: &Bed| -> Result<Value> {
            let controller = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
            Ok(controller["metadata"]["uid"].clone())
        };
        let before = uid(bed).await?;
        gone("vspherecloudconfigs.vdo.vmware.com").await?;
        until("the VDOConfig not to be ready", PATIENCE, async || {
            let ready = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready");
            Ok(Probe::when(ready["status"] != "True", ready))
        })
        .await?;
        again("vspherecloudconfigs").await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.until_ready().await?;
        ensure!(uid(bed).await? == before, "the controller was recreated");

        gone("vdoconfigs.vdo.vmware.com").await?;
        ensure!(bed.owned().await?.is_empty(), "with its VDOConfig the drivers go");
        again("vdoconfigs").await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        lives(bed).await
    })
}

/// The time of the newest line in the log.
fn clock_of(bed: &Bed) -> Result<Timestamp> {
    let text = std::fs::read_to_string(bed.operator_log())?;
    let line: Value = serde_json::from_str(text.lines().last().context("an empty log")?)?;
    Ok(line["timestamp"].as_str().context("no time")?.parse()?)
}

/// A day later and a day earlier than it was: nothing is recreated, and what is broken is repaired as soon as ever.
#[test]
#[ignore = "long"]
fn clock_jumping_by_a_day_delays_no_repair() -> Result<()> {
    INSTALLED.run(async |bed| {
        let clock = Clock::in_folder(bed.cluster.dir())?;
        bed.kill_operator();
        bed.environment = clock.environment().into();
        bed.start_operator().await?;
        logged(&bed.operator_log(), "ready").await?;
        let uids = async |bed: &Bed| -> Result<Vec<Value>> {
            let owned = bed.list("apps/v1", "Deployment", "vdo.vmware.com/driver").await?;
            Ok(owned.iter().map(|object| object["metadata"]["uid"].clone()).collect())
        };
        let before = uids(bed).await?;
        for seconds in [0, DAY, -DAY, 0] {
            clock.set(seconds)?;
            let service = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?["metadata"]["uid"].clone();
            bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
            until(
                &format!("the Service to be back with the clock {seconds} s off"),
                PATIENCE,
                async || {
                    let found = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?["metadata"]["uid"].clone();
                    Ok(Probe::when(found.is_string() && found != service, found))
                },
            )
            .await?;
            lives(bed).await?;
            let off = clock_of(bed)?.as_second() - now().as_second();
            ensure!((off - seconds).abs() < DAY / 2, "its clock is {off} s off instead of {seconds}");
        }
        // What was refused a day ahead is tried again although its next attempt was promised for then.
        clock.set(DAY)?;
        let wrong = json!({"spec": {"storageProvider": {"values": {"nonsense": true}}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", wrong).await?;
        until("the wrong value to be refused", PATIENCE, async || {
            let ready = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready");
            Ok(Probe::when(ready["status"] != "True", ready))
        })
        .await?;
        clock.set(-DAY)?;
        let right = json!({"spec": {"storageProvider": {"values": null}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", right).await?;
        bed.until_ready().await?;
        ensure!(uids(bed).await? == before, "a workload was recreated");
        Ok(())
    })
}
