// SPDX-License-Identifier: Apache-2.0
//! A volume outlives the move of its driver from kube-system, attached all the time.

use super::life::{attach, attachment, detach};
use super::{CLAIM, Trust, VOLUME, claim, delete_claim, install, storage, until_bound, until_deleted, until_is, with_driver};
use crate::adoption::kubectl;
use crate::adoption::moving::watched;
use crate::common::{Bed, condition};
use crate::sources::root;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::CsiVersion;
use vdo_testbed::former::{bare, elsewhere, rights};

const VERSION: &str = "3.7.0";
const CSI: &str = "vmware-system-csi";

/// The driver in kube-system, beside VDO's cloud provider.
async fn install_elsewhere(bed: &Bed) -> Result<()> {
    install(bed, VERSION).await?;
    let (code, rendered, err) = bed.vdoctl(&["render", "--show-secrets"])?;
    ensure!(code == 0, "{err}");
    let manifests: Vec<Value> = vdo_api::yaml::load_all(&rendered)?.into_iter().map(bare).collect();
    let mut objects = elsewhere(&manifests);
    objects.retain(|object| {
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] == "vsphere-csi" || object["metadata"]["namespace"].is_null()
    });
    let removed = json!({"version": VERSION, "managementState": "Removed"});
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": removed})))
        .await?;
    until_deleted(bed, "apps/v1", "Deployment", CSI, "vsphere-csi-controller").await?;
    until_deleted(bed, "storage.k8s.io/v1", "CSIDriver", "", "csi.vsphere.vmware.com").await?;
    bed.until_ready().await?;
    objects.extend(rights(&vdo_api::yaml::load_all(&std::fs::read_to_string(
        root().join("deploy/drivers-rbac.yaml"),
    )?)?));
    kubectl(bed, &["apply", "--server-side", "-f", "-"], &objects)
}

async fn uid(bed: &Bed, kind: &str, namespace: &str, name: &str) -> Result<Value> {
    Ok(bed.get("v1", kind, namespace, name).await?["metadata"]["uid"].clone())
}

#[test]
#[ignore = "long"]
fn real_csi_driver_is_moved_from_kube_system_with_its_volume_attached() -> Result<()> {
    with_driver(&[CsiVersion::Newer], Trust::Thumbprint, async |bed| {
        install_elsewhere(bed).await?;
        bed.apply(&claim("data")).await?;
        let volume = until_bound(bed, "data").await?;
        let before = attach(bed, &volume).await?;
        // The cloud provider alone, on purpose, beside a CSI driver of another owner.
        let config = bed.until_ready().await?;
        let alone = condition(&config, "NoForeignDriver");
        ensure!(alone["status"] == "True", "{alone:#}");
        ensure!(condition(&config, "StorageReady")["status"] != "True", "{config:#}");
        let (code, out, err) = bed.vdoctl(&["doctor"])?;
        ensure!(code == 0, "{code} {out}{err}");
        let uids = (uid(bed, VOLUME, "", &volume).await?, uid(bed, CLAIM, "default", "data").await?);

        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": storage(VERSION)})))
            .await?;
        bed.until_reason("NoForeignDriver", "NotOurs").await?;
        let (code, text) = watched(bed, &["adopt", "--move", "--yes"], usize::MAX).await?;
        ensure!(code == Some(0), "{text}");
        bed.until_ready().await?;
        let after = attachment(bed, &volume).await?.unwrap_or_default();
        ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "{before:#} {after:#}");
        ensure!(after["status"]["attached"] == true, "{after:#}");
        let now = (uid(bed, VOLUME, "", &volume).await?, uid(bed, CLAIM, "default", "data").await?);
        ensure!(now == uids, "{now:?} instead of {uids:?}");

        // The new controller does the rest of the volume's life.
        let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        bed.merge("v1", CLAIM, "default", "data", larger).await?;
        until_is(bed, "larger", ("v1", VOLUME, "", &volume), |volume| {
            (volume["spec"]["capacity"]["storage"] == "2Gi").then_some(())
        })
        .await?;
        detach(bed, &volume).await?;
        delete_claim(bed, "data", &volume).await
    })
}
