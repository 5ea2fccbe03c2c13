// SPDX-License-Identifier: Apache-2.0
//! Maps a driver's workload to the field of the VDOConfig that sets its resource requests and limits (pure).

/// The field of the specification with the requests and limits of a container of this workload; the one that does the driver's work, where it has
/// several.
#[must_use]
pub fn resources(workload: &str) -> &'static str {
    match workload {
        "vsphere-csi-controller" => "storageProvider.values.controller.resources.driver",
        "vsphere-csi-webhook" => "storageProvider.values.webhook.resources",
        name if name.starts_with("vsphere-csi") => "storageProvider.values.node.resources.driver",
        _ => "cloudProvider.values.resources",
    }
}
