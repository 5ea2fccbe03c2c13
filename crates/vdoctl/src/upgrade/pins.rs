// SPDX-License-Identifier: Apache-2.0
//! Computes the patches of the VDOConfig that set, lift or revert the pins of `vdoctl upgrade apply`. Pure.

use super::super::CliError;
use super::super::driver_fields::{field, patch};
use super::Targets;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::api::UPGRADE_PINS;
use vdo_core::manifest::{Object, merge_patch};

/// The drivers that were pinned for an upgrade, with their versions.
pub(super) fn own_pins(live: &Object) -> BTreeMap<String, String> {
    pins(live.annotation(UPGRADE_PINS).unwrap_or_default())
}

/// The same by the value of the annotation.
pub(crate) fn pins(all: &str) -> BTreeMap<String, String> {
    let pair = |text: &str| text.split_once('=').map(|(name, version)| (name.to_owned(), version.to_owned()));
    all.split(',').filter_map(pair).collect()
}

/// The change that asks for these versions, and remembers which pins are only for the upgrade.
pub(super) fn pinned(live: &Object, targets: &Targets) -> Result<Value, CliError> {
    let spec = &live.value()["spec"];
    let mut own = own_pins(live);
    for (name, version) in targets {
        if field(spec, name, "version").is_null() || own.contains_key(name) {
            own.insert(name.clone(), version.to_string());
        }
    }
    let fields: Vec<(String, Value)> = targets
        .iter()
        .map(|(name, version)| (name.clone(), json!({"version": version})))
        .collect();
    let pins: Vec<String> = own.iter().map(|(name, version)| format!("{name}={version}")).collect();
    let mut change = json!({"spec": patch(spec, &fields)?});
    if !pins.is_empty() {
        change["metadata"] = json!({"annotations": {UPGRADE_PINS: pins.join(",")}});
    }
    Ok(change)
}

/// The change that lifts the pins of an upgrade. One that a person has changed meanwhile stays.
pub(super) fn lifted(live: &Object) -> Result<Value, CliError> {
    let spec = &live.value()["spec"];
    let own = own_pins(live);
    let same = own
        .iter()
        .filter(|(name, version)| field(spec, name, "version") == version.as_str());
    let fields: Vec<(String, Value)> = same.map(|(name, _)| (name.clone(), json!({"version": null}))).collect();
    Ok(json!({"metadata": {"annotations": {UPGRADE_PINS: null}}, "spec": patch(spec, &fields)?}))
}

/// The change that takes the pins of an upgrade back: `before` is the object without them, `written` what was stored with them. What
/// a person has changed since stays.
pub(super) fn taken_back(live: &Object, before: &Object, written: &Object, targets: &Targets) -> Result<Value, CliError> {
    let (spec, old) = (&live.value()["spec"], &before.value()["spec"]);
    let pins = before.annotation(UPGRADE_PINS);
    let change = match *spec == written.value()["spec"] {
        true => merge_patch(spec, old),
        false => {
            let own = targets
                .iter()
                .filter(|(name, version)| field(spec, name, "version") == version.to_string().as_str());
            let fields: Vec<(String, Value)> = own
                .map(|(name, _)| (name.clone(), json!({"version": field(old, name, "version")})))
                .collect();
            patch(spec, &fields)?
        }
    };
    Ok(json!({"metadata": {"annotations": {UPGRADE_PINS: pins}}, "spec": change}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::DriverVersion;

    fn version(text: &str) -> DriverVersion {
        text.parse().expect("a version")
    }

    fn config(annotations: Value, spec: Value) -> Object {
        let value = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo", "namespace": "n", "annotations": annotations}, "spec": spec});
        Object::new(value).expect("an object")
    }

    /// A pin of the upgrade is lifted, one of a person is kept at the new version.
    #[test]
    fn upgrade_pins_are_lifted_unless_a_person_pinned() {
        let to = |name: &str, text: &str| Targets::from([(name.to_owned(), version(text))]);
        let bare = config(json!({}), json!({}));
        let change = pinned(&bare, &to("vsphere-csi", "3.7.3")).expect("a change");
        assert_eq!(
            change["spec"],
            json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.3"}})
        );
        assert_eq!(change["metadata"]["annotations"][UPGRADE_PINS], "vsphere-csi=3.7.3");
        let under_way = config(change["metadata"]["annotations"].clone(), change["spec"].clone());
        let lift = lifted(&under_way).expect("a change");
        assert_eq!(lift["spec"], json!({"storageProvider": {"version": null}}));
        assert_eq!(lift["metadata"]["annotations"][UPGRADE_PINS], Value::Null);
        // Again, to another version, before the first was lifted.
        let change = pinned(&under_way, &to("vsphere-csi", "3.7.4")).expect("a change");
        assert_eq!(change["metadata"]["annotations"][UPGRADE_PINS], "vsphere-csi=3.7.4");

        let by_hand = config(json!({}), json!({"storageProvider": {"version": "3.6.3"}}));
        let change = pinned(&by_hand, &to("vsphere-csi", "3.7.3")).expect("a change");
        assert_eq!(change, json!({"spec": {"storageProvider": {"version": "3.7.3"}}}));
        let changed = config(
            json!({UPGRADE_PINS: "vsphere-csi=3.7.3"}),
            json!({"storageProvider": {"version": "3.7.0"}}),
        );
        assert_eq!(lifted(&changed).expect("a change")["spec"], json!({}));
    }

    /// As it was, where no one else has written; else the versions of the upgrade alone.
    #[test]
    fn upgrade_pins_that_are_refused_are_taken_back() {
        let targets = Targets::from([("vsphere-csi".to_owned(), version("3.7.3"))]);
        for (old, annotations, theirs, expected) in [
            (
                json!({}),
                json!({}),
                json!({}),
                json!({"cloudProvider": null, "storageProvider": null}),
            ),
            (
                json!({"storageProvider": {"version": "3.6.3"}}),
                json!({}),
                json!({}),
                json!({"storageProvider": {"version": "3.6.3"}}),
            ),
            (
                json!({}),
                json!({}),
                json!({"updatePolicy": "Latest"}),
                json!({"storageProvider": {"version": null}}),
            ),
            (
                json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.2"}}),
                json!({UPGRADE_PINS: "vsphere-csi=3.7.2"}),
                json!({}),
                json!({"storageProvider": {"version": "3.7.2"}}),
            ),
        ] {
            let before = config(annotations.clone(), old.clone());
            let change = pinned(&before, &targets).expect("a change");
            let mut value = before.value().clone();
            vdo_core::chart::values::merge(&mut value, &change);
            let written = Object::new(value.clone()).expect("an object");
            vdo_core::chart::values::merge(&mut value["spec"], &theirs);
            let live = Object::new(value).expect("an object");
            let back = taken_back(&live, &before, &written, &targets).expect("a change");
            assert_eq!(back["spec"], expected, "{old} {theirs}");
            assert_eq!(back["metadata"]["annotations"][UPGRADE_PINS], annotations[UPGRADE_PINS], "{old}");
        }
        // A person has pinned another version meanwhile, which stays.
        let before = config(json!({}), json!({}));
        let written = config(json!({}), json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.3"}}));
        let live = config(json!({}), json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.0"}}));
        let back = taken_back(&live, &before, &written, &targets).expect("a change");
        assert_eq!(back["spec"], json!({}));
    }
}
