// SPDX-License-Identifier: Apache-2.0
//! Which features and driver versions of a VDOConfig one of its vSphere connections has to support.

use crate::reconcile::requests::asked;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::VDOConfig;
use vdo_api::types::{DriverName, DriverVersion};
use vdo_core::drivers::{CLOUD_PROVIDER, STORAGE};
use vdo_vsphere::vsphere::{self, Requirements};

/// What a VDOConfig requires of one connection of its namespace. A specification that cannot be acted upon requires nothing.
#[must_use]
pub fn requirements(config: &VDOConfig, namespace: &str, existing: &BTreeSet<String>, connection: &str) -> Requirements {
    let Ok(runs) = asked(&config.spec, namespace, existing) else {
        return Requirements::default();
    };
    let drivers = runs.users(connection).into_iter().collect();
    let of_storage = runs.get(STORAGE.name).and_then(|run| run.asked.as_ref());
    let others = of_storage.map_or(0, |asked| asked.connections.len().saturating_sub(1));
    vsphere::requirements(&config.spec, drivers, others, versions(config))
}

/// The versions of drivers that are pinned, chosen or installed, as far as there are any.
fn versions(config: &VDOConfig) -> BTreeMap<DriverName, Vec<DriverVersion>> {
    let storage = config.spec.storage_provider.as_ref().and_then(|storage| storage.version.as_deref());
    let cloud = config.spec.cloud_provider.as_ref().and_then(|cloud| cloud.version.as_deref());
    let pins = [(STORAGE.name, storage), (CLOUD_PROVIDER.name, cloud)];
    let pins = pins.into_iter().filter_map(|(name, pin)| Some((name, pin?)));
    let drivers = config.status.iter().flat_map(|status| &status.drivers);
    let known = drivers.flat_map(|driver| [&driver.version, &driver.running].map(|version| (driver.name.as_str(), version.as_str())));
    let mut all: BTreeMap<DriverName, Vec<DriverVersion>> = BTreeMap::new();
    for (name, text) in pins.chain(known) {
        if let Ok(version) = text.parse() {
            let of = all.entry(name.to_owned()).or_default();
            if !of.contains(&version) {
                of.push(version);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn connection_requirements_follow_the_drivers_that_use_it() {
        for (spec, connection, drivers, others) in [
            (json!({}), "vc1", &["vsphere-cpi", "vsphere-csi"][..], 1),
            (json!({"cloudProvider": {}}), "vc1", &["vsphere-cpi"], 0),
            (json!({"storageProvider": {"vsphereCloudConfig": "vc2"}}), "vc1", &[], 0),
            (
                json!({"storageProvider": {"vsphereCloudConfig": "vc2"}}),
                "vc2",
                &["vsphere-csi"],
                0,
            ),
            (json!({"storageProvider": {"vsphereCloudConfigs": ["none"]}}), "vc1", &[], 0),
        ] {
            let config = VDOConfig::new("vdo", serde_json::from_value(spec).expect("a specification"));
            let existing = ["vc1", "vc2"].map(String::from).into();
            let found = requirements(&config, "ns", &existing, connection);
            assert_eq!(
                (found.drivers.iter().map(String::as_str).collect::<Vec<_>>(), found.others),
                (drivers.to_vec(), others)
            );
        }
    }
}
