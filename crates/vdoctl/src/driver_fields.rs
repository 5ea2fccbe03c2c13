// SPDX-License-Identifier: Apache-2.0
//! Builds the merge patch that sets fields of single drivers in `spec` of a VDOConfig, and finds the driver that a user named.

use super::CliError;
use super::error::unknown;
use serde_json::{Map, Value, json};
use vdo_core::drivers::{KNOWN, known, short};

/// Whether a specification names no driver, which means all that are known.
fn names_none(spec: &Value) -> bool {
    KNOWN.iter().all(|driver| !names(spec, driver.field))
}

fn names(spec: &Value, field: &str) -> bool {
    spec.get(field).is_some_and(|value| !value.is_null())
}

/// A merge patch of a specification under which the drivers that it asks for stay asked for: where it names none, which means all that are
/// known, a patch that names one alone would leave the other unmanaged.
pub(super) fn keeping_all(spec: &Value, mut patch: Value) -> Value {
    if names_none(spec) && KNOWN.iter().any(|driver| names(&patch, driver.field)) {
        for driver in KNOWN {
            if patch.get(driver.field).is_none() {
                patch[driver.field] = json!({});
            }
        }
    }
    patch
}

/// The merge patch of a specification that sets these fields of these drivers.
///
/// # Errors
/// When it does not ask for a driver.
pub(super) fn patch(spec: &Value, all: &[(String, Value)]) -> Result<Value, CliError> {
    let default = names_none(spec);
    let mut patch = json!({});
    let mut further: Vec<Value> = spec["drivers"].as_array().cloned().unwrap_or_default();
    for (name, fields) in all {
        let place = match known(name) {
            Some(driver) if default || names(spec, driver.field) => &mut patch[driver.field],
            Some(_) => return Err(not_asked_for(spec, name)),
            None => further
                .iter_mut()
                .find(|driver| driver["name"] == **name)
                .ok_or_else(|| not_asked_for(spec, name))?,
        };
        if place.is_null() {
            *place = json!({});
        }
        let own: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
        // A list is replaced as a whole, so that null has to be taken out of it here.
        for (field, value) in own {
            match (known(name), value.is_null()) {
                (None, true) => drop(place.as_object_mut().and_then(|place| place.remove(&field))),
                _ => place[field] = value,
            }
        }
    }
    if all.iter().any(|(name, _)| known(name).is_none()) {
        patch["drivers"] = further.into();
    }
    Ok(keeping_all(spec, patch))
}

/// The drivers that a specification asks for.
pub(super) fn asked_for(spec: &Value) -> Vec<String> {
    let default = names_none(spec);
    let own = KNOWN
        .iter()
        .filter(|driver| default || names(spec, driver.field))
        .map(|driver| driver.name.to_owned());
    let further = spec["drivers"].as_array().into_iter().flatten();
    own.chain(further.filter_map(|driver| driver["name"].as_str().map(str::to_owned)))
        .collect()
}

/// A driver that a specification asks for, by what was typed.
pub(super) fn typed(spec: &Value, word: &str) -> Result<String, CliError> {
    let lower = word.to_lowercase();
    let all = asked_for(spec);
    let found = all.iter().find(|name| **name == lower || short(name).to_lowercase() == lower);
    found.cloned().ok_or_else(|| not_asked_for(spec, word))
}

fn not_asked_for(spec: &Value, word: &str) -> CliError {
    let all = asked_for(spec);
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    unknown("driver in the VDOConfig with the name", word, &names)
}

/// A field of a driver in a specification; null where it is not set.
pub(super) fn field<'a>(spec: &'a Value, driver: &str, field: &str) -> &'a Value {
    match known(driver) {
        Some(known) => &spec[known.field][field],
        None => {
            let mut further = spec["drivers"].as_array().into_iter().flatten();
            further
                .find(|item| item["name"] == *driver)
                .map_or(&Value::Null, |item| &item[field])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeping_all_drivers_asked_for_leaves_an_explicit_choice_alone() {
        let pin = json!({"storageProvider": {"version": "3.7.3"}});
        for (spec, patch, expected) in [
            (
                json!({}),
                pin.clone(),
                json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.3"}}),
            ),
            (json!({"storageProvider": {}}), pin.clone(), pin),
            (json!({}), json!({"updatePolicy": "Latest"}), json!({"updatePolicy": "Latest"})),
            (
                json!({}),
                json!({"cloudProvider": null, "storageProvider": {}}),
                json!({"cloudProvider": null, "storageProvider": {}}),
            ),
        ] {
            assert_eq!(keeping_all(&spec, patch), expected, "{spec}");
        }
    }

    #[test]
    fn driver_fields_of_one_driver_leave_the_others_named() {
        let pin = json!({"version": "3.7.3"});
        for (spec, driver, expected) in [
            (
                json!({}),
                "vsphere-csi",
                json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.3"}}),
            ),
            (
                json!({"storageProvider": {}}),
                "vsphere-csi",
                json!({"storageProvider": {"version": "3.7.3"}}),
            ),
            (
                json!({"drivers": [{"name": "a"}, {"name": "b", "version": "1.0.0"}]}),
                "b",
                json!({"drivers": [{"name": "a"}, {"name": "b", "version": "3.7.3"}]}),
            ),
        ] {
            assert_eq!(patch(&spec, &[(driver.to_owned(), pin.clone())]).ok(), Some(expected), "{spec}");
        }
        let lifted = patch(
            &json!({"drivers": [{"name": "b", "version": "1"}]}),
            &[("b".into(), json!({"version": null}))],
        );
        assert_eq!(lifted.ok(), Some(json!({"drivers": [{"name": "b"}]})));
        let error = patch(&json!({"storageProvider": {}}), &[("vsphere-cpi".into(), pin)]).expect_err("it is not asked for");
        assert!(error.remedy.contains("vsphere-csi"), "{error:?}");
        assert_eq!(typed(&json!({}), "CSI").ok().as_deref(), Some("vsphere-csi"));
        assert!(typed(&json!({"cloudProvider": {}}), "csi").is_err());
    }
}
