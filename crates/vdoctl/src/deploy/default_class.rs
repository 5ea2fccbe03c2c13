// SPDX-License-Identifier: Apache-2.0
//! Adds the default StorageClass and VolumeSnapshotClass (`--storage-policy`) to the VDOConfig that `vdoctl deploy` writes.

use serde_json::{Value, json};
use vdo_api::api::VDOConfig;

/// Both drivers, of which naming one alone would leave out the other.
const DRIVERS: [&str; 2] = ["cloudProvider", "storageProvider"];
/// The fields of the classes.
const VOLUMES: &str = "defaultStorageClass";
const SNAPSHOTS: &str = "defaultVolumeSnapshotClass";

/// The specification that flags are laid over, with the default classes. What an earlier `deploy` has set in the VDOConfig is kept: it
/// would be taken away with the next apply otherwise.
pub(super) fn with_default_class(known: &Value, there: Option<&VDOConfig>, policy: Option<&str>) -> Value {
    let mut spec = if known.is_null() { json!({}) } else { known.clone() };
    let live = there.map(|config| json!(config.spec));
    let named = |field: &str| {
        [Some(&spec), live.as_ref()]
            .into_iter()
            .flatten()
            .any(|spec| !spec[field].is_null())
    };
    let [cloud, storage] = DRIVERS.map(named);
    if cloud && !storage {
        return spec;
    }
    let kept = |field: &str| match &live {
        None => json!({"mode": "Auto"}),
        Some(spec) => spec["storageProvider"][field].clone(),
    };
    let mut classes = [VOLUMES, SNAPSHOTS].map(|field| (field, kept(field)));
    if let Some(policy) = policy {
        classes[0].1["storagePolicy"] = policy.into();
        classes[0].1["mode"] = "Auto".into();
    }
    if classes.iter().all(|(_, class)| class.is_null()) {
        return spec;
    }
    if !storage || cloud {
        for field in DRIVERS {
            if spec[field].is_null() {
                spec[field] = json!({});
            }
        }
    }
    for (field, class) in classes.into_iter().filter(|(_, class)| !class.is_null()) {
        spec["storageProvider"][field] = class;
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_class_is_new_in_a_new_vdoconfig_and_stays_as_it_is_in_another() {
        let auto = json!({"mode": "Auto"});
        let gold = json!({"mode": "Auto", "storagePolicy": "gold"});
        let both = |class: &Value| json!({"cloudProvider": {}, "storageProvider": {"defaultStorageClass": class}});
        let new = |class: &Value| {
            let storage = json!({"defaultStorageClass": class, "defaultVolumeSnapshotClass": {"mode": "Auto"}});
            json!({"cloudProvider": {}, "storageProvider": storage})
        };
        let nothing = || json!({});
        for (known, live, policy, expected) in [
            (Value::Null, None, None, new(&auto)),
            (Value::Null, None, Some("gold"), new(&gold)),
            (Value::Null, Some(new(&auto)), None, new(&auto)),
            // An installation of an older version gets none by itself.
            (Value::Null, Some(nothing()), None, nothing()),
            (Value::Null, Some(nothing()), Some("gold"), both(&gold)),
            (Value::Null, Some(both(&auto)), None, both(&auto)),
            (Value::Null, Some(both(&gold)), None, both(&gold)),
            (
                Value::Null,
                Some(both(&json!({"mode": "Off"}))),
                None,
                both(&json!({"mode": "Off"})),
            ),
            (Value::Null, Some(both(&json!({"mode": "Off"}))), Some("gold"), both(&gold)),
            (
                json!({"storageProvider": {"clusterId": "ocp"}}),
                None,
                None,
                json!({"storageProvider": {"clusterId": "ocp", "defaultStorageClass": auto, "defaultVolumeSnapshotClass": auto}}),
            ),
            // The cloud provider alone has no volumes.
            (Value::Null, Some(json!({"cloudProvider": {}})), Some("gold"), nothing()),
        ] {
            let there = live.clone().map(|spec| {
                let value =
                    json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo"}, "spec": spec});
                serde_json::from_value::<VDOConfig>(value).expect("a VDOConfig")
            });
            assert_eq!(
                with_default_class(&known, there.as_ref(), policy),
                expected,
                "{known} over {live:?} with {policy:?}"
            );
        }
    }
}
