// SPDX-License-Identifier: Apache-2.0
//! One judgement: what `status` knows, every verb that waits or hands something to the operator knows, too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition, interrupt};
use crate::deploy::administrator;
use crate::fixture::INSTALLED;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
/// Much less than the time that these waits are given.
const EARLY: Duration = Duration::from_secs(45);

/// Runs vdoctl, which ends with this code, shows these words and not what would be wrong.
fn says(bed: &Bed, code: i32, args: &[&str], words: &[&str]) -> Result<String> {
    let (found, out, err) = bed.vdoctl(args)?;
    let text = out + &err;
    ensure!(found == code, "vdoctl {args:?}: {found} instead of {code}\n{text}");
    for word in words {
        ensure!(text.contains(word), "vdoctl {args:?}: {word:?} is not in\n{text}");
    }
    if code != 0 {
        ensure!(!text.contains("continues by itself"), "vdoctl {args:?}:\n{text}");
    }
    for twice in ["CPI 1.34.0: CPI", "CSI 3.8.0: CSI", "vsphere-csi: vsphere-csi", "CSI: CSI"] {
        ensure!(!text.contains(twice), "vdoctl {args:?}: {twice:?} is in\n{text}");
    }
    Ok(text)
}

/// The same for a wait that has to end long before its time.
fn ends_early(bed: &Bed, args: &[&str], words: &[&str]) -> Result<()> {
    let begun = Instant::now();
    says(bed, 7, &[args, &["--timeout", "4m"]].concat(), words)?;
    ensure!(begun.elapsed() < EARLY, "{args:?} took {:?}", begun.elapsed());
    Ok(())
}

/// The operator's own Deployment, with no pods asked for.
async fn scale_to_zero(bed: &Bed) -> Result<()> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/operator.yaml");
    let mut all = vdo_api::yaml::load_all(&std::fs::read_to_string(file)?)?;
    let deployment = all
        .iter_mut()
        .find(|object| object["kind"] == "Deployment")
        .context("the operator's Deployment")?;
    deployment["spec"]["replicas"] = 0.into();
    bed.apply(deployment).await
}

const START: &str = "kubectl -n vmware-system-vdo scale deployment vdo-operator --replicas=1";

/// The operator is scaled to 0 and the CSI controller deleted: the last status says that all is well, and nothing believes it.
#[test]
#[ignore = "long"]
fn verbs_without_an_operator_say_so_and_how_to_start_it() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.kill_operator();
        scale_to_zero(bed).await?;
        bed.delete("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
            .await?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(condition(&config, "Ready")["status"] == "True", "{config}");
        // The Lease of the operator that was killed is still held.
        says(bed, 7, &["wait", "--timeout", "5s"], &["is scaled to 0"])?;
        says(
            bed,
            7,
            &["wait", "--for", "condition=Ready", "--timeout", "5s"],
            &["is scaled to 0"],
        )?;
        says(bed, 1, &["status"], &["operator not running", START])?;
        // It is gone.
        bed.delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
        ends_early(bed, &["wait"], &["not ready", "is scaled to 0", START])?;
        ends_early(bed, &["wait", "--for", "StorageReady"], &["not reached", "is scaled to 0", START])?;
        says(
            bed,
            1,
            &["reconcile"],
            &["no operator reconciles VDOConfig", "is scaled to 0", START],
        )?;
        let woken = bed.get(VDO, "VDOConfig", NS, "vdo").await?["metadata"]["annotations"]["vdo.vmware.com/reconcile-at"].clone();
        ensure!(woken.is_null(), "{woken}");
        says(bed, 1, &["resume"], &["is managed already", "no operator runs", START])?;
        says(
            bed,
            0,
            &["configure", "drivers", "--set", "updatePolicy=Disabled", "--ignore-checks"],
            &["was changed", "The change has no effect yet", START],
        )?;
        let (_, out, _) = bed.vdoctl(&["status", "-o", "json"])?;
        let status: Value = serde_json::from_str(&out)?;
        ensure!(
            status["judgement"]["state"] == "person" && status["judgement"]["remedy"].as_str().unwrap_or_default().contains(START),
            "{}",
            status["judgement"]
        );
        bed.delete("apps/v1", "Deployment", NS, "vdo-operator").await
    })
}

/// Until the status speaks of the newest specification, with this reason.
async fn until_reported(bed: &Bed, reason: &str) -> Result<Value> {
    until(&format!("Ready to have the reason {reason}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        let ready = condition(&config, "Ready");
        Ok(match current && ready["reason"] == reason {
            true => Probe::Ready(config),
            false => Probe::not_yet(&ready),
        })
    })
    .await
}

