// SPDX-License-Identifier: Apache-2.0
//! The feature states of the CSI driver that `spec.storageProvider` sets, without those that the installed version does not read (pure).

use super::STORAGE;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::api::VDOConfig;
use vdo_api::types::DriverVersion;

/// Snapshots of block volumes.
pub const SNAPSHOTS: &str = "block-volume-snapshot";
/// Volumes of the driver that was built into Kubernetes.
pub const MIGRATION: &str = "csi-migration";
/// Volumes that grow while they are attached.
pub const ONLINE_EXPANSION: &str = "online-volume-extend";

/// What these switch is part of the driver since version 3.2, which does not read them any more
/// (pkg/csi/service/common/commonco/k8sorchestrator, getReleasedVanillaFSS; its manifests list them no more).
const RELEASED: [&str; 3] = [SNAPSHOTS, MIGRATION, ONLINE_EXPANSION];
const SINCE: [u64; 3] = [3, 2, 0];

/// The feature states of the VDOConfig: of the field, overlaid with those of the free values as the chart's values are. What the installed
/// version does not read is left out; before a version is known, nothing is.
#[must_use]
pub fn feature_states(config: &VDOConfig) -> BTreeMap<String, bool> {
    let Some(csi) = &config.spec.storage_provider else {
        return BTreeMap::new();
    };
    let free = csi.values.get("featureStates").and_then(Value::as_object).into_iter().flatten();
    let free = free.filter_map(|(state, on)| Some((state.clone(), on.as_bool()?)));
    let mut all: BTreeMap<String, bool> = csi.features.clone().into_iter().chain(free).collect();
    if installed(config).is_some_and(|version| version.numbers() >= SINCE) {
        all.retain(|state, _| !RELEASED.contains(&state.as_str()));
    }
    all
}

/// The version that works, or is being installed for the first time.
fn installed(config: &VDOConfig) -> Option<DriverVersion> {
    let drivers = config.status.iter().flat_map(|status| &status.drivers);
    let driver = drivers.into_iter().find(|driver| driver.name == STORAGE.name)?;
    [&driver.running, &driver.version].into_iter().find_map(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn feature_states_are_those_that_the_installed_version_reads() {
        let both =
            json!({"features": {MIGRATION: true, "list-volumes": false}, "values": {"featureStates": {MIGRATION: false, "x": "text"}}});
        let field = json!({"features": {SNAPSHOTS: false}});
        let free = json!({"values": {"featureStates": {ONLINE_EXPANSION: false}}});
        let driver = |running: &str, version: &str| json!([{"name": STORAGE.name, "running": running, "version": version}]);
        for (storage, drivers, expected) in [
            (json!({}), json!([]), json!({})),
            (field.clone(), json!([]), json!({SNAPSHOTS: false})),
            (free.clone(), driver("3.1.2", "3.1.2"), json!({ONLINE_EXPANSION: false})),
            (
                both.clone(),
                driver("3.0.0", "3.0.0"),
                json!({MIGRATION: false, "list-volumes": false}),
            ),
            (both, driver("3.2.0", "3.2.0"), json!({"list-volumes": false})),
            (field.clone(), driver("3.1.2", "3.7.0"), json!({SNAPSHOTS: false})),
            (field.clone(), driver("", "3.7.0"), json!({})),
            (field, driver("", "unreadable"), json!({SNAPSHOTS: false})),
            (free, driver("4.0.0", "4.0.0"), json!({})),
        ] {
            let mut config = VDOConfig::new(
                "vdo",
                serde_json::from_value(json!({"storageProvider": storage})).expect("a specification"),
            );
            let mut whole = json!({});
            let complete = |driver: &Value| {
                let mut own = serde_json::to_value(vdo_api::api::DriverStatus::default()).expect("a driver");
                own.as_object_mut()
                    .expect("fields")
                    .extend(driver.as_object().expect("fields").clone());
                own
            };
            whole["drivers"] = drivers.as_array().expect("drivers").iter().map(complete).collect();
            config.status = Some(serde_json::from_value(whole).expect("a status"));
            assert_eq!(json!(feature_states(&config)), expected, "{storage} {drivers}");
        }
    }
}
