// SPDX-License-Identifier: Apache-2.0
//! A volume outlives the version of the driver that made it.

use super::{CLAIM, Trust, VDO, VOLUME, claim, is_refused_because_of, storage, until_bound, until_deleted, until_is, with_driver};
use crate::common::{Bed, NS, PATIENCE};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use vdo_testbed::{CsiVersion, Probe, until};

const CSI: &str = "vmware-system-csi";

/// The newer driver grows the volume of the older one. The drivers stay until the volume is deleted, and are removed then.
#[test]
#[ignore = "long"]
fn real_csi_upgrade_with_a_claim_keeps_its_volume_and_the_removal_waits_for_it() -> Result<()> {
    with_driver(&[CsiVersion::Older, CsiVersion::Newer], Trust::Authority, async |bed| {
        let mut older = storage("3.3.1");
        older["allowIncompatible"] = true.into();
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": older})))
            .await?;
        bed.until_ready().await?;
        bed.apply(&claim("data")).await?;
        let volume = until_bound(bed, "data").await?;
        let before = bed.get("v1", VOLUME, "", &volume).await?;

        let pod = controller(bed).context("the older driver's pod")?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": storage("3.7.0")})))
            .await?;
        until("the older driver to end", PATIENCE, async || {
            Ok(Probe::when(controller(bed).is_none_or(|next| next != pod), &pod))
        })
        .await?;
        release_leases(bed).await?;
        bed.until_ready().await?;
        let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        bed.merge("v1", CLAIM, "default", "data", larger).await?;
        let after = until_is(bed, "larger", ("v1", VOLUME, "", &volume), |volume| {
            (volume["spec"]["capacity"]["storage"] == "2Gi").then(|| volume.clone())
        })
        .await?;
        ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "the volume was recreated");
        ensure!(
            after["spec"]["csi"] == before["spec"]["csi"],
            "{} is not {}",
            after["spec"]["csi"],
            before["spec"]["csi"]
        );

        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        is_refused_because_of(bed, &volume).await?;
        bed.delete("v1", CLAIM, "default", "data").await?;
        until_deleted(bed, "v1", VOLUME, "", &volume).await?;
        until_deleted(bed, VDO, "VDOConfig", NS, "vdo").await?;
        until_deleted(bed, "apps/v1", "Deployment", CSI, "vsphere-csi-controller").await
    })
}

/// The controller's pod that the node agent runs.
fn controller(bed: &Bed) -> Option<String> {
    bed.agent.containers().into_iter().next().map(|run| run.pod)
}

/// Sidecars keep their Leases when they end, and the next ones would wait for the two minutes that the driver has them ask for.
async fn release_leases(bed: &Bed) -> Result<()> {
    for lease in bed.list("coordination.k8s.io/v1", "Lease", "").await? {
        if lease["metadata"]["namespace"] == CSI {
            bed.delete("coordination.k8s.io/v1", "Lease", CSI, &super::text(&lease, "/metadata/name")?)
                .await?;
        }
    }
    Ok(())
}
