// SPDX-License-Identifier: Apache-2.0
//! Reads the vSphere tag categories of zones and regions from the CPI's ConfigMap or the CSI driver's DaemonSet (pure).

use super::csi::plugin_categories;
use crate::driverconfig::cpi;
use crate::manifest::Object;
use std::collections::BTreeSet;

/// The tag categories that a driver reads because of this object: the cloud provider because of its configuration, the CSI driver because of
/// the pods that register with them.
#[must_use]
pub fn categories(object: &Object) -> BTreeSet<String> {
    match object.kind() {
        "ConfigMap" => {
            let conf = object
                .value()
                .pointer(&format!("/data/{}", cpi::FILE))
                .and_then(serde_json::Value::as_str);
            conf.map(cpi::categories).unwrap_or_default()
        }
        "DaemonSet" => plugin_categories(object).map(str::to_owned).collect(),
        _ => BTreeSet::new(),
    }
}
