// SPDX-License-Identifier: Apache-2.0
//! `vdoctl delete` on a real control plane: with an operator, without one, after the wrong uninstall, and interrupted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod asked;
mod page;
mod released;
mod trap;
mod volumes;
mod whole;

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use crate::uninstall::volumes::volume;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vdo_testbed::{Mark, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI_NS: &str = "vmware-system-csi";
const CRD: &str = "apiextensions.k8s.io/v1";
const DEFINITIONS: [&str; 3] = ["vdoconfigs", "vspherecloudconfigs", "compatibilityconfigs"];

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file)
}

/// Applies deploy/ with the operator as a process, and the samples; then the drivers are installed.
pub async fn install(bed: &mut Bed) -> Result<()> {
    apply_deploy(bed).await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    // As vdoctl deploy does it.
    let ours = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "vdoctl"}}});
    bed.merge("v1", "Secret", NS, "vc1-credentials", ours).await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.apply(&bed.config(json!({}))).await?;
    bed.start_operator().await?;
    bed.until_ready().await?;
    Ok(())
}

async fn apply_deploy(bed: &mut Bed) -> Result<()> {
    bed.apply_deploy().await?;
    bed.cluster.apply_file(deploy("network-policy.yaml")).await?;
    Ok(())
}

/// `vdoctl delete` without a terminal: exit code, stdout, stderr.
pub fn delete(bed: &Bed, args: &[&str]) -> Result<(i32, String, String)> {
    delete_as(&bed.cluster.kubeconfig(), args)
}

fn delete_as(kubeconfig: &Path, args: &[&str]) -> Result<(i32, String, String)> {
    let output = Command::new(vdo_testbed::vdoctl())
        .arg("delete")
        .args(args)
        .env("VDO_KUBECONFIG", kubeconfig)
        .env("VDO_TIMEOUT", "90s")
        .stdin(Stdio::null())
        .output()?;
    let text = |bytes| String::from_utf8(bytes);
    let (code, out, err) = (output.status.code().context("killed")?, text(output.stdout)?, text(output.stderr)?);
    println!("vdoctl delete {args:?}: {code}\n{out}{err}");
    Ok((code, out, err))
}

fn ensure_says(text: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    Ok(())
}

async fn is_there(bed: &Bed, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<bool> {
    match bed.get(api_version, kind, namespace, name).await {
        Ok(found) => Ok(found != Value::Null),
        // A kind without a definition is served no more.
        Err(error) if format!("{error:#}").contains("404") => Ok(false),
        Err(error) => Err(error),
    }
}

async fn until_gone(bed: &Bed, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<()> {
    until(&format!("{kind} {name} to be gone"), PATIENCE, async || {
        let there = is_there(bed, api_version, kind, namespace, name).await?;
        Ok(Probe::when(!there, "it is there"))
    })
    .await
}

/// Nothing that deploy/ or the operator created is left.
async fn ensure_nothing_is_left(bed: &Bed) -> Result<()> {
    for definition in DEFINITIONS {
        let name = format!("{definition}.vdo.vmware.com");
        ensure!(!is_there(bed, CRD, "CustomResourceDefinition", "", &name).await?, "{name} is left");
    }
    for namespace in [NS, CSI_NS] {
        ensure!(
            !is_there(bed, "v1", "Namespace", "", namespace).await?,
            "Namespace {namespace} is left"
        );
    }
    let owned: Vec<String> = bed.owned().await?.iter().map(crate::common::name).collect();
    ensure!(owned.is_empty(), "left: {owned:?}");
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        let left = is_there(bed, "rbac.authorization.k8s.io/v1", kind, "", "vdo-operator").await?;
        ensure!(!left, "{kind} vdo-operator is left");
    }
    Ok(())
}

/// Everything that keeps it from beginning, on drivers that go on as if nothing had been asked.
#[test]
fn delete_refused_removes_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let (code, out, err) = delete(bed, &[])?;
        ensure!(code == 4, "{code} without a terminal");
        ensure_says(
            &out,
            &[
                "VDOConfig vmware-system-vdo/vdo",
                "driver CSI",
                "CustomResourceDefinition",
                "cluster ",
            ],
        )?;
        ensure_says(&err, &["no terminal", "--yes"])?;

        let (code, out, _) = delete(bed, &["--dry-run=server"])?;
        ensure!(code == 0 && out.contains("VDOConfig vmware-system-vdo/vdo"), "{code}\n{out}");

        for i in 0..12 {
            bed.apply(&volume(&format!("pv-{i:02}"))).await?;
        }
        for args in [&["--yes"][..], &["--yes", "--drivers-only"]] {
            let (code, _, err) = delete(bed, args)?;
            ensure!(code == 4, "{code} with volumes");
            ensure_says(
                &err,
                &[
                    "12 volumes or snapshots",
                    "nothing was removed",
                    "pv-00 of claim shop/data",
                    "and 2 more",
                    "--keep-drivers",
                    "annotate",
                ],
            )?;
        }
        let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
        bed.apply(&other).await?;
        let mut foreign = bed.connection("theirs");
        foreign["metadata"]["namespace"] = "other".into();
        bed.apply(&foreign).await?;
        let (code, _, err) = delete(bed, &["--yes", "--keep-drivers"])?;
        ensure!(code == 4, "{code} with objects elsewhere");
        ensure_says(&err, &["VsphereCloudConfig", "other/theirs"])?;
        ensure_nothing_was_removed(bed, mark).await
    })
}

