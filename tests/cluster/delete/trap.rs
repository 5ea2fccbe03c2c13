// SPDX-License-Identifier: Apache-2.0
//! The wrong uninstall: the operator's manifests are deleted while there is a VDOConfig.

use super::{CRD, DEFINITIONS, VDO, apply_deploy, delete, deploy, ensure_nothing_is_left, ensure_says, install, is_there};
use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use vdo_testbed::{Probe, until};

/// `kubectl delete` of these manifests, which asks for the deletion of everything in them and of the operator's pod with it.
async fn kubectl_delete(bed: &mut Bed, with_namespace: bool) -> Result<()> {
    let mut objects = Vec::new();
    let apart = with_namespace.then_some("namespace.yaml");
    for file in ["drivers-rbac.yaml", "rbac.yaml", "network-policy.yaml"].into_iter().chain(apart) {
        objects.extend(bed.cluster.apply_file(deploy(file)).await?);
    }
    bed.kill_operator();
    for definition in DEFINITIONS {
        bed.delete(CRD, "CustomResourceDefinition", "", &format!("{definition}.vdo.vmware.com"))
            .await?;
    }
    for object in objects {
        let types = object.types.clone().context("a type")?;
        let (namespace, name) = (
            object.metadata.namespace.unwrap_or_default(),
            object.metadata.name.unwrap_or_default(),
        );
        bed.delete(&types.api_version, &types.kind, &namespace, &name).await?;
    }
    until("the VDOConfig to be terminating", PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let connection = is_there(bed, VDO, "VsphereCloudConfig", NS, "vc1").await?;
        let there = config["metadata"]["deletionTimestamp"].is_string() && !connection;
        Ok(Probe::when(there, &config["metadata"]))
    })
    .await
}

/// Nothing but the objects that are stuck is left of the operator: definitions and both namespaces are terminating.
#[test]
#[ignore = "long"]
fn delete_after_kubectl_delete_of_everything_finishes_without_operator() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        kubectl_delete(bed, true).await?;
        // The Lease of a killed operator runs out by itself.
        until("status to explain the situation", PATIENCE, async || {
            let (code, out, err) = bed.vdoctl(&["status"])?;
            let explained = out.contains("is being deleted, and no operator runs to finish the deletion") && out.contains("vdoctl delete");
            Ok(Probe::when(code == 1 && explained, format!("{code}\n{out}{err}")))
        })
        .await?;
        let (code, out, err) = bed.vdoctl(&["doctor"])?;
        ensure!(code == 1, "{code} {out}{err}");
        ensure_says(&out, &["no operator runs to finish the deletion", "Run vdoctl delete"])?;
        for wrong in ["recreated", "not installed yet", "Choose a driver version"] {
            ensure!(!out.contains(wrong) && !err.contains(wrong), "{wrong:?} is in:\n{out}{err}");
        }
        let (code, out, err) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code}");
        ensure_says(&out, &["vdoctl removes the drivers itself"])?;
        ensure_says(&err, &["VDO is removed"])?;
        ensure_nothing_is_left(bed).await
    })
}

/// The manifests applied again bring an operator that finds its VDOConfig being deleted, and ends that; its definitions are gone then, until
/// they are applied once more.
#[test]
#[ignore = "long"]
fn operator_applied_again_finishes_deletion_and_waits_for_definitions() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        kubectl_delete(bed, false).await?;
        apply_without_connections(bed).await?;
        bed.start_operator().await?;
        super::until_gone(bed, VDO, "VDOConfig", NS, "vdo").await?;
        let definition = format!("{}.vdo.vmware.com", DEFINITIONS[0]);
        super::until_gone(bed, CRD, "CustomResourceDefinition", "", &definition).await?;
        ensure!(bed.owned().await?.is_empty(), "something of the drivers is left");
        ensure!(bed.operator_runs(), "the operator ended with its definitions");
        apply_deploy(bed).await?;
        bed.apply_samples().await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A definition that is being deleted never becomes established again, so it is not waited for.
async fn apply_without_connections(bed: &mut Bed) -> Result<()> {
    bed.grant().await?;
    bed.cluster.apply_file(deploy("network-policy.yaml")).await?;
    bed.cluster
        .apply_file(deploy("crds/vdo.vmware.com_vspherecloudconfigs.yaml"))
        .await?;
    bed.enrol().await?;
    let definition = bed.get(CRD, "CustomResourceDefinition", "", "vdoconfigs.vdo.vmware.com").await?;
    ensure!(
        definition["metadata"]["deletionTimestamp"] != Value::Null,
        "the definition is not terminating"
    );
    Ok(())
}
