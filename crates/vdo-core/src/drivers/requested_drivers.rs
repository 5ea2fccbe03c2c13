// SPDX-License-Identifier: Apache-2.0
//! Reads from the specification which drivers are requested, and with which version and connections.
//! If it requests neither CPI nor CSI, each of them that it does not remove is requested.

use super::KNOWN;
use std::collections::BTreeMap;
use vdo_api::api::{ManagementState, VDOConfigSpec};
use vdo_api::types::DriverName;

/// What a specification says of one driver.
#[derive(Debug, Clone)]
pub struct Request {
    /// The driver.
    pub driver: DriverName,
    /// What is done for it.
    pub state: ManagementState,
    /// A version to stay with.
    pub version: Option<String>,
    /// Whether that version is installed even where it does not fit.
    pub allow_incompatible: bool,
    /// The connections it uses.
    pub uses: Uses,
    /// What a version must be able to do, by the names of features in a matrix, each with the field that asks for it.
    pub features: BTreeMap<String, String>,
    /// Feature states, by name.
    pub states: BTreeMap<String, bool>,
}

/// The connections that a driver uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uses {
    /// All of the namespace, of which there must be one.
    All,
    /// These; none for a driver that knows no vCenter.
    These(Vec<String>),
}

impl Uses {
    /// These, or all when none is named.
    #[must_use]
    pub fn of(names: Vec<String>) -> Self {
        if names.is_empty() { Self::All } else { Self::These(names) }
    }
}

impl Request {
    pub(super) fn of(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            state: ManagementState::Managed,
            version: None,
            allow_incompatible: false,
            uses: Uses::All,
            features: BTreeMap::new(),
            states: BTreeMap::new(),
        }
    }
}

/// Whether a specification asks for this driver, and not for its removal.
#[must_use]
pub fn is_requested(spec: &VDOConfigSpec, driver: &str) -> bool {
    let is_it = |request: &Request| request.driver == driver && request.state != ManagementState::Removed;
    requests(spec).iter().any(is_it)
}

/// What a specification says of each driver: the known ones first, then the further ones in their order. If no known driver
/// is requested, all known drivers are requested but those with `managementState: Removed`; further drivers never change that.
#[must_use]
pub fn requests(spec: &VDOConfigSpec) -> Vec<Request> {
    let named: Vec<Option<Request>> = KNOWN.into_iter().map(|driver| (driver.request)(spec)).collect();
    let none = !named.iter().flatten().any(|request| request.state != ManagementState::Removed);
    let known = KNOWN
        .into_iter()
        .zip(named)
        .filter_map(|(driver, named)| named.or_else(|| none.then(|| Request::of(driver.name))));
    let further = spec.drivers.iter().map(|driver| Request {
        state: driver.management_state,
        version: driver.version.clone(),
        allow_incompatible: driver.allow_incompatible,
        uses: Uses::These(driver.vsphere_cloud_configs.clone()),
        ..Request::of(&driver.name)
    });
    known.chain(further).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_each_specification_names_drivers_and_states() {
        for (spec, expected) in [
            (json!({}), "vsphere-cpi Managed, vsphere-csi Managed"),
            (json!({"cloudProvider": {}}), "vsphere-cpi Managed"),
            (json!({"storageProvider": {"managementState": "Paused"}}), "vsphere-csi Paused"),
            (
                json!({"cloudProvider": {"managementState": "Removed"}}),
                "vsphere-cpi Removed, vsphere-csi Managed",
            ),
            (
                json!({"cloudProvider": {"managementState": "Removed"}, "storageProvider": {}}),
                "vsphere-cpi Removed, vsphere-csi Managed",
            ),
            (
                json!({"drivers": [{"name": "antrea"}]}),
                "vsphere-cpi Managed, vsphere-csi Managed, antrea Managed",
            ),
            (
                json!({"cloudProvider": {}, "drivers": [{"name": "antrea", "managementState": "Removed"}]}),
                "vsphere-cpi Managed, antrea Removed",
            ),
        ] {
            let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
            let said: Vec<String> = requests(&spec).iter().map(|r| format!("{} {:?}", r.driver, r.state)).collect();
            assert_eq!(said.join(", "), expected);
        }
    }

    #[test]
    fn requests_further_driver_uses_only_the_connections_it_names() {
        let spec = json!({"drivers": [{"name": "a"}, {"name": "b", "vsphereCloudConfigs": ["vc"]}]});
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        let uses: Vec<Uses> = requests(&spec).into_iter().map(|request| request.uses).collect();
        let these = |names: &[&str]| Uses::These(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(uses, [Uses::All, Uses::All, these(&[]), these(&["vc"])]);
    }
}