/// Since then nothing was deleted, nor begun to be.
async fn ensure_nothing_was_removed(bed: &Bed, mark: Mark) -> Result<()> {
    let deleted = bed.deleted(mark).await?;
    ensure!(deleted.is_empty(), "something was deleted:\n{deleted}");
    let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
    ensure!(
        config["metadata"]["deletionTimestamp"] == Value::Null,
        "the VDOConfig is being deleted"
    );
    Ok(())
}

/// What the caller may not do is named in one error, before anything is done.
#[test]
fn delete_without_rights_names_all_that_are_missing() -> Result<()> {
    INSTALLED.run(async |bed| {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "default"}});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["vdo.vmware.com"], "resources": ["*"], "verbs": ["*"]}]});
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]});
        for object in [&account, &role, &binding] {
            bed.apply(object).await?;
        }
        let mark = bed.cluster.audit().mark().await?;
        let reader = bed.cluster.service_account_kubeconfig("default", "reader").await?;
        let (code, _, err) = delete_as(&reader, &["--yes"])?;
        ensure!(code == 4, "{code}");
        ensure_says(
            &err,
            &[
                "nothing was removed",
                "delete CustomResourceDefinition",
                "create Lease",
                "with these rules",
            ],
        )?;
        ensure_nothing_was_removed(bed, mark).await
    })
}

#[test]
#[ignore = "long"]
fn delete_drivers_only_leaves_operator_and_connections() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (code, out, err) = delete(bed, &["--yes", "--drivers-only", "-o", "json"])?;
        ensure!(code == 0, "{code}");
        ensure_says(&err, &["the drivers are removed; the operator stays"])?;
        let lines: Vec<Value> = out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
        ensure!(kinds.first() == Some(&"Progress") && kinds.last() == Some(&"Delete"), "{kinds:?}");
        ensure!(lines.iter().all(|line| line["apiVersion"] == "vdoctl/v1"), "{out}");
        ensure!(!is_there(bed, VDO, "VDOConfig", NS, "vdo").await?, "the VDOConfig is left");
        ensure!(is_there(bed, VDO, "VsphereCloudConfig", NS, "vc1").await?, "the connection is gone");
        ensure!(bed.owned().await?.is_empty(), "something of the drivers is left");
        ensure!(bed.operator_runs(), "the operator ended");
        Ok(())
    })
}
