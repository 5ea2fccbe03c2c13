// SPDX-License-Identifier: Apache-2.0
//! `spec.approval: Manual`: nothing changes until a person has approved the plan, what was approved is kept, and a restart needs no
//! second approval. The operator makes no dry runs here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{Fixture, INSTALLED as PLAIN, OPERATOR as IDLE, written};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Mark, Probe, until};

const FLAGS: &[(&str, &str)] = &[("server-dry-run", "false")];
const OPERATOR: Fixture = IDLE.flags(FLAGS);
const INSTALLED: Fixture = PLAIN.flags(FLAGS);
const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI_NS: &str = "vmware-system-csi";

fn manual(csi: &str) -> Value {
    json!({"approval": "Manual", "cloudProvider": {}, "storageProvider": {"version": csi}})
}

/// The same with a setting of the cloud provider.
fn manual_with_level(csi: &str, level: u8) -> Value {
    let mut spec = manual(csi);
    spec["cloudProvider"] = json!({"values": {"logLevel": level}});
    spec
}

/// The condition says what is waited for and how to go on, and nothing is written meanwhile; gives the hash.
async fn waits(bed: &Bed, mark: Mark) -> Result<String> {
    let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
    let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
    let plan = &config["status"]["plan"];
    let hash = plan["hash"].as_str().context("a hash")?.to_owned();
    let message = ready["message"].as_str().unwrap_or_default();
    for word in [
        format!("vdoctl approve {hash}"),
        format!("vdo.vmware.com/approve={hash}"),
        format!("of {} steps", plan["steps"]),
    ] {
        ensure!(message.contains(&word), "{word} is not in {message}");
    }
    ensure!(
        plan["approved"] == false && config["status"]["health"] == "Blocked",
        "{}",
        config["status"]
    );
    ensure!(condition(&config, "Stalled")["status"] == "True" && condition(&config, "Reconciling")["status"] == "False");
    let written = written(bed, mark).await?;
    ensure!(written.is_empty(), "while it waited the operator wrote:\n{written}");
    Ok(hash)
}

/// The message names the versions that the plan would change.
async fn says(bed: &Bed, versions: &str) -> Result<()> {
    let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
    let message = ready["message"].as_str().unwrap_or_default();
    ensure!(message.contains(versions), "{versions} is not in {message}");
    Ok(())
}

/// The hash of the plan that waits for approval.
async fn waiting(bed: &Bed) -> Result<String> {
    bed.until_reason("Ready", "ApprovalRequired").await?;
    let status = bed.status().await?;
    Ok(status["plan"]["hash"].as_str().context("a hash")?.to_owned())
}

fn approve(bed: &Bed, hash: &str) -> Result<()> {
    let (code, _, err) = bed.vdoctl(&["approve", hash])?;
    assert_eq!(code, 0, "{err}");
    Ok(())
}

/// Applies a specification, approves its plan and waits until it is carried out; gives the hash.
async fn approved(bed: &Bed, spec: Value) -> Result<String> {
    bed.apply(&bed.config(spec)).await?;
    let hash = waiting(bed).await?;
    approve(bed, &hash)?;
    bed.until_ready().await?;
    Ok(hash)
}

/// Another plan needs another approval: the person looks at the first one and approves it too late.
#[test]
#[ignore = "long"]
fn approval_manual_plan_waits_and_stale_hash_is_rejected() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(manual("3.6.3"))).await?;
        let first = waits(bed, mark).await?;
        ensure!(bed.owned().await?.is_empty(), "something was installed without an approval");
        ensure!(waits(bed, mark).await? == first, "the hash does not last");
        says(bed, "(CPI 1.34.0, CSI 3.6.3)").await?;

        bed.apply(&bed.config(manual("3.8.0"))).await?;
        let second = until("another plan", PATIENCE, async || {
            let hash = waits(bed, mark).await?;
            Ok(if hash == first { Probe::not_yet(hash) } else { Probe::Ready(hash) })
        })
        .await?;
        let (code, _, err) = bed.vdoctl(&["approve", &first])?;
        assert_eq!(code, 4, "{err}");
        assert!(err.contains(&second), "{err}");
        let (code, _, err) = bed.vdoctl(&["approve"])?;
        assert_eq!(code, 4, "without a hash it only says which one: {err}");
        let (code, out, err) = bed.vdoctl(&["plan"])?;
        assert_eq!(code, 1);
        assert!(
            out.contains(&second) && out.contains("not approved") && err.contains(&format!("vdoctl approve {second}")),
            "{out}{err}"
        );
        // Nothing was written, so nothing is uninstalled.
        bed.delete(VDO, "VDOConfig", NS, "vdo").await
    })
}

/// The operator is killed in the middle of what was approved: the next one goes on without asking.
#[test]
#[ignore = "long"]
fn approval_given_survives_operator_restart() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.apply(&bed.config(manual("3.8.0"))).await?;
        approve(bed, &waiting(bed).await?)?;
        until("the first objects to be there", PATIENCE, async || {
            Ok(Probe::when(bed.owned().await?.len() > 3, "not yet"))
        })
        .await?;
        bed.kill_operator();
        bed.start_operator().await?;
        bed.until_ready().await?;
        assert_eq!(bed.status().await?["plan"], Value::Null, "nothing is left to do");
        Ok(())
    })
}