#[test]
#[ignore = "long"]
fn waits_end_early_where_management_is_paused() -> Result<()> {
    INSTALLED.run(async |bed| {
        says(bed, 0, &["pause"], &["is paused"])?;
        says(bed, 0, &["wait", "--timeout", "1m"], &["installed and healthy"])?;
        bed.merge(
            VDO,
            "VDOConfig",
            NS,
            "vdo",
            json!({"spec": {"cloudProvider": {"values": {"logLevel": 6}}, "storageProvider": {}}}),
        )
        .await?;
        until_reported(bed, "Paused").await?;
        ends_early(bed, &["wait"], &["management is paused", "vdoctl resume"])?;
        ends_early(bed, &["wait", "--for", "Ready"], &["management is paused", "vdoctl resume"])?;
        says(
            bed,
            0,
            &["reconcile"],
            &["the operator reconciles", "management is paused", "vdoctl resume"],
        )?;
        says(bed, 0, &["status"], &["vdoctl resume"])?;
        // What is reported all the while can still be waited for.
        says(
            bed,
            0,
            &["wait", "--for", "ConnectionsReady", "--timeout", "1m"],
            &["ConnectionsReady is True"],
        )?;
        let text = says(bed, 0, &["resume"], &["is managed again", "vdoctl status --watch"])?;
        ensure!(!text.contains("But "), "{text}");
        says(bed, 0, &["wait", "--timeout", "4m"], &["installed and healthy"])?;
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn waits_end_early_where_a_plan_waits_for_approval() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.merge(
            VDO,
            "VDOConfig",
            NS,
            "vdo",
            json!({"spec": {"approval": "Manual", "cloudProvider": {"values": {"logLevel": 6}}, "storageProvider": {}}}),
        )
        .await?;
        let config = until_reported(bed, "ApprovalRequired").await?;
        let approve = format!("vdoctl approve {}", config["status"]["plan"]["hash"].as_str().context("a hash")?);
        ends_early(bed, &["wait"], &["waits for approval of plan", &approve])?;
        says(bed, 1, &["status"], &[&approve])?;
        says(bed, 0, &["reconcile"], &[&approve])?;
        let hash = approve.rsplit(' ').next().context("a hash")?;
        let text = says(bed, 0, &["approve", hash], &["is approved", "vdoctl status --watch"])?;
        ensure!(!text.contains("But "), "{text}");
        says(bed, 0, &["wait", "--timeout", "4m"], &["installed and healthy"])?;
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn waits_end_early_where_a_pin_does_not_fit() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (version, reason) in [("2.7.0", "IncompatiblePin"), ("9.9.9", "UnknownVersion")] {
            bed.merge(
                VDO,
                "VDOConfig",
                NS,
                "vdo",
                json!({"spec": {"cloudProvider": {}, "storageProvider": {"version": version}}}),
            )
            .await?;
            until_reported(bed, reason).await?;
            let lift = "vdoctl configure drivers --set storageProvider.version=null";
            let why = format!("vdoctl matrix why-not csi {version}");
            ends_early(bed, &["wait"], &[version, lift, &why])?;
            says(bed, 1, &["status"], &[lift, &why])?;
            says(bed, 4, &["plan"], &[version, "CSI cannot be planned"])?;
        }
        // What it names does it.
        says(
            bed,
            0,
            &["configure", "drivers", "--set", "storageProvider.version=null"],
            &["was changed"],
        )?;
        says(bed, 0, &["wait", "--timeout", "4m"], &["installed and healthy"])?;
        Ok(())
    })
}

/// Ctrl-C while a verb writes: the write that is under way comes to its end, and is said.
#[test]
#[ignore = "long"]
fn verb_interrupted_says_what_was_written() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (proxy, through) = administrator(bed).await?;
        let interrupted = async |held: Option<usize>, words: &[&str]| -> Result<String> {
            let mut command = Command::new(vdo_testbed::vdoctl());
            let output = interrupt::interrupted(&proxy, held, command.args(["--kubeconfig", &through]).args(words)).await?;
            let said = String::from_utf8(output.stderr)?;
            ensure!(output.status.code() == Some(130), "{}: {said}", output.status);
            Ok(said)
        };
        let level = |level: &str| format!("storageProvider.values.logLevel={level}");
        let said = interrupted(Some(1), &["configure", "drivers", "--set", &level("DEVELOPMENT")]).await?;
        ensure!(
            said.contains("interrupted: 1 object written (VDOConfig)") && said.contains("run the same command again"),
            "{said}"
        );
        let spec = bed.get(VDO, "VDOConfig", NS, "vdo").await?["spec"].clone();
        ensure!(spec["storageProvider"]["values"]["logLevel"] == "DEVELOPMENT", "{spec}");
        // While it only waits, the write is made long ago.
        scale_to_zero(bed).await?;
        let said = interrupted(None, &["pause", "--wait"]).await?;
        ensure!(said.contains("interrupted: ") && said.contains("VDOConfig"), "{said}");
        Ok(())
    })
}

/// What `--wait` waits for has happened when the verb ends.
#[test]
#[ignore = "long"]
fn verbs_with_wait_end_when_the_operator_has_acted() -> Result<()> {
    INSTALLED.run(async |bed| {
        let health = async || anyhow::Ok(bed.get(VDO, "VDOConfig", NS, "vdo").await?["status"].clone());
        says(
            bed,
            0,
            &["pause", "--wait"],
            &["is paused", "the operator has acted on the request"],
        )?;
        let status = health().await?;
        ensure!(
            status["health"] == "Paused" && status["lastHandledReconcileAt"].is_string(),
            "{status}"
        );
        says(bed, 0, &["resume", "--wait"], &["is managed again", "healthy"])?;
        ensure!(health().await?["health"] == "Healthy", "{}", health().await?);
        let set = [
            "configure",
            "drivers",
            "--set",
            "storageProvider.values.logLevel=DEVELOPMENT",
            "--wait",
        ];
        says(bed, 0, &set, &["healthy"])?;
        let controller = bed
            .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
            .await?;
        ensure!(controller.to_string().contains("DEVELOPMENT"), "{controller}");
        says(bed, 0, &["rollback", "csi", "--wait"], &["is rolled back to revision", "healthy"])?;
        let controller = bed
            .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
            .await?;
        ensure!(!controller.to_string().contains("DEVELOPMENT"), "{controller}");
        says(bed, 0, &["rollback", "csi", "--lift", "--wait"], &["healthy"])?;
        let dry = [&set[..], &["--dry-run"]].concat();
        says(bed, 2, &dry, &["--dry-run"])?;
        Ok(())
    })
}
