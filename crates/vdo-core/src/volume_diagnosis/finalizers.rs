// SPDX-License-Identifier: Apache-2.0
//! Who removes the finalizers of claims, volumes and snapshots, and when: the explanation in `vdoctl doctor volumes`.

/// Who removes a finalizer, and when; empty for a finalizer that VDO does not know.
pub(super) fn keeper(finalizer: &str) -> &'static str {
    match finalizer {
        "kubernetes.io/pvc-protection" => "removed when no pod uses the claim",
        "kubernetes.io/pv-protection" => "removed when no claim is bound to the volume",
        "external-provisioner.volume.kubernetes.io/finalizer" => "removed by the CSI driver's controller when the disk is deleted",
        other if other.starts_with("external-attacher/") => "removed by the CSI driver's controller when the volume is detached",
        other if other.starts_with("snapshot.storage.kubernetes.io/") => "removed by the snapshot controller",
        _ => "",
    }
}
