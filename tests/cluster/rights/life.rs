// SPDX-License-Identifier: Apache-2.0
//! A whole life under the audit log: what was granted was used, and nothing was refused.

use crate::common::{Bed, OPERATOR, PATIENCE};
use crate::fixture::EMPTY;
use crate::rights::granted::{Right, Roles};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, Requests, until};

#[test]
#[ignore = "long"]
fn every_right_is_used_in_a_life_and_nothing_is_refused() -> Result<()> {
    EMPTY.run(async |bed| {
        // A new Lease.
        bed.delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.flags.clear();
        bed.lead_directly();
        bed.start_operator().await?;
        let requests = live(bed, mark).await?;
        let refused: Vec<String> = requests
            .0
            .iter()
            .filter(|e| matches!(e.code, 401 | 403))
            .map(|e| format!("{} {}", e.verb, e.object()))
            .collect();
        let granted = Roles::read()?.all();
        let unused: Vec<String> = granted
            .iter()
            .filter(|right| !is_of_the_webhook(right) && !is_of_bad_times(right))
            .filter(|right| !requests.0.iter().any(|e| right.allows(e)))
            .map(Right::to_string)
            .collect();
        println!("{} rights, {} requests in a life", granted.len(), requests.len());
        ensure!(refused.is_empty(), "refused in a life: {refused:#?}");
        ensure!(unused.is_empty(), "never used in a life: {unused:#?}");
        Ok(())
    })
}

/// The CSI driver's validating webhook is not part of this life: its pod would have to answer before a StorageClass is stored.
fn is_of_the_webhook(right: &Right) -> bool {
    right.resource.starts_with("validatingwebhookconfigurations")
        || right.resource.starts_with("endpointslices")
        || right.name.as_ref().is_some_and(|name| name.contains("webhook"))
}

/// What a life without trouble does not need: the log of a container that fails, the events of pods that are not made, the second event of a series, which comes five
/// minutes after the first, the snapshots that are waited for when there are some, the claim that a warning is about, the question who scrapes metrics or who wrote a driver of
/// another namespace, and the state of an earlier version, which is deleted once it was taken over.
fn is_of_bad_times(right: &Right) -> bool {
    right.resource == "pods/log"
        || right.resource.starts_with("subjectaccessreviews")
        || (right.resource == "configmaps" && right.verb == "delete" && right.namespace.as_deref() == Some("vmware-system-vdo"))
        || (right.resource == "events" && right.verb == "patch")
        || (right.resource == "events" && right.verb == "list")
        || (right.resource == "volumesnapshotcontents" && right.verb == "watch")
        || (right.resource == "persistentvolumeclaims" && right.verb == "watch")
}

/// A specification that brings objects of every kind.
fn everything(version: &str) -> Value {
    // Two controllers, so that there is a budget for a drain.
    let two = json!({"controller": {"replicas": 2, "spread": "none"}});
    let storage = json!({"version": version, "storageClasses": [{"name": "fast"}], "defaultVolumeSnapshotClass": {}, "values": two});
    json!({"cloudProvider": {}, "storageProvider": storage,
        "drivers": [{"name": "snapshot-controller"}]})
}

/// Install with everything that brings objects of its own, drift, upgrade, delete.
async fn live(bed: &Bed, mark: vdo_testbed::Mark) -> Result<Requests> {
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    let (_, roles, talk) = bed.vdoctl(&["rights", "--missing", "--driver", "snapshot-controller"])?;
    ensure!(roles.contains("snapshot-controller-runner"), "{talk}");
    for role in vdo_api::yaml::load_all(&roles)? {
        bed.apply(&role).await?;
    }
    bed.apply(&bed.config(everything("3.6.3"))).await?;
    bed.until_ready().await?;
    until("a class of snapshots", PATIENCE, async || {
        let class = bed.get("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "", "vsphere").await?;
        Ok(Probe::when(class.is_object(), class))
    })
    .await?;
    drift(bed).await?;
    bed.apply(&bed.config(everything("3.8.0"))).await?;
    bed.until_ready().await?;
    bed.uninstall().await?;
    until("the Lease to be renewed", PATIENCE, async || {
        let renewed = bed.cluster.audit().since(mark).await?.of(OPERATOR);
        let renewed = renewed.only(|e| e.resource == "leases" && e.verb == "update");
        Ok(Probe::when(!renewed.is_empty(), "it is not"))
    })
    .await?;
    Ok(bed.cluster.audit().since(mark).await?.of(OPERATOR))
}

/// One object is changed and one deleted.
async fn drift(bed: &Bed) -> Result<()> {
    let (kind, object) = (("apps/v1", "Deployment"), "vsphere-csi-controller");
    let before = bed.get(kind.0, kind.1, "vmware-system-csi", object).await?;
    bed.merge(kind.0, kind.1, "vmware-system-csi", object, json!({"spec": {"replicas": 7}}))
        .await?;
    bed.delete("v1", "ServiceAccount", "vmware-system-csi", "vsphere-csi-node").await?;
    until("the drift to be repaired", PATIENCE, async || {
        let now = bed.get(kind.0, kind.1, "vmware-system-csi", object).await?;
        let account = bed.get("v1", "ServiceAccount", "vmware-system-csi", "vsphere-csi-node").await?;
        let repaired = now["spec"]["replicas"] == before["spec"]["replicas"] && account["metadata"]["uid"].is_string();
        Ok(Probe::when(repaired, &now["spec"]["replicas"]))
    })
    .await?;
    ensure!(bed.state().await?["data"]["objects"].is_string(), "no inventory");
    bed.until_ready().await.map(|_| ()).context("after the drift")
}
