// SPDX-License-Identifier: Apache-2.0
//! A newer operator over an older one, and back: no driver is touched, and what only the newer one knows is not lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{BARE, INSTALLED, written};
use crate::install::until_at_rest;
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vdo_testbed::{Mark, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const MAP: &str = "vdo-state";
const TOOLING: &str = "applyset.kubernetes.io/tooling";
const CSI_NS: &str = "vmware-system-csi";
const EXTENSIONS: &str = "apiextensions.k8s.io/v1";
const DEFINITION: &str = "vdoconfigs.vdo.vmware.com";

async fn change_map(bed: &Bed, change: Value) -> Result<()> {
    bed.merge_state(change).await
}

/// What the operator wrote since then, but for the record of its own.
async fn ensure_untouched(bed: &Bed, since: Mark) -> Result<()> {
    let writes = written(bed, since).await?.only(|entry| entry.name != MAP);
    ensure!(writes.is_empty(), "the operator wrote:\n{writes}");
    Ok(())
}

/// Deletes a driver's object, and gives the audit mark from before.
async fn damage(bed: &Bed) -> Result<Mark> {
    let mark = bed.cluster.audit().mark().await?;
    bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
    Ok(mark)
}

async fn until_repaired(bed: &Bed) -> Result<()> {
    until("the deleted object to be back", PATIENCE, async || {
        let service = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        Ok(Probe::when(service != Value::Null, "not there"))
    })
    .await?;
    bed.until_ready().await.map(|_| ())
}

/// The record of an operator of another version, which renders the same: nothing of the drivers is written, and the record only with
/// the next change.
#[test]
fn operator_of_another_version_writes_no_driver_object() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (tooling, schema) in [("vdo/v0.0.1", Value::Null), ("vdo/v99.0.0", json!("1"))] {
            bed.kill_operator();
            let change = json!({"metadata": {"annotations": {TOOLING: tooling}}, "data": {"schema": schema}});
            change_map(bed, change).await?;
            let before = bed.owned().await?;
            let mark = bed.cluster.audit().mark().await?;
            bed.start_operator().await?;
            until("a reconcile", PATIENCE, async || {
                Ok(Probe::when(bed.reconciles().await? > 0, "none"))
            })
            .await?;
            bed.until_ready().await?;
            until_at_rest(bed).await?;
            ensure_untouched(bed, mark).await?;
            ensure!(bed.owned().await? == before, "{tooling}: objects have changed");
        }
        // The next change of the record leaves it in this version's form.
        let values = json!({"spec": {"cloudProvider": {}, "storageProvider": {"values": {"snapshots": {"enabled": false}}}}});
        let uids = workloads(bed).await?;
        bed.merge(VDO, "VDOConfig", NS, "vdo", values).await?;
        let own = concat!("vdo/v", env!("CARGO_PKG_VERSION"));
        until("the record to be stored again", PATIENCE, async || {
            let map = bed.state().await?;
            let stored = map["metadata"]["annotations"][TOOLING] == own && map["data"]["schema"] == "1";
            Ok(Probe::when(stored, &map["metadata"]["annotations"]))
        })
        .await?;
        bed.until_ready().await?;
        ensure!(workloads(bed).await? == uids, "workloads were recreated");
        Ok(())
    })
}

async fn workloads(bed: &Bed) -> Result<Vec<Value>> {
    let owned = "app.kubernetes.io/managed-by=vdo,vdo.vmware.com/driver";
    let all = [
        bed.list("apps/v1", "Deployment", owned).await?,
        bed.list("apps/v1", "DaemonSet", owned).await?,
    ];
    Ok(all.concat().iter().map(|object| object["metadata"]["uid"].clone()).collect())
}

#[test]
fn record_of_a_newer_schema_is_refused_until_it_is_known() -> Result<()> {
    INSTALLED.run(async |bed| {
        change_map(bed, json!({"data": {"schema": "2"}})).await?;
        let ready = bed.until_reason("Ready", "NewerOperator").await?;
        let message = ready["message"].as_str().context("a message")?;
        ensure!(message.contains("schema") && message.contains(TOOLING), "{message}");
        let mark = damage(bed).await?;
        resynced(bed, "newer schema").await?;
        let writes = written(bed, mark).await?;
        ensure!(writes.is_empty(), "the operator wrote:\n{writes}");
        change_map(bed, json!({"data": {"schema": "1"}})).await?;
        until_repaired(bed).await
    })
}

/// A reconcile that was asked for is made.
async fn resynced(bed: &Bed, token: &str) -> Result<()> {
    let before = bed.reconciles().await?;
    let change = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": token}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", change).await?;
    until("the resync to be made", PATIENCE, async || {
        Ok(Probe::when(bed.reconciles().await? > before, "not yet"))
    })
    .await
}

/// The definition of a newer operator: objects are stored as v1beta1.
async fn bring_newer_definition(bed: &Bed) -> Result<()> {
    let mut versions = versions(bed).await?;
    let mut newer = versions[0].clone();
    newer["name"] = "v1beta1".into();
    versions[0]["storage"] = false.into();
    versions.push(newer);
    change_definition(bed, &versions).await
}

/// All objects are said to be stored as v1alpha1 again, as a migration ends.
async fn bring_back_definition(bed: &Bed) -> Result<()> {
    let mut versions = versions(bed).await?;
    for version in &mut versions {
        version["storage"] = (version["name"] == "v1alpha1").into();
    }
    change_definition(bed, &versions).await?;
    let status = json!({"status": {"storedVersions": ["v1alpha1"]}});
    let definitions = bed.api(EXTENSIONS, "CustomResourceDefinition", "");
    definitions
        .patch_status(DEFINITION, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

/// The versions of the definition of VDOConfigs.
pub async fn versions(bed: &Bed) -> Result<Vec<Value>> {
    let definition = bed.get(EXTENSIONS, "CustomResourceDefinition", "", DEFINITION).await?;
    definition["spec"]["versions"].as_array().cloned().context("versions")
}

/// Gives it these.
pub async fn change_definition(bed: &Bed, versions: &[Value]) -> Result<()> {
    bed.merge(
        EXTENSIONS,
        "CustomResourceDefinition",
        "",
        DEFINITION,
        json!({"spec": {"versions": versions}}),
    )
    .await
}

#[test]
#[ignore = "long"]
fn definition_with_a_newer_stored_version_is_refused_until_it_is_known() -> Result<()> {
    // What was stored as another version cannot be brought back for tests that share the definitions.
    BARE.run(async |bed| {
        bed.apply_deploy().await?;
        bed.start_operator().await?;
        bed.apply_samples().await?;
        bed.until_ready().await?;
        bring_newer_definition(bed).await?;
        let ready = bed.until_reason("Ready", "NewerOperator").await?;
        let message = ready["message"].as_str().context("a message")?;
        ensure!(message.contains(DEFINITION) && message.contains("v1beta1"), "{message}");
        let mark = damage(bed).await?;
        resynced(bed, "newer definition").await?;
        let writes = written(bed, mark).await?;
        ensure!(writes.is_empty(), "the operator wrote:\n{writes}");
        bring_back_definition(bed).await?;
        until_repaired(bed).await
    })
}