#[test]
fn approval_drift_of_approved_state_is_repaired_without_another() -> Result<()> {
    INSTALLED.run(async |bed| {
        approved(bed, manual_with_level("3.8.0", 4)).await?;
        let map = "internal-feature-states.csi.vsphere.vmware.com";
        bed.merge("v1", "ConfigMap", CSI_NS, map, json!({"data": {"trigger-csi-fullsync": "true"}}))
            .await?;
        bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        until("an edit and a deletion to be undone", PATIENCE, async || {
            let data = bed.get("v1", "ConfigMap", CSI_NS, map).await?["data"].clone();
            let service = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
            Ok(Probe::when(
                data["trigger-csi-fullsync"] == "false" && service != Value::Null,
                &data,
            ))
        })
        .await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A setting waits; what runs stays, and is repaired meanwhile.
#[test]
fn approval_waiting_plan_leaves_approved_state_repaired() -> Result<()> {
    INSTALLED.run(async |bed| {
        approved(bed, manual_with_level("3.8.0", 4)).await?;
        bed.apply(&bed.config(manual_with_level("3.8.0", 5))).await?;
        bed.until_reason("Ready", "ApprovalRequired").await?;
        let (kind, name) = ("DaemonSet", "vsphere-csi-node-windows");
        bed.delete("apps/v1", kind, CSI_NS, name).await?;
        until("what was approved to be kept while the next plan waits", PATIENCE, async || {
            Ok(Probe::when(
                bed.get("apps/v1", kind, CSI_NS, name).await? != Value::Null,
                "not there",
            ))
        })
        .await?;
        bed.until_reason("Ready", "ApprovalRequired").await?;
        Ok(())
    })
}

/// Another version waits, and `kubectl annotate` approves as well. The way back needs an approval of its own.
#[test]
#[ignore = "long"]
fn approval_of_another_version_by_annotation_is_carried_out() -> Result<()> {
    INSTALLED.run(async |bed| {
        let old = approved(bed, manual_with_level("3.8.0", 4)).await?;
        bed.apply(&bed.config(manual("3.6.3"))).await?;
        let hash = waiting(bed).await?;
        assert_ne!(hash, old);
        says(bed, "(CSI 3.8.0 → 3.6.3)").await?;
        let image = async || {
            let found = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
            anyhow::Ok(found["spec"]["template"].to_string())
        };
        assert!(image().await?.contains("driver:v3.8.0"));
        let annotation = json!({"metadata": {"annotations": {"vdo.vmware.com/approve": hash}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", annotation).await?;
        until("the approved version", PATIENCE, async || {
            Ok(Probe::when(image().await?.contains("driver:v3.6.3"), "still the other"))
        })
        .await?;
        bed.until_ready().await?;
        // The first state was approved once, but not from here.
        approved(bed, manual_with_level("3.8.0", 4)).await?;
        assert!(image().await?.contains("driver:v3.8.0"));
        Ok(())
    })
}

/// The webhook's certificate is drawn by chance: every look at the plan gives the same hash, which is the operator's own, and a new
/// certificate of an approved state needs no approval.
#[test]
#[ignore = "long"]
fn approval_drawn_certificate_is_no_other_plan() -> Result<()> {
    const SECRET: &str = "vdo-webhook-certificate";
    let spec = |storage: Value| json!({"approval": "Manual", "cloudProvider": {}, "storageProvider": storage});
    let look = |bed: &Bed| -> Result<String> {
        let (code, out, err) = bed.vdoctl(&["plan", "-o", "json"])?;
        ensure!(code == 1, "{out}{err}");
        let plan: Value = serde_json::from_str(&out)?;
        let hash = plan["hash"].as_str().with_context(|| format!("no hash in {out}"))?;
        Ok(hash.to_owned())
    };
    INSTALLED.run(async |bed| {
        bed.kill_operator();
        // One that a test before had leaves its state behind.
        bed.delete("v1", "Secret", NS, SECRET).await?;
        bed.apply(&bed.config(spec(json!({"webhook": true})))).await?;
        ensure!(bed.get("v1", "Secret", NS, SECRET).await? == Value::Null);
        let first = look(bed)?;
        assert_eq!(look(bed)?, first, "two looks at one plan");
        bed.start_operator().await?;
        assert_eq!(waiting(bed).await?, first, "the operator has another plan than vdoctl");
        assert_eq!(look(bed)?, first, "with the operator's certificate");
        approve(bed, &first)?;
        until("the webhook", PATIENCE, async || {
            let now = bundle(bed).await?;
            Ok(Probe::when(now.is_string(), now))
        })
        .await?;
        bed.until_ready().await?;

        let before = bundle(bed).await?;
        bed.delete("v1", "Secret", NS, SECRET).await?;
        until("another certificate, without an approval", PATIENCE, async || {
            let now = bundle(bed).await?;
            Ok(Probe::when(now.is_string() && now != before, &bed.status().await?["conditions"]))
        })
        .await?;
        bed.until_ready().await?;
        // Something that is decided is another plan.
        let decided = json!({"webhook": true, "values": {"webhook": {"failurePolicy": "Ignore"}}});
        bed.apply(&bed.config(spec(decided))).await?;
        bed.until_reason("Ready", "ApprovalRequired").await?;
        Ok(())
    })
}

/// The authorities of the webhook that the API server trusts.
async fn bundle(bed: &Bed) -> Result<Value> {
    let name = "validation.csi.vsphere.vmware.com";
    let live = bed
        .get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", name)
        .await?;
    Ok(live["webhooks"][0]["clientConfig"]["caBundle"].clone())
}
