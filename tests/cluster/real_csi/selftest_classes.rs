// SPDX-License-Identifier: Apache-2.0
//! `vdoctl selftest` with other classes, with the real driver.

use super::selftest::{STEPS, attach_by_controller, nothing_is_left, results, selftest, with_snapshot_class};
use super::{CLASS, Trust, install, with_driver};
use crate::common::Bed;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{CsiVersion, start_snapshots};

const VERSION: &str = "3.7.0";

/// A class whose volumes are kept, with the image that is the default; and a class of volumes that pods of several nodes share, for which this
/// vCenter has no file service.
#[test]
#[ignore = "long"]
fn real_csi_selftest_deletes_kept_volumes_and_explains_shared_ones() -> Result<()> {
    with_driver(&[CsiVersion::Newer], Trust::Thumbprint, async |bed| {
        let _controller = start_snapshots(&bed.cluster).await?;
        install(bed, VERSION).await?;
        attach_by_controller(bed).await?;
        with_snapshot_class(bed).await?;
        bed.apply(
            &json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "keeps"},
            "provisioner": "csi.vsphere.vmware.com", "reclaimPolicy": "Retain", "allowVolumeExpansion": true}),
        )
        .await?;
        let plugin = bed.get("apps/v1", "DaemonSet", "vmware-system-csi", "vsphere-csi-node").await?;
        let (code, out, err) = bed.vdoctl(&["selftest", "-o", "json", "--timeout", "10m", "--storage-class", "keeps"])?;
        let whole: Value = serde_json::from_str(&out).with_context(|| format!("{code}\n{out}{err}\n{}", bed.agent.logs()))?;
        let expected: Vec<String> = STEPS.iter().map(|step| format!("{step} passed")).collect();
        ensure!(code == 0 && results(&whole) == expected, "{code} {whole:#}");
        let image = whole["image"].as_str().context("no image")?;
        ensure!(plugin.to_string().contains(&format!("\"{image}\"")), "{image} is not the driver's");
        nothing_is_left(bed).await?;
        ensure!(nothing_is_registered(bed).await?, "a volume is left in the vCenter");

        let (code, shared) = selftest(bed, "20s", &["--storage-class", CLASS, "--access-mode", "ReadWriteMany"])?;
        let claim = &shared["steps"][0];
        ensure!(code == 1 && claim["result"] == "failed", "{code} {shared:#}");
        let causes = claim["findings"].as_array().into_iter().flatten().map(|finding| &finding["cause"]);
        ensure!(causes.clone().any(|cause| cause == "FileServiceMissing"), "{shared:#}");
        nothing_is_left(bed).await
    })
}

/// Whether the vCenter knows no volume of this cluster any more.
async fn nothing_is_registered(bed: &Bed) -> Result<bool> {
    let (code, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
    let document: Value = serde_json::from_str(&out).with_context(|| format!("{code}\n{out}{err}"))?;
    ensure!(document["notRead"] == json!([]), "{out}");
    Ok(!out.contains("NotInCluster"))
}
