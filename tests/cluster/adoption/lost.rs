// SPDX-License-Identifier: Apache-2.0
//! A VDOConfig that says less than the files of drivers that are there: nothing is written before a person approves the loss.

use super::handed_back::{hand_back, preflight};
use super::{Tool, kubectl, reference, running};
use crate::common::Bed;
use crate::fixture::OPERATOR;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const MORE: &str = "\n[NetPermissions \"A\"]\nips = \"10.20.0.0/16\"\npermissions = \"READ_WRITE\"\n\
                    [VirtualCenter \"vc2.example.com\"]\nuser = \"u\"\npassword = \"hunter2\"\ninsecure-flag = \"true\"\n";
const LOST: [&str; 2] = ["vCenter vc2.example.com", "spec.storageProvider.fileVolumes.netPermissions.0"];

async fn conf(bed: &Bed) -> Result<String> {
    let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
    let file = STANDARD.decode(secret["data"]["csi-vsphere.conf"].as_str().context("the file")?)?;
    Ok(String::from_utf8(file)?)
}

/// Adds lines to the file of the CSI driver.
fn with_more(manifests: &mut [Value], more: &str) -> Result<()> {
    let is_configuration = |object: &&mut Value| object["metadata"]["name"] == "vsphere-config-secret";
    for secret in manifests.iter_mut().filter(is_configuration) {
        let file = STANDARD.decode(secret["data"]["csi-vsphere.conf"].as_str().context("the file")?)?;
        let file = format!("{}{more}", String::from_utf8(file)?);
        secret["data"]["csi-vsphere.conf"] = STANDARD.encode(file).into();
    }
    Ok(())
}

#[test]
#[ignore = "long"]
fn adoption_that_loses_settings_waits_for_approval() -> Result<()> {
    OPERATOR.run(async |bed| {
        let mut manifests = reference(bed).await?.manifests;
        with_more(&mut manifests, MORE)?;
        Tool::Kubectl.install(bed, &manifests).await?;
        let before = running(bed).await?;

        let (code, checks) = preflight(bed)?;
        let checks = checks.to_string();
        ensure!(code == 1 && LOST.iter().all(|lost| checks.contains(lost)), "{code} {checks}");
        ensure!(checks.contains("vdoctl adopt") && !checks.contains("hunter2"), "{checks}");

        bed.apply(&bed.config(json!({}))).await?;
        let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        ensure!(
            LOST.iter().all(|lost| message.contains(lost)) && !message.contains("hunter2"),
            "{message}"
        );
        ensure!(conf(bed).await?.ends_with(MORE), "the file was changed");
        let (_, plan, err) = bed.vdoctl(&["plan"])?;
        ensure!(format!("{plan}{err}").contains(LOST[0]), "{plan} {err}");

        let (code, _, err) = bed.vdoctl(&["configure", "drivers", "--set", "approval=Manual"])?;
        ensure!(
            code == 4 && err.contains(LOST[0]) && err.contains("vdoctl adopt --write"),
            "{code} {err}"
        );

        let status: Value = bed.status().await?;
        let hash = status["plan"]["hash"].as_str().context("a hash")?;
        let (code, _, err) = bed.vdoctl(&["approve", hash])?;
        ensure!(code == 0, "{code} {err}");
        bed.until_ready().await?;
        ensure!(!conf(bed).await?.contains("vc2.example.com"), "{}", conf(bed).await?);
        ensure!(running(bed).await? == before, "pods were restarted");
        hand_back(bed, &manifests).await
    })
}

/// The file is read by a workload of another owner as well, which would find another content in it.
#[test]
#[ignore = "long"]
fn adoption_that_changes_what_another_workload_mounts_waits_for_approval() -> Result<()> {
    const SAID: &str =
        "the content of Secret vmware-system-csi/vsphere-config-secret would change, and Deployment vmware-system-csi/monitor uses it";
    OPERATOR.run(async |bed| {
        let mut manifests = reference(bed).await?.manifests;
        with_more(&mut manifests, "; a comment, which is no setting\n")?;
        Tool::Kubectl.install(bed, &manifests).await?;
        let labels = json!({"app": "monitor"});
        let monitor = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "monitor", "namespace": "vmware-system-csi"},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{"name": "monitor", "image": "example.com/monitor"}],
                "volumes": [{"name": "file", "secret": {"secretName": "vsphere-config-secret"}}]}}}});
        bed.apply(&monitor).await?;
        let (code, checks) = preflight(bed)?;
        ensure!(code == 1 && checks.to_string().contains(SAID), "{code} {checks}");

        bed.apply(&bed.config(json!({}))).await?;
        let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
        ensure!(ready["message"].as_str().is_some_and(|message| message.contains(SAID)), "{ready}");
        ensure!(conf(bed).await?.contains("; a comment"), "the file was changed");
        let status: Value = bed.status().await?;
        let (code, _, err) = bed.vdoctl(&["approve", status["plan"]["hash"].as_str().context("a hash")?])?;
        ensure!(code == 0, "{code} {err}");
        bed.until_ready().await?;
        ensure!(!conf(bed).await?.contains("; a comment"), "{}", conf(bed).await?);
        kubectl(bed, &["delete", "-f", "-"], &[monitor])?;
        hand_back(bed, &manifests).await
    })
}
